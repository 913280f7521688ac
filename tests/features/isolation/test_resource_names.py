"""The namer over the cells of a run: who is a canary, what is injected, what is named."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nephoscope.core.model import Estimate, TrialRecord
from nephoscope.features.isolation.naming import KERNEL_FLOORS, NONE, UNCLEAR
from nephoscope.features.isolation.naming_references import REFERENCES
from nephoscope.features.isolation.records import Cell
from nephoscope.features.isolation.resource_names import FEWEST, canary_of, named
from nephoscope.measure.plans.resources import RESOURCES

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
    return cast(TrialRecord, SimpleNamespace(params=victim.params, counters={}, around={}))


RECORDS = {canary: record(canary) for canary in CANARIES}


@pytest.mark.parametrize("canary", CANARIES)
def test_every_victim_is_the_canary_of_its_resource(canary: str) -> None:
    assert canary_of(cell(canary, 1.0), RECORDS) == canary
    assert canary_of(cell(canary, 1.0), {}) in ("", canary)


def test_what_all_victims_lose_is_named() -> None:
    reference = next(one for one in REFERENCES if one.resource == "net_receive")
    cells = [cell(c, math.exp(reference.effects.get(c, 0.0)), "net_receive") for c in CANARIES]
    (found,) = named(cells, RECORDS)
    assert (found.target, found.resource, found.neighbours) == ("v", "net_receive", 1)
    assert found.word == "net_receive"


COUNTERS = {
    "kernel_reads": "kernel_read_bytes_per_s",
    "kernel_writes": "kernel_written_bytes_per_s",
    "kernel_flushes": "kernel_flushes_per_s",
    "kernel_packets": "kernel_packets_per_s",
    "kernel_switches": "kernel_switches_per_s",
}


def with_kernel(reference: Any, times: float | None) -> tuple[list[Any], dict[str, Any]]:
    """Cells like a reference, and records whose kernel did so much more beside the load."""
    cells, records = [], dict(RECORDS)
    for canary in CANARIES:
        one = cast(Any, cell(canary, math.exp(reference.effects.get(canary, 0.0)), "hidden"))
        one.trials = tuple(f"{canary}-{n}" for n in range(3))
        for number, name in enumerate(one.trials):
            around = {"before": f"{canary}-{number}-b", "after": f"{canary}-{number}-a"}
            for key, grown in ((name, True), *((quiet, False) for quiet in around.values())):
                beside = {
                    counter: None
                    if times is None
                    else KERNEL_FLOORS[c] * (math.exp(reference.effects[c] * grown * times) - 1)
                    for c, counter in COUNTERS.items()
                }
                params = RECORDS[canary].params
                record = SimpleNamespace(params=params, counters=beside, around=around)
                records[key] = cast(TrialRecord, record)
        cells.append(one)
    return cells, records


@pytest.mark.parametrize("resource", ["disk_read", "disk_write", "fsync", "packets", "switches"])
def test_a_shared_kernel_tells_what_victims_alone_do_not(resource: str) -> None:
    reference = next(one for one in REFERENCES if one.resource == resource)
    (found,) = named(*with_kernel(reference, 1.0))
    assert found.word == resource
    (alone,) = named(*with_kernel(reference, None))
    # A kernel of its own: no counter of others' work, and the name is right or not given.
    assert alone.word in (resource, UNCLEAR, NONE)
    assert not any(name.startswith("kernel_") for name in alone.lost)


def test_nothing_lost_is_none_and_few_victims_are_not_named() -> None:
    quiet = [cell(canary, 1.0, "idle") for canary in CANARIES]
    assert named(quiet, RECORDS)[0].word == NONE
    assert named(quiet[: FEWEST - 1], RECORDS) == ()


def test_cells_without_an_interval_do_not_count() -> None:
    bare = Estimate(2.0, None, None, 0.95, 3, "ratio", "median")
    cells = [cell(canary, 1.0) for canary in CANARIES]
    for one in cells:
        one.factor = replace(bare)  # type: ignore[misc]
    assert named(cells, RECORDS) == ()


def test_loads_are_named_apart() -> None:
    cells: list[Any] = [cell(c, 1.0, resource) for c in CANARIES for resource in ("cpu", "idle")]
    assert [one.resource for one in named(cells, RECORDS)] == ["cpu", "idle"]
