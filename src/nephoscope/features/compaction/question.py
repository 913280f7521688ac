"""The summaries of runs as a question for an engine: trials of runs to one summary a metric.

The rows of a metric in a run are those of its trials: a value, or a histogram. What a summary
states of the run as a whole is a series of its own, with the name of no benchmark.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from nephoscope.core.errors import NephoscopeError, StoreError
from nephoscope.core.model import Shape
from nephoscope.features.compaction.summarise import (
    LineAbout,
    about_lines,
    head_of,
    metrics_of,
)
from nephoscope.results import names
from nephoscope.store import StoredRun, query, summary
from nephoscope.store.engines.question import Engine, Question, Scan, size_of
from nephoscope.store.grouped_samples import Group
from nephoscope.store.query import TrialHistogram, TrialValue
from nephoscope.store.summary import MetricSummary, RunMeasurements

_SHARE_BYTES = 128 << 20
"""Size of a run from which on its trials are read in several parts."""
_BLOCK_BYTES = 2 << 30
"""Size of the runs of one question: their summaries are held in memory."""
_BLOCK_RUNS = 500
"""Runs of one question: the summaries of a block stay where a later one is interrupted."""
_TEXT, _INTEGER, _BYTES = pa.string(), pa.int64(), pa.binary()

SERIES = ("run", "benchmark", "line", "target", "factors")
ROWS = pa.schema(
    [
        *((name, _TEXT) for name in (*SERIES, "metric", "unit", "better", "trial")),
        *((name, _INTEGER) for name in ("round", "position", "share")),
        *((name, _TEXT) for name in ("shape", "params", "command")),
        *((name, _BYTES) for name in ("values", "counts")),
    ]
)
"""Row of a trial. line: the metric whose summary it is part of, which differs from its own for
requests without an answer. values: floats; counts: integers of 64 bits, of a histogram."""
ORDER = ("position", "round", "trial", "metric", "unit", "better")
ANSWERS = pa.schema([*((name, _TEXT) for name in SERIES), ("answer", _BYTES)])
_OF_TRIAL = ("benchmark", "metric", "target", "factors", "unit", "better", "trial", "round")

_LINES = {companion: name for name, companion in names.UNANSWERED.items()}


@dataclass(frozen=True, slots=True)
class RunPart:
    """Part `share` of the trials of a run, such as (0, 2) for the first half."""

    path: str
    share: tuple[int, int] = (0, 1)


def question_of(runs: Iterable[StoredRun]) -> Question:
    """Returns the question for the summaries of runs."""
    parts: list[RunPart] = []
    total = 0
    for run in runs:
        size = size_of(run)
        total += size
        shares = max(1, size // _SHARE_BYTES)
        parts += [RunPart(str(run.path), (number, shares)) for number in range(shares)]
    return Question(Scan(parts, rows_of, ROWS, SERIES, ORDER, total), summary_answer, ANSWERS)


def rows_of(part: RunPart) -> Iterator[pa.Table]:
    """Yields the rows of a part of a run; a row of an error where it cannot be read."""
    run = StoredRun(Path(part.path))
    try:
        # All of it before the first row: a run is summarised as a whole or not at all.
        tables = [trial_rows(run, part.share)]
        if part.share[0] == 0:
            tables.append(_head_row(run.id, head_of(run, {}, ())))
    except NephoscopeError as error:
        tables = [_head_row(run.id, error, -1 - part.share[0])]
    yield from tables


def _head_row(run: str, content: RunMeasurements | NephoscopeError, position: int = 0) -> pa.Table:
    row: dict[str, Any] = dict.fromkeys(ROWS.names, "")
    row |= {"run": run, "round": 0, "position": position, "share": 0, "counts": b""}
    row["values"] = pickle.dumps(content)
    return pa.Table.from_pylist([row], schema=ROWS)


def trial_rows(run: StoredRun, share: tuple[int, int], only: Shape | None = None) -> pa.Table:
    """Returns a row for each metric of a trial that counts. only: metrics of this shape."""
    about = about_lines(run)
    place = {record.key.name: record.position for record in run.records()}
    shapes = [Shape.SCALAR, Shape.HISTOGRAM] if only is None else [only]
    values, distributions = query.medians_and_histograms(run, share=share, shapes=shapes)
    rows: list[Any] = [*values, *distributions]
    columns: dict[str, list[Any]] = {name: [] for name in ROWS.names}
    for row in rows:
        setting = about(row.benchmark, row.metric, row.trial)
        is_value = isinstance(row, TrialValue)
        own = {name: getattr(row, name) for name in _OF_TRIAL} | {
            "run": run.id,
            "line": row.metric if is_value else _LINES.get(row.metric, row.metric),
            "position": place[row.trial],
            "share": int(setting.share),
            "shape": setting.shape.value,
            "params": setting.params,
            "command": setting.command,
            "values": np.array([row.value]).tobytes() if is_value else row.values.tobytes(),
            "counts": b"" if is_value else row.counts.tobytes(),
        }
        for name, value in own.items():
            columns[name].append(value)
    return pa.table(columns, schema=ROWS)


def summary_answer(rows: pa.Table) -> pa.Table:
    """Returns the summary of one metric of one run; of the run itself its head or its error."""
    key = {name: [rows[name][0].as_py()] for name in SERIES}
    if not key["benchmark"][0]:
        # Errors sort before the head.
        return pa.table({**key, "answer": [rows["values"][0].as_py()]}, schema=ANSWERS)
    values: list[TrialValue] = []
    distributions: list[TrialHistogram] = []
    place: dict[str, int] = {}
    about: dict[str, LineAbout] = {}
    for row in cast("list[dict[str, Any]]", rows.to_pylist()):
        place[row["trial"]] = row["position"]
        shape = Shape(row["shape"])
        about.setdefault(
            row["metric"], LineAbout(shape, bool(row["share"]), row["params"], row["command"])
        )
        common = cast("Group", tuple(row[name] for name in _OF_TRIAL))
        numbers = np.frombuffer(row["values"])
        if shape is Shape.SCALAR:
            values.append(TrialValue(*common, float(numbers[0])))
        else:
            counts = np.frombuffer(row["counts"], dtype=np.int64)
            distributions.append(TrialHistogram(*common, numbers, counts))
    metrics = metrics_of(values, distributions, place, lambda _b, metric, _t: about[metric])
    return pa.table({**key, "answer": [pickle.dumps(metrics)]}, schema=ANSWERS)


def summaries(runs: Sequence[StoredRun], engine: Engine) -> Iterator[RunMeasurements]:
    """Yields the summaries of runs as an engine computes them; without those that have an error.

    Writes each into the folder of its run, as `summarise.summary_of` does.
    """
    for block in _blocks(runs):
        stamps = {}
        for run in block:
            with contextlib.suppress(StoreError):
                stamps[run.id] = (run, summary.stamp_of(run.path))
        question = question_of(run for run, _ in stamps.values())
        answers = engine.answers(question).to_pylist()
        for name, rows in groupby(answers, key=itemgetter("run")):
            run, stamp = stamps[name]
            measured = _joined(row["answer"] for row in rows)
            if measured is None:
                continue
            measured = replace(measured, stamp=stamp)
            with contextlib.suppress(StoreError):
                # What changed meanwhile has another stamp: the summary would never be read.
                if summary.stamp_of(run.path) == stamp:
                    summary.write(run.path, measured)
                    yield measured


def _joined(answers: Iterable[bytes]) -> RunMeasurements | None:
    """Returns the summary of a run from the answers on its series; None where one is an error."""
    head: RunMeasurements | None = None
    metrics: list[MetricSummary] = []
    for answer in map(pickle.loads, answers):
        if isinstance(answer, RunMeasurements):
            head = answer
        elif isinstance(answer, NephoscopeError):
            return None
        else:
            metrics += answer
    # A target that the plan does not name has facts that only the whole run tells.
    if head is None or any(metric.target not in head.targets for metric in metrics):
        return None
    return replace(head, metrics=tuple(sorted(metrics, key=_place)))


def _place(metric: MetricSummary) -> tuple[bool, str, str, str, str]:
    is_histogram = metric.shape is Shape.HISTOGRAM
    return (is_histogram, metric.benchmark, metric.metric, metric.target, metric.factors)


def _blocks(runs: Iterable[StoredRun]) -> Iterator[list[StoredRun]]:
    block: list[StoredRun] = []
    held = 0
    for run in runs:
        size = size_of(run)
        if len(block) == _BLOCK_RUNS or (block and held + size > _BLOCK_BYTES):
            yield block
            block, held = [], 0
        block.append(run)
        held += size
    if block:
        yield block
