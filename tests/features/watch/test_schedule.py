"""Moments of schedules: intervals, cron expressions, jitter, clock steps."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.watch.made import START_S, FakeClock

from nephoscope.core.errors import UsageError
from nephoscope.features.watch.schedule import ClockSteps, Cron, IntervalSchedule

moments = st.floats(1e9, 4e9)


@given(moments, st.sampled_from([1.0, 7.0, 60.0, 300.0, 86_400.0]))
def test_moments_of_an_interval_are_its_multiples(at_s: float, every_s: float) -> None:
    times = IntervalSchedule(every_s)
    assert times.until(at_s) <= at_s + 1e-5 < times.after(at_s) + 1e-4
    assert times.after(at_s) - times.until(at_s) == every_s
    assert times.until(times.after(at_s)) == times.after(at_s)
    assert times.count(at_s, at_s + 10 * every_s) == 10
    assert times.count(at_s, at_s - 10 * every_s) == 0


@given(moments)
def test_moments_of_a_cron_expression(at_s: float) -> None:
    times = Cron("*/15 8-18 * * MON-FRI", "UTC")
    after, until = times.after(at_s), times.until(at_s)
    assert until <= at_s < after
    assert times.until(after) == after
    assert times.count(until, after) == 1


def test_a_cron_expression_follows_daylight_saving_time() -> None:
    zone = ZoneInfo("Europe/Berlin")
    times = Cron("30 2 * * *", "Europe/Berlin")
    at_s = datetime(2026, 3, 27, 12, tzinfo=zone).timestamp()
    found = []
    for _ in range(3):
        at_s = times.after(at_s)
        found.append(datetime.fromtimestamp(at_s, zone))
    # On the 29th there is no 2:30: as Debian's cron does, it is made up for after the change.
    assert [(one.day, one.hour, one.minute) for one in found] == [
        (28, 2, 30),
        (29, 3, 0),
        (30, 2, 30),
    ]


@pytest.mark.parametrize(
    ("expression", "zone", "sentence"),
    [
        ("every day", "UTC", "is no usable cron expression"),
        ("0 0 30 2 *", "UTC", "is no usable cron expression"),
        ("61 * * * *", "UTC", "Bad minute"),
        ("", "UTC", "is no usable cron expression"),
        ("0 0 * * *", "Mars/Olympus", "there is no time zone 'Mars/Olympus'"),
        ("0 0 * * *", "../../etc/passwd", "there is no time zone"),
    ],
)
def test_wrong_expressions_are_one_sentence(expression: str, zone: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Cron(expression, zone)


@given(moments, st.floats(0.0, 1.0), st.integers(0, 9))
def test_delays_are_random_within_the_jitter_and_repeat_themselves(
    at_s: float, jitter: float, seed: int
) -> None:
    schedule = IntervalSchedule(60.0, jitter, seed)
    start = schedule.next(at_s)
    assert start.at_s > at_s
    assert start.due_s <= start.at_s <= start.due_s + 60 * jitter
    assert schedule.next(start.at_s - 1e-3) == start, "a restart before a start keeps it"
    assert schedule.next(start.at_s).due_s > start.due_s, "a start is used once"


def test_delays_differ_from_start_to_start_and_from_seed_to_seed() -> None:
    def delays(seed: int) -> list[float]:
        schedule, at_s, found = IntervalSchedule(60.0, 0.5, seed), START_S, []
        for _ in range(50):
            start = schedule.next(at_s)
            at_s = start.at_s
            found.append(start.at_s - start.due_s)
        return found

    assert len({round(one, 3) for one in delays(1)}) > 45
    assert delays(1) == delays(1) != delays(2)


def test_steps_of_the_wall_clock_are_noticed_once() -> None:
    clock = FakeClock(steps=[(10.0, -3600.0)])
    steps = ClockSteps(clock)
    clock.wait(5.0)
    assert steps.step_s() is None
    clock.wait(5.0)
    assert steps.step_s() == pytest.approx(-3600)
    clock.wait(5.0)
    assert steps.step_s() is None
