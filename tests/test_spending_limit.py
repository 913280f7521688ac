"""What is rented is estimated before, and refused beyond the spending limit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.contract.toy_provisioner import ToyProvisioner, Toys

from nephoscope.core.errors import UsageError
from nephoscope.measure.provisioning import Quote, SpendingLimit, create_within

SPEC = Toys("rented", ("a", "b"))


def rent(
    folder: Path, *, per_h: float | None, hours: float | None, limit: SpendingLimit | None
) -> list[str]:
    said: list[str] = []
    provisioner = ToyProvisioner(folder, per_h=per_h)

    async def work() -> None:
        try:
            await create_within(provisioner, SPEC, hours=hours, limit=limit, say=said.append)
        finally:
            made = [one.name for one in provisioner.existing()]
            await provisioner.remove(SPEC.name)
            said.append(f"made: {made}")

    asyncio.run(work())
    return said


@pytest.mark.parametrize(
    ("hours", "limit", "part"),
    [
        (1.0, None, "no spending limit"),
        (None, SpendingLimit(5), "no time limit"),
        (1.5, SpendingLimit(3.9), "costs up to 4.00 USD"),
        (1.0, SpendingLimit(100, "EUR"), "in EUR, the price in USD"),
        (1.5, SpendingLimit(100, machine_hours=2.9), "up to 3 machine-hours, more than the limit"),
    ],
)
def test_nothing_is_rented_beyond_the_limit(
    hours: float | None, limit: SpendingLimit | None, part: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=part):
        rent(tmp_path, per_h=1.0, hours=hours, limit=limit)
    assert list(tmp_path.iterdir()) == []


def test_the_estimate_is_stated_before_anything_is_made(tmp_path: Path) -> None:
    said = rent(tmp_path, per_h=1.0, hours=1.5, limit=SpendingLimit(4))
    assert said[0].startswith("Estimated cost: up to 4.00 USD")
    assert said[1:] == ["a", "b", "made: ['rented']"]


def test_what_rents_nothing_needs_no_limit(tmp_path: Path) -> None:
    assert rent(tmp_path, per_h=None, hours=None, limit=None)[0] == "a"


def test_begun_steps_are_billed() -> None:
    hourly = Quote(2.0, once=1.0, step_h=1.0, minimum_h=1.0)
    assert [hourly.cost(hours) for hours in (0.1, 1.0, 1.01)] == [3.0, 3.0, 5.0]
    assert Quote(2.0).cost(0.25) == 0.5
