"""A survey of several machines loads each up to its own CPUs."""

from __future__ import annotations

from nephoscope import catalog
from nephoscope.measure import plans
from nephoscope.measure.plans import fit_to_machines
from nephoscope.measure.targets.kinds.ssh import SshRecord

HERE = SshRecord(name="small", address="s")
THERE = SshRecord(name="large", address="l")


def levels(plan: plans.Plan) -> dict[tuple[str, ...], set[int]]:
    """Targets -> the levels of `threads` that they are measured at, over all entries."""
    found: dict[tuple[str, ...], set[int]] = {}
    for entry in plan.benchmarks:
        if "threads" in entry.factors:
            found.setdefault(entry.on, set()).update(entry.factors["threads"])
    return found


def test_one_target_gets_its_own_levels() -> None:
    plan = fit_to_machines(plans.survey("quick", cpus=2), [THERE], {"large": 6})
    assert plan.targets == (THERE,)
    assert levels(plan) == {(): {1, 2, 4, 6}}


def test_what_only_one_machine_has_is_measured_there_alone() -> None:
    plan = fit_to_machines(plans.survey("quick", cpus=1), [HERE, THERE], {"small": 2, "large": 8})
    assert levels(plan) == {(): {1, 2}, ("large",): {4, 8}}
    settings = plans.expand(plan, catalog.load())
    for setting in settings:
        if setting.factors.get("threads") in (4, 8):
            assert setting.targets == ("large",)
        else:
            assert setting.targets == ("small", "large")


def test_equal_machines_share_every_level() -> None:
    plan = fit_to_machines(plans.survey("quick", cpus=1), [HERE, THERE], {"small": 4, "large": 4})
    assert levels(plan) == {(): {1, 2, 4}}
