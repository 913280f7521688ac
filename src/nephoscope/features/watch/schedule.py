"""When repetitions start: at multiples of an interval or at the times of a cron expression.

A schedule is a function of the wall clock alone: after a clock step or a restart the next start is
the next one of the time that the clock shows then. What was missed is not made up for.
"""

from __future__ import annotations

import math
import random
import time
import zoneinfo
from abc import ABC, abstractmethod
from datetime import datetime

from cronsim import CronSim, CronSimError

from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass

MAX_COUNT = 100_000
"""Starts that are counted one by one; of a minute's schedule those of ten weeks."""
STEP_S = 1.0
"""Difference between wall and monotonic clock from which the wall clock counts as stepped."""
_ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class Start:
    """A start: when the schedule has it, and when it begins with its random delay; epoch s."""

    due_s: float
    at_s: float


class Schedule(ABC):
    """Moments in seconds since the epoch, and starts at them with a random delay.

    jitter: largest delay as a ratio of the time to the next moment. seed: determines the delays,
    together with the moment.
    """

    def __init__(self, jitter: float = 0.0, seed: int = 0) -> None:
        self._jitter = jitter
        self._seed = seed

    @abstractmethod
    def after(self, at_s: float) -> float:
        """Returns the first moment after a moment."""

    @abstractmethod
    def until(self, at_s: float) -> float:
        """Returns the last moment at or before a moment."""

    @abstractmethod
    def count(self, after_s: float, until_s: float) -> int:
        """Returns the number of moments after one and not after another."""

    def next(self, now_s: float) -> Start:
        """Returns the first start that lies ahead."""
        due_s = self.until(now_s) if self._jitter else self.after(now_s)
        while True:
            start = Start(due_s, due_s + self._delay_s(due_s))
            if start.at_s > now_s:
                return start
            due_s = self.after(due_s)

    def interval_s(self, due_s: float) -> float:
        """Returns the time from a moment to the next one."""
        return self.after(due_s) - due_s

    def _delay_s(self, due_s: float) -> float:
        if not self._jitter:
            return 0.0
        drawn = random.Random(f"{self._seed}-{due_s:.3f}").random()
        return drawn * self._jitter * self.interval_s(due_s)


class IntervalSchedule(Schedule):
    """Multiples of an interval since 1970-01-01 00:00 UTC."""

    def __init__(self, every_s: float, jitter: float = 0.0, seed: int = 0) -> None:
        super().__init__(jitter, seed)
        self._every_s = every_s

    def _number(self, at_s: float) -> int:
        return math.floor((at_s + _ROUNDING_S) / self._every_s)

    def after(self, at_s: float) -> float:
        """See `Schedule.after`."""
        return (self._number(at_s) + 1) * self._every_s

    def until(self, at_s: float) -> float:
        """See `Schedule.until`."""
        return self._number(at_s) * self._every_s

    def count(self, after_s: float, until_s: float) -> int:
        """See `Schedule.count`."""
        return max(0, self._number(until_s) - self._number(after_s))


class Cron(Schedule):
    """The times of a cron expression, as Debian's cron reads it, in a time zone."""

    def __init__(self, expression: str, time_zone: str, jitter: float = 0.0, seed: int = 0) -> None:
        super().__init__(jitter, seed)
        self._expression = expression
        try:
            self._zone = zoneinfo.ZoneInfo(time_zone)
        except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
            raise UsageError(
                f"--time-zone: there is no time zone '{time_zone[:80]}' on this host.",
                "Use a name such as Europe/Berlin (Debian: package tzdata).",
            ) from None
        try:
            self.after(time.time())
        except (CronSimError, StopIteration, OverflowError) as error:
            reason = str(error) or "no such time comes"
            raise UsageError(
                f"--cron: '{expression[:80]}' is no usable cron expression: {reason}.",
                "Use five fields, for example '*/15 8-18 * * MON-FRI'.",
            ) from None

    def _at(self, at_s: float) -> datetime:
        return datetime.fromtimestamp(at_s, self._zone)

    def after(self, at_s: float) -> float:
        """See `Schedule.after`."""
        return next(CronSim(self._expression, self._at(at_s))).timestamp()

    def until(self, at_s: float) -> float:
        """See `Schedule.until`."""
        later = self._at(at_s + 1)  # the library goes back to moments before the one it is given
        return next(CronSim(self._expression, later, reverse=True)).timestamp()

    def count(self, after_s: float, until_s: float) -> int:
        """See `Schedule.count`, at most `MAX_COUNT`."""
        number = 0
        for moment in CronSim(self._expression, self._at(after_s)):
            if moment.timestamp() > until_s or number == MAX_COUNT:
                break
            number += 1
        return number


class Clock:
    """The machine's clocks; tests have one that runs faster."""

    def now_s(self) -> float:
        """Returns the wall clock, seconds since the epoch."""
        return time.time()

    def monotonic_s(self) -> float:
        """Returns a clock that nobody sets."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Waits."""
        time.sleep(max(0.0, seconds))


class ClockSteps:
    """Notices that the wall clock was set, or that the machine was suspended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_s = clock.now_s() - clock.monotonic_s()

    def step_s(self) -> float | None:
        """Returns by how much the wall clock was set since the last call; None if it was not."""
        offset_s = self._clock.now_s() - self._clock.monotonic_s()
        step_s = offset_s - self._offset_s
        if abs(step_s) < STEP_S:
            return None
        self._offset_s = offset_s
        return step_s
