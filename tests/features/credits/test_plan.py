"""The plan of a measurement of burst credits."""

from __future__ import annotations

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.credits.plan import CreditRequest, plan_of
from nephoscope.measure.targets.kinds.rented import RentedRecord


def _machines(*types: str, count: int = 1) -> RentedRecord:
    return RentedRecord(
        name="m", provider=("ec2",), region=("r",), type=types, image=("i",), count=count
    )


def test_a_network_is_loaded_from_the_first_machine_of_each_type_to_the_second() -> None:
    request = CreditRequest("network", 60.0)
    assert request.machines == 2
    plan = plan_of([_machines("small", "large", count=2)], request, budget=300.0)
    ends = [(entry.on, entry.peer) for entry in plan.benchmarks]
    assert [tuple(map(str, (on[0], peer))) for on, peer in ends] == [
        ("m-small-1", "m-small-2"),
        ("m-large-1", "m-large-2"),
    ]


def test_other_loads_need_one_machine_and_cycles_need_a_pause() -> None:
    request = CreditRequest("disk", 60.0)
    assert request.machines == 1
    (entry,) = plan_of([_machines("small")], request, budget=300.0).benchmarks
    assert not entry.peer
    with pytest.raises(UsageError, match="need a pause between them"):
        plan_of([_machines("small")], CreditRequest("cpu", 60.0, cycles=2))
