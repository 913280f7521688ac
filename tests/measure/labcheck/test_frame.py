"""Verdicts of checks: what holds, what fails, what this machine has not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.tools import needs

from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.measure.lab import files
from nephoscope.measure.lab.handle import Lab
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.labcheck import frame
from nephoscope.measure.labcheck.frame import FAILS, HOLDS, NOT_HERE, Check, Measured, Outcome


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done with labs: names that came up, and those that went down."""
    done: list[str] = []

    async def up(topology: Any, *, say: Callable[[str], None]) -> str:
        done.append(f"up {topology.name}")
        return str(topology.name)

    async def down(name: str) -> None:
        done.append(f"down {name}")

    monkeypatch.setattr(frame, "PAUSES_S", (0,))
    monkeypatch.setattr(LABS, "create", up)
    monkeypatch.setattr(LABS, "remove", down)
    return done


def check(values: Iterator[Measured | Exception], **more: Any) -> Check:
    async def measure(lab: Lab, check: Check) -> Measured:
        value = next(values)
        if isinstance(value, Exception):
            raise value
        return value

    settings: dict[str, Any] = {
        "id": "x",
        "mechanism": "none",
        "what": "nothing",
        "set": 0.5,
        "unit": "ratio",
        "low": 0.48,
        "high": 0.52,
        "how": "",
        "topology": {"hosts": {"a": {}}},
        **more,
    }
    return Check(measure=measure, **settings)


def seen(value: float, half: float = 0.0) -> Measured:
    return Measured(value, value - half, value + half, 3)


def outcome(*values: Measured | Exception, **more: Any) -> Outcome:
    said: list[str] = []
    return asyncio.run(frame.run(check(iter(values), **more), said.append))


def test_a_value_within_its_bound_holds_and_its_lab_is_gone(labs: list[str]) -> None:
    found = outcome(seen(0.51))
    assert (found.verdict, len(found.attempts)) == (HOLDS, 1)
    assert [word.split()[0] for word in labs] == ["up", "down"]
    assert labs[0].split()[1] == labs[1].split()[1]


def test_a_failure_is_tried_again_within_its_bound_and_every_attempt_is_kept(
    labs: list[str],
) -> None:
    found = outcome(seen(0.60), seen(0.55), seen(0.49))
    assert found.verdict == HOLDS
    assert [one.value for one in found.attempts] == [0.60, 0.55, 0.49]
    assert len(labs) == 6
    found = outcome(seen(0.60), seen(0.55), seen(0.53), seen(0.50))
    assert (found.verdict, len(found.attempts)) == (FAILS, 3)
    assert "in 3 of 3 attempts" in found.reason


@pytest.mark.parametrize(("value", "verdict"), [(0.47, HOLDS), (0.60, FAILS), (0.40, FAILS)])
def test_an_interval_may_have_to_hold_what_was_set(
    labs: list[str], value: float, verdict: str
) -> None:
    assert outcome(seen(value, 0.05), holds_set=True, attempts=1).verdict == verdict


def test_what_this_machine_lacks_is_no_pass(labs: list[str]) -> None:
    found = outcome(Lacking("no controller"))
    assert (found.verdict, found.measured) == (NOT_HERE, None)
    assert found.reason == "no controller"
    assert labs[-1].startswith("down")


def test_a_check_that_cannot_be_carried_out_fails_with_the_reason(labs: list[str]) -> None:
    found = outcome(RunFailed("The probe died."))
    assert (found.verdict, found.reason) == (FAILS, "The probe died.")
    assert labs[-1].startswith("down")


def test_the_exit_code_is_that_of_the_worst(labs: list[str]) -> None:
    holds, fails = outcome(seen(0.5)), outcome(seen(0.9), attempts=1)
    lacks = outcome(Lacking("x"))
    assert frame.exit_code([holds]) == 0
    assert frame.exit_code([holds, lacks]) == 4
    assert frame.exit_code([holds, lacks, fails]) == 1


@needs("ip", "tc")
@pytest.mark.usefixtures("root_only")
def test_a_rate_that_this_box_carries_passes_and_another_is_refused() -> None:
    from nephoscope.core.errors import UsageError

    def topology(rate: str) -> Any:
        wire = {"between": ["a", "lan"], "rate": rate}
        values = {"version": 1, "name": "t", "hosts": {"a": {}, "b": {}}, "links": {"wire": wire}}
        return files.from_values(values)

    asyncio.run(frame.require_carried(topology("10Mbit/s")))
    with pytest.raises(UsageError, match=r"links.wire: 399 Gbit/s cannot hold here"):
        asyncio.run(frame.require_carried(topology("399Gbit/s")))
