from __future__ import annotations

from pathlib import Path

from nephoscope.core.model import Sample, TrialStatus
from nephoscope.store import query

from .factory import SPEC, filled, new_run, record, samples


def test_medians_of_the_trials_that_count(tmp_path: Path) -> None:
    run, settings = filled(tmp_path, rounds=2)
    invalid = record(settings[0], 3, 90, status=TrialStatus.INVALID, reasons=("x",))
    run.append(invalid, samples(1.0), SPEC)
    rows = query.trial_medians(run)
    found = [
        (row.factors, row.round, row.trial, row.value, row.unit, row.better)
        for row in rows
        if row.metric == "null_ns"
    ]
    # Samples of a trial are v, v + 2 and, under op=read, 10 v, with v = 100 + round.
    assert found == [
        ('{"op":"read","value":1.0}', 1, "r0001-s000-local", 1010.0, "ns", "lower"),
        ('{"op":"read","value":1.0}', 2, "r0002-s000-local", 1020.0, "ns", "lower"),
        ('{"op":"read","value":2.0}', 1, "r0001-s001-local", 1010.0, "ns", "lower"),
        ('{"op":"read","value":2.0}', 2, "r0002-s001-local", 1020.0, "ns", "lower"),
        ('{"value":1.0}', 1, "r0001-s000-local", 102.0, "ns", "lower"),
        ('{"value":1.0}', 2, "r0002-s000-local", 103.0, "ns", "lower"),
        ('{"value":2.0}', 1, "r0001-s001-local", 102.0, "ns", "lower"),
        ('{"value":2.0}', 2, "r0002-s001-local", 103.0, "ns", "lower"),
    ]
    assert {row.metric for row in rows} == {"null_ns", "null_per_s"}


def test_histograms_are_merged_within_a_trial_only(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=2)
    found = query.histograms(run)
    rows = [(h.factors, h.round, tuple(h.values), tuple(h.counts)) for h in found]
    assert rows == [
        ('{"value":1.0}', 1, (101.0, 102.0), (6, 7)),
        ('{"value":1.0}', 2, (102.0, 103.0), (6, 7)),
        ('{"value":2.0}', 1, (101.0, 102.0), (6, 7)),
        ('{"value":2.0}', 2, (102.0, 103.0), (6, 7)),
    ]


def test_series_keep_their_time(tmp_path: Path) -> None:
    from nephoscope import catalog
    from nephoscope.measure import plans
    from nephoscope.store import Store

    known = catalog.load()
    plan = plans.single("cpu.gaps")
    (setting,) = plans.expand(plan, known)
    run = Store(tmp_path).create(plan, 1, catalog=known, settings=[setting])
    cpu = {"cpu": 1}
    events = [Sample("gap_event_ns", 5e5, 1, 900, cpu), Sample("gap_event_ns", 2e5, 1, 30, cpu)]
    run.append(record(setting, 1, 0), events, known.benchmark("cpu.gaps"))
    assert [(p.at_ns, p.value, p.factors) for p in query.series(run)] == [
        (30, 2e5, '{"cpu":1}'),
        (900, 5e5, '{"cpu":1}'),
    ]


def test_an_empty_run_has_no_rows(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    assert query.trial_medians(run) == []
    assert query.histograms(run) == []
    assert query.series(run) == []
    assert list(run.tables()) == []


def test_the_same_run_gives_the_same_rows(tmp_path: Path) -> None:
    run, _ = filled(tmp_path)
    assert query.trial_medians(run) == query.trial_medians(run)
    first, second = query.histograms(run), query.histograms(run)
    assert first == second
    for a, b in zip(first, second, strict=True):
        assert (a.values.tolist(), a.counts.tolist()) == (b.values.tolist(), b.counts.tolist())
