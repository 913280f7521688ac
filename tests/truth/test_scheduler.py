"""Scheduler inference against limits that are set in a lab.

The class of each setting is declared by what is set, before anything is measured (see
scheduler_settings). `make test` names recordings of one setting of each class; `make test-all`
draws sixty settings afresh and counts, and sixty from wider ranges. NEPHOSCOPE_TEST_SEED draws the
same settings again.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
import scheduler_lab
from scheduler_judging import Judged, judged, offered_s, read, recorded_setting, table, told
from scheduler_settings import CLASSES, WIDE_CLASSES, draw, draw_wide
from tests import hardware
from tests.conftest import ROOT
from tests.hardware import Feature
from tests.rates import holds_rate
from tests.tools import needs
from trials import needs_root

from nephoscope.features.scheduler import plan as scheduler_plan
from nephoscope.measure.lab.limits.cpu import machine_cpus

NETWORK = "10.81.0.0/16"
SETTINGS, WIDE_SETTINGS = 60, 60
RECORDED = sorted((ROOT / "tests" / "golden" / "scheduler").glob("*.json.gz"))
"""One setting of each class, as `benchmarks/scheduler.py record` writes them."""


def replayed(path: Path) -> Judged:
    """Names a recorded setting."""
    values = read(path)
    return judged(recorded_setting(values), values["trials"])


@pytest.mark.together
def test_the_plan_measures_for_at_most_ten_seconds() -> None:
    plan = scheduler_plan.scheduler()
    assert sum(entry.params["duration_ns"] for entry in plan.benchmarks) <= 10_000_000_000


@pytest.mark.together
def test_a_recording_of_each_class_is_there() -> None:
    names = {recorded_setting(read(path)).name for path in RECORDED}
    assert names == {*CLASSES, *WIDE_CLASSES}


@pytest.mark.together
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.partition(".")[0])
def test_a_recorded_setting_is_named_and_fitted(path: Path) -> None:
    named = replayed(path)
    assert named.misses == 0, told(named)
    assert named.share_fits is not False, told(named)
    assert named.period_fits is not False, told(named)


needs_lab = hardware.needs(Feature.CPUS, len(machine_cpus()) >= 2)
"""One budget of both and one of each differ on two CPUs."""


def drawn_seed() -> int:
    """Returns the given seed or a new one; prints it."""
    given = os.environ.get("NEPHOSCOPE_TEST_SEED")
    seed = int(given) if given else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")  # noqa: T201
    return seed


@pytest.mark.slow
@needs_root
@needs_lab
@needs("ip", "tc")
def test_settings_of_wider_ranges_and_neighbours_are_named() -> None:
    """90 % get their name, 5 % a wrong one, after the second observation that *unclear* offers."""
    cases = []
    for setting in draw_wide(drawn_seed(), WIDE_SETTINGS):
        name = f"st-{os.getpid()}"
        case = judged(setting, scheduler_lab.measure(name, NETWORK, setting))
        print(told(case))  # noqa: T201
        if case.misses == 1 and (duration_s := offered_s(case.found)) is not None:
            case = judged(setting, scheduler_lab.measure(name, NETWORK, setting, duration_s))
            print(f"  after {duration_s:g} s: {told(case)}")  # noqa: T201
        cases.append(case)
    print(table(cases))  # noqa: T201
    holds_rate("named right", [case.misses == 0 for case in cases], 0.90)
    holds_rate("not named wrong", [case.misses < 2 for case in cases], 0.95)


@pytest.mark.slow
@needs_root
@needs_lab
@needs("ip", "tc")
def test_sixty_settings_are_named_and_fitted() -> None:
    """95 % get their name; the share is within 1.5 points and the period within 10 % in 90 %."""
    cases = []
    for setting in draw(drawn_seed(), SETTINGS):
        trials = scheduler_lab.measure(f"st-{os.getpid()}", NETWORK, setting)
        cases.append(judged(setting, trials))
        print(told(cases[-1]))  # noqa: T201
    print(table(cases))  # noqa: T201
    # *Unclear* is one miss, a wrong name is two.
    assert sum(case.misses for case in cases) <= 0.05 * len(cases), [
        told(case) for case in cases if case.misses
    ]
    for name, fits in (
        ("share within 1.5 points", [case.share_fits for case in cases]),
        ("period within 10 %", [case.period_fits for case in cases]),
    ):
        known = [fit for fit in fits if fit is not None]
        assert sum(known) >= 0.90 * len(known), name
