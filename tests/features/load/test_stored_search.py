"""A search for a capacity as it is stored: found by each of its runs, by the page and by `size`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.features.sizing.made import answer, one, shop
from tests.results.made import NULL_PLAN, make_run

from nephoscope.core.model import Estimate, Sample, Setting
from nephoscope.features.load import stored_search
from nephoscope.features.load.records import CapacityResult
from nephoscope.serve import answers
from nephoscope.store import Store, StoredRun


def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 1.0)]


@pytest.fixture
def searched(tmp_path: Path) -> list[StoredRun]:
    """Two runs of one search for 400/s at p99 < 50 ms, and one run besides."""
    runs = [make_run(tmp_path / "store", NULL_PLAN, sampler, rounds=1) for _ in range(3)]
    estimate = Estimate(400.0, 390.0, 410.0, 0.95, 9, "per_s", "planted")
    result = CapacityResult(
        url="http://server/",
        objective="p99 < 50.0 ms",
        connections=64,
        capacity_per_s=estimate,
        sentence="p99 < 50.0 ms holds up to 400 requests per second.",
        closed_loop_per_s=900.0,
        tried=(),
        excluded_trials=0,
        runs=tuple(run.id for run in runs[:2]),
        limit_ns=50_000_000,
        stages=(),
    )
    stored_search.write(runs[:2], result)
    return runs


def test_each_run_leads_to_the_search_and_no_other_does(
    searched: list[StoredRun], tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    first, second, other = searched
    assert [run.id for run in stored_search.runs_of(store, second)] == [first.id, second.id]
    assert [run.id for run in stored_search.runs_of(store, other)] == [other.id]
    search = json.loads(answers.capacity(store, first.id).body)["search"]
    assert search["capacity_per_s"]["value"] == 400.0
    assert json.loads(answers.capacity(store, other.id).body)["search"] is None


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"schema_version": 99, "runs": []}', '{"schema_version": 1}']
)
def test_a_damaged_search_is_none(text: str, searched: list[StoredRun], tmp_path: Path) -> None:
    first = searched[0]
    (first.path / stored_search.FILE).write_text(text)
    store = Store(tmp_path / "store")
    assert [run.id for run in stored_search.runs_of(store, first)] == [first.id]


def test_one_run_of_a_search_is_a_capacity_of_a_type(
    searched: list[StoredRun], tmp_path: Path
) -> None:
    name = searched[1].id
    types = one(capacity_per_s=None, capacity_runs=[name])
    analysis = answer(tmp_path, shop(types=types))
    (entry,) = (entry for entry in analysis.inputs if entry.name == "capacity of a/one")
    assert (entry.estimate.low, entry.estimate.value) == (390.0, 400.0)
    assert entry.source.startswith(f"search of {name}, runs {searched[0].id} to {name}, for p99")
