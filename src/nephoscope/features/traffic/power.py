"""The trace of a power meter beside the model of a radio: energy by state, in joules.

The traffic and the model state when the radio is in which state; the trace states the power. A
phone needs power besides its radio, so that both are compared above what they need while the radio
sleeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.reading import textfile
from nephoscope.core.reading.numbers import NumberRange
from nephoscope.features.traffic.energy import Radio, RadioInterval, intervals_of
from nephoscope.features.traffic.shape import Burst
from nephoscope.stats.statistics import means
from nephoscope.stats.statistics.values import Array

_COLUMNS = ("time_s", "current_a", "current_ma", "voltage_v")
_TIME = NumberRange(-1e11, 1e11)
_CURRENT_A = NumberRange(-100, 100)
"""A negative current charges the battery."""
_VOLTAGE_V = NumberRange(0, 1000)
_TRACE_BYTES = 64 << 20
_SAMPLES_MIN = 10
_GAP_STEPS = 10
"""A pause of more median intervals than this is missing data."""
_LAG_S = 2.0
_GRID_POINTS = 20_000
STATES = ("promotion", "active", "tail", "sleep")


@dataclass(frozen=True, slots=True)
class PowerTrace:
    """Power over time: times_s ascending, watts at them. step_s: median interval of samples."""

    source: str
    times_s: Array
    watts: Array
    step_s: float

    def energy_j(self, start_s: float, end_s: float) -> float:
        """Returns the integral of the power (trapezoids) between two times of the trace."""
        areas = np.diff(self.times_s) * (self.watts[1:] + self.watts[:-1]) / 2
        sums = np.concatenate([[0.0], np.cumsum(areas)])
        first, last = np.interp([start_s, end_s], self.times_s, sums)
        return float(last - first)

    def shifted(self, by_s: float) -> PowerTrace:
        """Returns the trace with another beginning of time."""
        return PowerTrace(self.source, self.times_s + by_s, self.watts, self.step_s)


@dataclass(frozen=True, slots=True)
class StateEnergy:
    """Energy in one state of a radio. measured_j: of the whole trace then, with all of the device.

    above_sleep_j: measured, less the power of sleep; modelled_j: likewise of the model. Null where
    the trace never sleeps.
    """

    state: str
    duration_s: float
    measured_j: float
    above_sleep_j: float | None
    modelled_j: float


@dataclass(frozen=True, slots=True)
class PowerComparison:
    """A trace beside the model of one radio.

    sleep_w: mean power while the radio sleeps by the model; null if it never does. transfers: from
    sleep to sleep, those within the trace. transfer_j: measured above sleep, the mean of them; null
    without sleep. ratio: measured over modelled. lag_s: by how much later the trace follows the
    model best; null where one of them is constant.
    """

    source: str
    radio: str
    samples: int
    step_s: float
    sleep_w: float | None
    states: tuple[StateEnergy, ...]
    transfers: int
    transfer_j: Estimate | None
    ratio: Estimate | None
    lag_s: float | None
    notes: tuple[str, ...] = ()


def read(file: Path) -> PowerTrace:
    """Returns the trace of a power meter, a CSV file with a line of columns.

    time_s, voltage_v, and current_a or current_ma. UsageError with file and line for a number that
    is none or out of range, times that do not ascend, and samples that are missing.
    """
    text = textfile.read(file, "power trace", UsageError, largest=_TRACE_BYTES)
    times: list[float] = []
    watts: list[float] = []
    places: list[str] = []
    for where, cells in textfile.csv_records(text, str(file), _COLUMNS, ("time_s", "voltage_v")):
        current = [name for name in ("current_a", "current_ma") if name in cells]
        if len(current) != 1:
            raise UsageError(
                f"{file}: a power trace has one column of current.",
                "Name it current_a or current_ma.",
            )
        (name,) = current
        scale = 1e-3 if name == "current_ma" else 1.0
        bounds = NumberRange(_CURRENT_A.low / scale, _CURRENT_A.high / scale)
        time = _number(where, "time_s", cells["time_s"], _TIME)
        amperes = _number(where, name, cells[name], bounds) * scale
        if times and time <= times[-1]:
            raise UsageError(
                f"{where}: the time {cells['time_s'][:40]} is not after the one before it.",
                "Sort the samples by time, and give times enough digits.",
            )
        times.append(time)
        watts.append(amperes * _number(where, "voltage_v", cells["voltage_v"], _VOLTAGE_V))
        places.append(where)
    if len(times) < _SAMPLES_MIN:
        raise UsageError(
            f"{file} has {len(times)} samples; a power trace has at least {_SAMPLES_MIN}.",
            "Record the current and the voltage over the whole transfer.",
        )
    trace = PowerTrace(str(file), np.array(times), np.array(watts), _step(times))
    _check_sampling(trace, places)
    return trace


def _step(times: Sequence[float]) -> float:
    return float(np.median(np.diff(times)))


def _number(where: str, name: str, text: str, bounds: NumberRange) -> float:
    try:
        return bounds.read(text)
    except ValueError as error:
        raise UsageError(
            f"{where}: {name} '{text[:40]}' {error}.", "Use seconds, amperes and volts."
        ) from error


def _check_sampling(trace: PowerTrace, places: Sequence[str]) -> None:
    gaps = np.diff(trace.times_s)
    widest = int(np.argmax(gaps))
    if gaps[widest] > _GAP_STEPS * trace.step_s:
        raise UsageError(
            f"{places[widest + 1]}: no sample for {gaps[widest]:.4g} s, where they are "
            f"{trace.step_s:.4g} s apart (median).",
            "Cut the trace there, or record it again: the energy in between is not known.",
        )


def compare(
    trace: PowerTrace, bursts: Sequence[Burst], radio: Radio, *, start_s: float
) -> PowerComparison:
    """Returns the energy of a trace by the states that the model of a radio has for bursts.

    start_s: time of the trace at which the first packet came. UsageError unless the trace covers
    all bursts.
    """
    trace = trace.shifted(-start_s)
    first, last = float(trace.times_s[0]), float(trace.times_s[-1])
    end = bursts[-1].start_s + bursts[-1].duration_s
    if first > 0 or last < end:
        raise UsageError(
            f"{trace.source} covers {first:.6g} to {last:.6g} s after the first packet, and the "
            f"traffic lasts until {end:.6g} s.",
            "State by --power-start at which time of the trace the first packet came.",
        )
    intervals = _within(intervals_of(bursts, radio, until_s=last), first, last, radio)
    asleep = [interval for interval in intervals if interval.state == "sleep"]
    slept_s = sum(interval.duration_s for interval in asleep)
    sleep_w = None
    if slept_s > 2 * trace.step_s:
        sleep_w = (
            sum(trace.energy_j(interval.start_s, interval.end_s) for interval in asleep) / slept_s
        )
    states = tuple(_state(state, intervals, trace, sleep_w, radio) for state in STATES)
    pairs = [] if sleep_w is None else _transfers(intervals, trace, sleep_w, radio)
    lag_s = _lag(trace, intervals)
    return PowerComparison(
        source=trace.source,
        radio=radio.title,
        samples=int(trace.times_s.size),
        step_s=trace.step_s,
        sleep_w=sleep_w,
        states=states,
        transfers=len(pairs),
        transfer_j=_mean([measured for measured, _ in pairs], "J"),
        ratio=_mean([measured / modelled for measured, modelled in pairs if modelled > 0], "ratio"),
        lag_s=lag_s,
        notes=tuple(_notes(trace, intervals, sleep_w, lag_s)),
    )


def _within(
    intervals: Sequence[RadioInterval], first: float, last: float, radio: Radio
) -> list[RadioInterval]:
    """Returns the intervals cut to the trace, with the sleep before the first of them."""
    begin = intervals[0].start_s
    if begin > first:
        asleep_j = (begin - first) * radio.asleep_w
        intervals = [RadioInterval("sleep", first, begin, asleep_j), *intervals]
    cut = []
    for interval in intervals:
        start, end = max(interval.start_s, first), min(interval.end_s, last)
        if end > start:
            share = (end - start) / interval.duration_s
            cut.append(RadioInterval(interval.state, start, end, interval.energy_j * share))
        elif interval.duration_s == 0 and first <= interval.start_s <= last:
            # A burst of one packet.
            cut.append(interval)
    return cut


def _state(
    state: str,
    intervals: Sequence[RadioInterval],
    trace: PowerTrace,
    sleep_w: float | None,
    radio: Radio,
) -> StateEnergy:
    own = [interval for interval in intervals if interval.state == state]
    duration = sum(interval.duration_s for interval in own)
    measured = sum(trace.energy_j(interval.start_s, interval.end_s) for interval in own)
    return StateEnergy(
        state=state,
        duration_s=duration,
        measured_j=measured,
        above_sleep_j=None if sleep_w is None else measured - sleep_w * duration,
        modelled_j=sum(interval.energy_j for interval in own) - radio.asleep_w * duration,
    )


def _transfers(
    intervals: Sequence[RadioInterval], trace: PowerTrace, sleep_w: float, radio: Radio
) -> list[tuple[float, float]]:
    """Returns the energy above sleep, measured and modelled, of each transfer between sleeps."""
    pairs: list[tuple[float, float]] = []
    awake: list[RadioInterval] | None = None
    for interval in intervals:
        if interval.state != "sleep":
            if awake is not None:
                awake.append(interval)
            continue
        if awake:
            duration = awake[-1].end_s - awake[0].start_s
            measured = trace.energy_j(awake[0].start_s, awake[-1].end_s) - sleep_w * duration
            modelled = sum(interval.energy_j for interval in awake) - radio.asleep_w * duration
            pairs.append((measured, modelled))
        awake = []
    return pairs


def _mean(values: Sequence[float], unit: str) -> Estimate | None:
    return means.mean_t(values, unit=unit) if len(values) > 1 else None


def _lag(trace: PowerTrace, intervals: Sequence[RadioInterval]) -> float | None:
    """Returns by how much later the trace follows the model best, at most two seconds."""
    first, last = float(trace.times_s[0]), float(trace.times_s[-1])
    step = max(trace.step_s, (last - first) / _GRID_POINTS)
    margin = min(_LAG_S, (last - first) / 4)
    grid = np.arange(first + margin, last - margin, step)
    if grid.size < _SAMPLES_MIN:
        return None
    lasting = [interval for interval in intervals if interval.duration_s > 0]
    starts = np.array([interval.start_s for interval in lasting])
    powers = np.array([interval.energy_j / interval.duration_s for interval in lasting])
    model = powers[np.searchsorted(starts, grid, side="right") - 1]
    if not model.std() > 0:
        return None
    lags = np.arange(-round(margin / step), round(margin / step) + 1) * step
    best, best_correlation = None, 0.0
    for lag in lags[np.argsort(np.abs(lags), kind="stable")]:
        measured = np.interp(grid + lag, trace.times_s, trace.watts)
        spread = measured.std()
        if spread <= 1e-12 * np.abs(measured).max():
            continue
        centred = (model - model.mean()) * (measured - measured.mean())
        correlation = float(centred.mean() / (model.std() * spread))
        # A flat top belongs to the lag nearest to 0.
        if correlation > best_correlation + 1e-6:
            best, best_correlation = float(lag), correlation
    return best


def _notes(
    trace: PowerTrace,
    intervals: Sequence[RadioInterval],
    sleep_w: float | None,
    lag_s: float | None,
) -> list[str]:
    notes = []
    lasting = [interval for interval in intervals if interval.duration_s > 0]
    shortest = min(lasting, key=lambda interval: interval.duration_s)
    if trace.step_s > shortest.duration_s / 2:
        notes.append(
            f"Samples are {trace.step_s:.3g} s apart, and the radio is in the state "
            f"'{shortest.state}' for as little as {shortest.duration_s:.3g} s: its energy is "
            "mixed with that of its neighbours."
        )
    if sleep_w is None:
        notes.append(
            "By the model the radio never sleeps within the trace, so that its energy cannot be "
            "separated from that of the device: record some seconds before and after the traffic."
        )
    if lag_s is not None and abs(lag_s) > max(0.1, 3 * trace.step_s):
        when = "later" if lag_s > 0 else "earlier"
        notes.append(
            f"The trace follows the model best {abs(lag_s):.3g} s {when}: compare the clocks, or "
            "state --power-start."
        )
    return notes
