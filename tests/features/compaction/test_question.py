"""Summaries by an engine are those of `summary_of`, whatever the parts in which a run is read."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest
from tests.store.factory import SPEC, new_run, record, samples

from nephoscope.core.model import Sample
from nephoscope.features.compaction import question
from nephoscope.features.compaction.reading import StoredSummaries
from nephoscope.features.compaction.summarise import summary_of
from nephoscope.store import FINISHED, Store, StoredRun, summary
from nephoscope.store.engines.local import LocalEngine
from nephoscope.store.engines.question import Question
from nephoscope.store.selection import Selection


def filled(path: Path, rounds: int = 7) -> StoredRun:
    """A run with scalars and histograms, some of whose requests had no answer."""
    run, settings = new_run(path)
    position = 0
    for number in range(rounds):
        for setting in settings:
            rows = samples(100.0 + number + setting.index)
            rows += [Sample("null_latency_ns", 500.0 + value, 1000) for value in range(number)]
            run.append(record(setting, number, position), rows, SPEC)
            position += 1
    run.finish(FINISHED)
    return StoredRun(run.path)


@pytest.mark.parametrize("share_bytes", [1 << 30, 3000])
def test_an_engine_writes_the_summary_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share_bytes: int
) -> None:
    monkeypatch.setattr(question, "_SHARE_BYTES", share_bytes)
    run = filled(tmp_path)
    expected = summary_of(run)
    (run.path / summary.FILE).unlink()
    parts = question.question_of([run]).scan.parts
    assert len(parts) == 1 or (share_bytes == 3000 and len(parts) > 2)
    (measured,) = question.summaries([run], LocalEngine(1))
    assert measured == expected
    assert summary.read(run.path) == expected
    assert len(expected.metrics) > 4


def test_reading_asks_the_engine_once_for_what_is_missing(tmp_path: Path) -> None:
    runs = [filled(tmp_path, rounds) for rounds in (1, 2)]
    for run in runs:
        expected = summary_of(run)
        (run.path / summary.FILE).unlink()
    summary_of(runs[0])
    engine = _Counting()
    stored = StoredSummaries(Store(tmp_path), Selection(), engine=engine)
    assert [entry.run for entry in stored] == [entry.run for entry in stored]  # type: ignore[union-attr]
    assert engine.runs == [1]
    assert dataclasses.replace(expected, stamp="") in [
        dataclasses.replace(entry, stamp="")  # type: ignore[type-var]
        for entry in stored
    ]


def test_a_run_that_cannot_be_read_is_left_to_its_reader(tmp_path: Path) -> None:
    runs = [filled(tmp_path, rounds) for rounds in (1, 2)]
    manifest = runs[0].path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"specs"', '"spec"'))
    measured = list(question.summaries(runs, LocalEngine(1)))
    assert [entry.run for entry in measured] == [runs[1].id]


class _Counting(LocalEngine):
    """Notes how many runs it was asked about."""

    def __init__(self) -> None:
        super().__init__(1)
        self.runs: list[int] = []

    def is_worth(self, tasks: int, size_bytes: int) -> bool:
        self.runs.append(tasks)
        return tasks > 0

    def answers(self, asked: Question) -> pa.Table:
        self.is_worth = lambda *_: False  # type: ignore[method-assign]
        return super().answers(asked)


def test_summaries_of_a_block_stay_where_a_later_one_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(LocalEngine):
        def answers(self, asked: Question) -> pa.Table:
            if asked.scan.parts[0].path == str(last.path):
                raise KeyboardInterrupt
            return super().answers(asked)

    monkeypatch.setattr(question, "_BLOCK_RUNS", 2)
    *others, last = [filled(tmp_path, 6) for _ in range(3)]
    with pytest.raises(KeyboardInterrupt):
        list(question.summaries([*others, last], Interrupted(1)))
    written = [(run.path / summary.FILE).exists() for run in (*others, last)]
    assert written == [True, True, False]
