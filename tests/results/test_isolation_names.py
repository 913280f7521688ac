"""The namer over the cells of a run: who is a canary, what is injected, what is named."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nephoscope.analysis.naming import NONE
from nephoscope.analysis.naming_references import REFERENCES
from nephoscope.model import Estimate, TrialRecord
from nephoscope.plans.resources import RESOURCES
from nephoscope.results.isolation_names import FEWEST, canary_of, named
from nephoscope.results.isolation_records import Cell

CANARIES = [name for name, one in RESOURCES.items() if one.victim is not None]


def cell(canary: str, factor: float, resource: str = "memory") -> Cell:
    victim = RESOURCES[canary].victim
    assert victim is not None
    found = SimpleNamespace(
        victim=SimpleNamespace(benchmark=victim.benchmark, metric=victim.metric, target="v"),
        resource=resource,
        intensity=1.0,
        neighbours=1,
        factor=Estimate(factor, factor * 0.99, factor * 1.01, 0.95, 8, "ratio", "median"),
        trials=(canary,),
    )
    return cast(Cell, found)


def record(canary: str) -> TrialRecord:
    victim = RESOURCES[canary].victim
    assert victim is not None
    return cast(TrialRecord, SimpleNamespace(params=victim.params))


RECORDS = {canary: record(canary) for canary in CANARIES}


@pytest.mark.parametrize("canary", CANARIES)
def test_every_victim_is_the_canary_of_its_resource(canary: str) -> None:
    assert canary_of(cell(canary, 1.0), RECORDS) == canary
    assert canary_of(cell(canary, 1.0), {}) in ("", canary)


def test_what_all_victims_lose_is_named() -> None:
    reference = next(one for one in REFERENCES if one.resource == "net_receive")
    cells = [cell(c, math.exp(reference.effects.get(c, 0.0)), "net_receive") for c in CANARIES]
    (found,) = named(cells, RECORDS)
    assert (found["target"], found["resource"], found["neighbours"]) == ("v", "net_receive", 1)
    assert found["word"] == "net_receive"


def test_nothing_lost_is_none_and_few_victims_are_not_named() -> None:
    quiet = [cell(canary, 1.0, "idle") for canary in CANARIES]
    assert named(quiet, RECORDS)[0]["word"] == NONE
    assert named(quiet[: FEWEST - 1], RECORDS) == ()


def test_cells_without_an_interval_do_not_count() -> None:
    bare = Estimate(2.0, None, None, 0.95, 3, "ratio", "median")
    cells = [cell(canary, 1.0) for canary in CANARIES]
    for one in cells:
        one.factor = replace(bare)  # type: ignore[misc]
    assert named(cells, RECORDS) == ()


def test_loads_are_named_apart() -> None:
    cells: list[Any] = [cell(c, 1.0, resource) for c in CANARIES for resource in ("cpu", "idle")]
    assert [one["resource"] for one in named(cells, RECORDS)] == ["cpu", "idle"]
