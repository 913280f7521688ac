"""Asks an engine and this process the same questions, and compares the answers bit for bit."""

from __future__ import annotations

import io
import json
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256

from nephoscope.core.documents import to_json
from nephoscope.core.model import stated
from nephoscope.core.records import dataclass
from nephoscope.features.census import observations
from nephoscope.features.compaction import question as summaries
from nephoscope.features.engines.percentiles import percentiles_of
from nephoscope.features.engines.synthetic import KnownStore
from nephoscope.features.fleet.result import stored_check
from nephoscope.features.rank import result as ranking
from nephoscope.features.rank import stored
from nephoscope.features.rank.records import RankSettings
from nephoscope.features.sla import events as sla_events
from nephoscope.features.sla import files as agreements
from nephoscope.features.sla import question as sla_question
from nephoscope.features.sla import result as sla_result
from nephoscope.store import export
from nephoscope.store.engines.local import LocalEngine
from nephoscope.store.engines.question import Engine

QUANTILES = (0.5, 0.99)
AGREEMENT = """\
sla: 1
name: check
title: Agreement of the check
source: engine check
objectives:
  - {measure: availability, target: 99.9%, slot: 1min, failed_at_least: 50%}
  - {measure: response_time, mean: 50ms}
  - {measure: response_time, target: 95%, under: 100ms}
"""
NOW_NS = 1_790_000_000 * 10**9
"""Time after all events of the check."""


@dataclass(frozen=True, slots=True)
class CheckedQuestion:
    """A question, and whether an engine answers it as this process does.

    answers: number of them. here_s, engine_s: time of both, which includes the engine's start for
    the first question. difference: the first one, or empty.
    """

    question: str
    answers: int
    here_s: float
    engine_s: float
    difference: str

    @stated
    def is_equal(self) -> bool:
        """Returns whether all answers are equal to the last bit."""
        return not self.difference


@dataclass(frozen=True, slots=True)
class EngineCheck:
    """Answers of an engine beside those of this process.

    engine: its URL without secrets. samples: in the store that was asked about. series: of it.
    """

    engine: str
    samples: int
    series: int
    runs: int
    questions: tuple[CheckedQuestion, ...]

    @stated
    def sentence(self) -> str:
        """Returns the verdict."""
        different = [entry.question for entry in self.questions if entry.difference]
        if different:
            return (
                f"{self.engine} differs from this process in {len(different)} of "
                f"{len(self.questions)} questions: {', '.join(different)}."
            )
        return (
            f"{self.engine} gives the same results as this process, to the last bit, in all "
            f"{len(self.questions)} questions ({self.samples:,} samples, {self.series} series, "
            f"{self.runs} runs)."
        )


Answers = Iterator[str]
"""Text of each answer, in which a float has all of its bits."""


def check(engine: Engine, known: KnownStore) -> EngineCheck:
    """Returns the comparison over a store that the engine sees."""
    here = LocalEngine(1)
    checked = []
    for name, ask in QUESTIONS.items():
        own, here_s = _timed(ask, here, known)
        answers, engine_s = _timed(ask, engine, known)
        checked.append(CheckedQuestion(name, len(own), here_s, engine_s, _difference(own, answers)))
    drawn = sum(part.size for parts in known.latencies.values() for part in parts)
    return EngineCheck(
        engine.name, drawn, len(known.latencies), len(known.store.ids()), tuple(checked)
    )


def _timed(
    ask: Callable[[Engine, KnownStore], Answers], engine: Engine, known: KnownStore
) -> tuple[list[str], float]:
    started = time.perf_counter()
    return list(ask(engine, known)), time.perf_counter() - started


def _difference(here: list[str], there: list[str]) -> str:
    if len(here) != len(there):
        return f"{len(there)} answers instead of {len(here)}"
    for own, answer in zip(here, there, strict=True):
        if own != answer:
            pairs = enumerate(zip(own, answer, strict=False))
            first = next((place for place, (a, b) in pairs if a != b), 0)
            around = slice(max(0, first - 20), first + 20)
            return f"'{answer[around]}' instead of '{own[around]}'"
    return ""


def _history(engine: Engine, known: KnownStore) -> Answers:
    table = engine.answers(summaries.question_of(known.runs))
    for row in table.to_pylist():
        yield repr({**row, "answer": pickle.loads(row["answer"])})


def _percentiles(engine: Engine, known: KnownStore) -> Answers:
    table = engine.answers(percentiles_of(known.runs, quantiles=QUANTILES))
    for row in table.to_pylist():
        level = json.loads(row["factors"])["value"]
        drawn = known.percentile(row["target"], level, row["quantile"])
        if row["value"] not in (None, drawn):
            # Known without the program's arithmetic: were this process wrong too, both would be.
            yield f"{engine.name}: {row['value']!r} instead of {drawn!r} as drawn"
        yield repr(row)


def _census(engine: Engine, known: KnownStore) -> Answers:
    reasons: Counter[str] = Counter()
    used, observed, looked_at = observations.observed(
        known.runs, frozenset(), False, reasons, engine=engine
    )
    yield from map(repr, observed)
    yield from (repr(speed) for entry in used for speed in entry.speeds)
    yield f"{looked_at} {reasons}"


def _rank(engine: Engine, known: KnownStore) -> Answers:
    newest = known.store.ids()[-1]
    alternatives = stored.of_runs([newest], known.store, "", frozenset(), 0.95, engine)
    ranked = ranking.rank(alternatives, RankSettings("", {}, 0.03, 0.95, 1, 3))
    yield json.dumps(to_json(ranked))


def _fleet(engine: Engine, known: KnownStore) -> Answers:
    settings = {"false_alarms": 0.05, "margin": 0.1}
    for checked in engine.each(partial(stored_check, settings), [run.path for run in known.runs]):
        yield json.dumps(to_json(checked))


def _sla_verdict(engine: Engine, known: KnownStore) -> Answers:
    agreement = agreements.from_text(AGREEMENT, "check.yaml")
    settings = sla_result.VerdictSettings(now_ns=NOW_NS)
    judged = json.dumps(to_json(sla_question.judge(agreement, known.events, settings, engine)))
    # As the command judges without an engine, from the files themselves.
    read = sla_result.judge(agreement, sla_events.read(known.events), settings)
    if judged != json.dumps(to_json(read)):
        yield f"{engine.name}: not the verdict of the events as they are read without an engine"
    yield judged


def _export(engine: Engine, known: KnownStore) -> Answers:
    for run in known.runs:
        stream = io.BytesIO()
        export.export([run], "csv", stream, engine)
        yield sha256(stream.getvalue()).hexdigest()


QUESTIONS: dict[str, Callable[[Engine, KnownStore], Answers]] = {
    "history": _history,
    "percentiles": _percentiles,
    "census": _census,
    "rank": _rank,
    "sla verdict": _sla_verdict,
    "fleet": _fleet,
    "export": _export,
}
"""Name -> the question put to an engine, as text of each answer."""
