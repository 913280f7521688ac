"""Load profiles: requests per second of equal parts of a trial."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import numbers, textfile

KINDS = ("step", "ramp", "sine", "day", "flash")
"""step: high in the middle third. ramp: up to the middle and down again. sine: one period, from the
low rate. day: 24 hours in the time of a trial, low at 4 and high at 16 o'clock, with a second
harmonic. flash: a flash crowd, which comes within 5 % of the time and decays."""
MAX_PARTS = 4000
_LEAST_PART_S = 0.5
_MAX_RATE = 1e6
_ALLOWED = (numbers.NumberRange(0, 1e10), numbers.NumberRange(0, _MAX_RATE))
_HINT = "Write a line `time_s,rate_per_s`, then one for each rate, such as `0,100`."


@dataclass(frozen=True, slots=True)
class Profile:
    """Rates in whole requests per second, of parts of equal length."""

    name: str
    part_s: float
    rates_per_s: tuple[int, ...]

    @property
    def duration_s(self) -> float:
        """Length of all parts."""
        return self.part_s * len(self.rates_per_s)


def profile_of(kind: str, low_per_s: float, high_per_s: float, duration_s: float) -> Profile:
    """Returns the profile of one of KINDS between two rates.

    UsageError for rates below 1/s or out of order.
    """
    if not 1 <= low_per_s <= high_per_s <= _MAX_RATE:
        raise UsageError(
            f"The rates {low_per_s:g}/s and {high_per_s:g}/s make no profile.",
            "Use a low rate from 1/s, and a high rate from there to 1,000,000/s.",
        )
    # Parts of the step end with its edges: a multiple of three of them.
    count = min(3 * max(1, math.floor(duration_s / _LEAST_PART_S / 3)), MAX_PARTS - MAX_PARTS % 3)
    shares = [_share(kind, (place + 0.5) / count) for place in range(count)]
    rates = tuple(round(low_per_s + share * (high_per_s - low_per_s)) for share in shares)
    return Profile(kind, duration_s / count, rates)


def _share(kind: str, at: float) -> float:
    """Returns the share of the difference of both rates at a share of the time."""
    if kind == "step":
        return 1.0 if 1 / 3 <= at < 2 / 3 else 0.0
    if kind == "ramp":
        return 1 - abs(2 * at - 1)
    if kind == "sine":
        return (1 - math.cos(2 * math.pi * at)) / 2
    if kind == "day":
        hours = 24 * at
        phase = 2 * math.pi * (hours - 16) / 24
        # Its extremes are those of the sum: 1 at 16 o'clock, and the lowest about 4 o'clock.
        return max(0.0, min(1.0, (math.cos(phase) + 0.25 * math.cos(2 * phase) + 0.75) / 2))
    begins, peaks = 0.25, 0.30
    if at < begins:
        return 0.0
    if at < peaks:
        return (at - begins) / (peaks - begins)
    return math.exp(-(at - peaks) / 0.15)


def profile_of_file(file: Path, duration_s: float | None) -> Profile:
    """Returns the profile of a recorded trace: columns `time_s` and `rate_per_s`.

    Each rate holds until the next line; the last one as long as the one before. duration_s:
    compresses or stretches the times; None keeps them. UsageError for what is no trace.
    """
    times, rates = _trace(file)
    last_s = times[-1] - times[-2]
    own_s = times[-1] + last_s - times[0]
    factor = 1.0 if duration_s is None else duration_s / own_s
    steps = [after - before for before, after in pairwise(times)]
    part_s = max(min(steps) * factor, own_s * factor / MAX_PARTS, _LEAST_PART_S)
    count = max(1, round(own_s * factor / part_s))
    part_s = own_s * factor / count
    parts = []
    for place in range(count):
        at_s = times[0] + (place + 0.5) * part_s / factor
        parts.append(rates[bisect.bisect_right(times, at_s) - 1])
    return Profile(file.name, part_s, tuple(max(1, round(rate)) for rate in parts))


def _trace(file: Path) -> tuple[Sequence[float], Sequence[float]]:
    text = textfile.read(file, "trace", UsageError)
    columns = ("time_s", "rate_per_s")
    times: list[float] = []
    rates: list[float] = []
    for where, row in textfile.csv_records(text, str(file), columns, columns):
        for name, allowed, into in zip(columns, _ALLOWED, (times, rates), strict=True):
            try:
                into.append(allowed.read(row[name]))
            except ValueError as error:
                raise UsageError(f"{where}: {name} '{row[name]}' {error}.", _HINT) from None
        if len(times) > 1 and times[-1] <= times[-2]:
            raise UsageError(f"{where}: the times do not ascend.", _HINT)
    if len(times) < 2:
        raise UsageError(f"{file} has {len(times)} rates; a trace needs two.", _HINT)
    return times, rates
