"""How long trials took, out of journals."""

from __future__ import annotations

from pathlib import Path

from nephoscope import catalog
from nephoscope.measure.plans.estimate import earlier_runs_key
from nephoscope.results.earlier_runs import times_of_earlier_runs
from nephoscope.store import Store

from .made import make_run

PLAN = 'name: p\nbenchmarks: [{benchmark: "null", factors: {samples: [1, 2]}}]\n'


def test_trials_that_ended_are_known_by_their_parameters(tmp_path: Path) -> None:
    run = make_run(tmp_path, PLAN, lambda *_: [], rounds=1)
    for trial, seconds in (
        ("r0001-s000-local", 2.0),
        ("r0002-s000-local", 4.0),
        ("r0001-s001-x", 7),
    ):
        run.event({"event": "trial_ended", "trial": trial, "spent_s": seconds})
    run.event({"event": "trial_ended", "trial": "r0001-s009-local", "spent_s": 1.0})
    run.event({"event": "trial_ended", "trial": "odd"})
    run.event({"event": "trial_started", "trial": "r0001-s000-local"})
    spec = catalog.load().benchmark("null")
    found = times_of_earlier_runs(Store(tmp_path))
    assert found[earlier_runs_key(spec, {"samples": 1})] == [2.0, 4.0]
    assert found[earlier_runs_key(spec, {"samples": 2})] == [7.0]
    assert len(found) == 2


def test_a_run_whose_benchmarks_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    for _ in range(2):
        run = make_run(tmp_path, PLAN, lambda *_: [], rounds=1)
        run.event({"event": "trial_ended", "trial": "r0001-s000-local", "spent_s": 2.0})
    specs = [
        {**spec, "metrics": [{**metric, "better": "?"} for metric in spec["metrics"]]}
        for spec in run.manifest.specs
    ]
    run.update(specs=specs)
    assert list(times_of_earlier_runs(Store(tmp_path)).values()) == [[2.0]]


def test_an_empty_store_knows_nothing(tmp_path: Path) -> None:
    assert times_of_earlier_runs(Store(tmp_path / "none")) == {}
    assert not (tmp_path / "none").exists()
