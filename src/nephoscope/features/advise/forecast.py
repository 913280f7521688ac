"""Predicted performance by platform, from stored runs: benchmarks and the application itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import geometric_mean, median
from typing import Any

from nephoscope.core.model import Better, Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.advise import prediction
from nephoscope.features.advise.prediction import BackTest
from nephoscope.features.advise.stored_values import Metric, PlatformValues, StoredValues
from nephoscope.features.advise.telemetry import Telemetry

_DAY_S = 86_400.0
LEAST_SHARE = 0.02
"""Share of the time below which the speed of a resource does not matter."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted value of one more machine of a platform.

    estimate: with a prediction interval, or a note why there is none. machines, runs: behind it.
    between, within: spread between and within machines, ratios. oldest_days, newest_days: age of
    the first and the last run.
    """

    platform: str
    resource: str
    benchmark: str
    metric: str
    factors: Mapping[str, Any]
    better: Better
    estimate: Estimate
    machines: int
    runs: int
    between: float | None
    within: float | None
    oldest_days: float
    newest_days: float


@dataclass(frozen=True, slots=True)
class PlatformTime:
    """Predicted run time of the observed application on a platform, relative to `reference`."""

    platform: str
    reference: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predictions by platform. times: of an observed application. notes: sentences.

    counted: what is one draw, machine or run (where each platform is one machine).
    """

    confidence: float
    counted: str
    predictions: tuple[Prediction, ...]
    times: tuple[PlatformTime, ...]
    notes: tuple[str, ...]


def forecast(
    stored: StoredValues,
    telemetry: Telemetry | None,
    resource: str | None,
    *,
    confidence: float,
    now_s: float,
) -> Forecast:
    """Returns the predictions of the benchmarks of a resource; of all without one.

    now_s: seconds since the epoch, from which ages count.
    """
    metrics = {
        metric: platforms
        for metric, platforms in stored.platforms.items()
        if resource not in ("cpu", "memory", "disk") or metric.resource == resource
    }
    predictions = tuple(
        _prediction(metric, name, entry, confidence, now_s)
        for metric, platforms in metrics.items()
        for name, entry in sorted(platforms.items())
    )
    notes = list(stored.notes)
    times: tuple[PlatformTime, ...] = ()
    if telemetry is not None:
        times, missing = _times(stored, telemetry, confidence)
        notes += missing
    return Forecast(confidence, stored.counted, predictions, times, tuple(notes))


def back_test(stored: StoredValues, *, confidence: float) -> BackTest:
    """Returns how often past predictions from these runs would have been right."""
    return prediction.back_test(
        {
            (name, str(metric)): prediction.machine_values(entry.values)
            for metric, platforms in stored.platforms.items()
            for name, entry in platforms.items()
        },
        confidence=confidence,
    )


def _prediction(
    metric: Metric, name: str, entry: PlatformValues, confidence: float, now_s: float
) -> Prediction:
    values = list(prediction.machine_values(entry.values).values())
    spread = prediction.spread(entry.values)
    return Prediction(
        name,
        metric.resource,
        metric.benchmark,
        metric.metric,
        metric.levels,
        entry.better,
        prediction.predict(values, unit=entry.unit, confidence=confidence),
        len(values),
        sum(len(runs) for runs in entry.values.values()),
        spread.between,
        spread.within,
        max(0.0, now_s - entry.first_at) / _DAY_S,
        max(0.0, now_s - entry.last_at) / _DAY_S,
    )


def _times(
    stored: StoredValues, telemetry: Telemetry, confidence: float
) -> tuple[tuple[PlatformTime, ...], list[str]]:
    """The application's run time by platform, and why some have none."""
    if not stored.here:
        return (), [
            "The run time on other platforms is not predicted: no stored run measured this host. "
            "Run `nephoscope survey` here."
        ]
    shares = busy_shares(telemetry)
    times, missing = [], []
    for name in sorted({name for platforms in stored.platforms.values() for name in platforms}):
        values = list(_relative_times(stored, shares, name))
        if values:
            estimate = prediction.predict(values, unit="none", confidence=confidence)
            times.append(PlatformTime(name, stored.here, estimate))
        else:
            missing.append(
                f"{name}: the run time is not predicted, because no machine has benchmarks of "
                f"{' and '.join(shares)} that this host has too."
            )
    return tuple(times), missing


def busy_shares(telemetry: Telemetry) -> dict[str, float]:
    """Returns the shares of the time that a faster CPU, memory or disk would shorten.

    Waiting for the network and for others stays as it is, and so do shares too small to matter.
    """
    shares = {entry.resource: entry.share.value for entry in telemetry.shares}
    total = max(1.0, math.fsum(shares.values()))
    return {
        name: share / total
        for name, share in shares.items()
        if name != "network" and share >= LEAST_SHARE
    }


def _relative_times(
    stored: StoredValues, shares: Mapping[str, float], name: str
) -> Iterator[float]:
    """Yields the run time on each machine of a platform of which all needed speeds are known."""
    speeds: dict[str, dict[str, list[float]]] = {}
    for metric, platforms in stored.platforms.items():
        if name not in platforms or stored.here not in platforms:
            continue
        here = prediction.machine_values(platforms[stored.here].values)
        reference = here.get(stored.here_machine) or median(here.values())
        for machine, value in prediction.machine_values(platforms[name].values).items():
            if value > 0 and reference > 0:
                is_rate = platforms[name].better is Better.HIGHER
                faster = value / reference if is_rate else reference / value
                by_resource = speeds.setdefault(machine, {})
                by_resource.setdefault(metric.resource, []).append(faster)
    for by_resource in speeds.values():
        if shares.keys() <= by_resource.keys():
            means = {name: geometric_mean(by_resource[name]) for name in shares}
            yield prediction.relative_time(shares, means)
