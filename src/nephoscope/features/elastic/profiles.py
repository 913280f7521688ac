"""Load profiles: requests per second of equal parts of a trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.reading import numbers, textfile

KINDS = ("step", "ramp", "sine", "day", "flash")
"""step: high in the middle third. ramp: up to the middle and down again. sine: one period, from the
low rate. day: 24 hours in the time of a trial, low at 4 and high at 16 o'clock, with a second
harmonic. flash: a sudden peak, which comes within 5 % of the time and decays."""
MAX_PARTS = 4000
_LEAST_PART_S = 0.5
_SHORTEST_S, _LONGEST_S = 5.0, 86_400.0
"""As `--duration`."""
_MAX_RATE = 1e6
_ALLOWED = (numbers.NumberRange(0, 1e10), numbers.NumberRange(0, _MAX_RATE))
_HINT = "Write a line `time_s,rate_per_s`, then one for each rate, such as `0,100`."


@dataclass(frozen=True, slots=True)
class LoadProfile:
    """Rates in whole requests per second, of parts of equal length."""

    name: str
    part_s: float
    rates_per_s: tuple[int, ...]

    @property
    def duration_s(self) -> float:
        """Length of all parts."""
        return self.part_s * len(self.rates_per_s)


def profile_of(kind: str, low_per_s: float, high_per_s: float, duration_s: float) -> LoadProfile:
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
    return LoadProfile(kind, duration_s / count, rates)


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


def profile_of_file(file: Path, duration_s: float | None) -> LoadProfile:
    """Returns the profile of a recorded trace: columns `time_s` and `rate_per_s`.

    Each rate holds until the next line; the last one as long as the one before. A part has the
    mean rate of its time, so that no request is lost where a trace has more lines than a profile
    has parts; 1/s where the trace has fewer. duration_s: compresses or stretches the times; None
    keeps them. UsageError for what is no trace, and for one that is too short or too long.
    """
    times, rates = _trace(file)
    last_s = times[-1] - times[-2]
    own_s = times[-1] + last_s - times[0]
    length_s = own_s if duration_s is None else duration_s
    if not _SHORTEST_S <= length_s <= _LONGEST_S:
        raise UsageError(
            f"{file} lasts {units.format_value(own_s * 1e9, 'ns')}; a trial takes 5 s to 24 h.",
            "Compress or stretch it by --duration.",
        )
    steps = [after - before for before, after in pairwise(times)]
    part_s = max(min(steps) * length_s / own_s, length_s / MAX_PARTS, _LEAST_PART_S)
    count = max(1, round(length_s / part_s))
    ends = np.array([*times, times[-1] + last_s])
    requests = np.concatenate(([0.0], np.cumsum(np.diff(ends) * np.array(rates))))
    edges = np.linspace(ends[0], ends[-1], count + 1)
    means = np.diff(np.interp(edges, ends, requests)) / np.diff(edges)
    return LoadProfile(
        file.name, length_s / count, tuple(max(1, round(rate)) for rate in means.tolist())
    )


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
