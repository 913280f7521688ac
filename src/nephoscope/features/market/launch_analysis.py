"""Launch times by segment and provider, with intervals over server types.

Launches of one type resemble each other, so that types are the units: the bootstrap draws types
with all their launches. Each interval of a comparison has the error rate of all pairs divided by
their number.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.market.launch_records import (
    LaunchComparison,
    LaunchSegment,
    LaunchTime,
    ProviderLaunchTimes,
)
from nephoscope.stats.statistics import bootstrap
from nephoscope.stats.statistics.values import Array
from nephoscope.store.market.records import PublishedLaunch

SEGMENTS = (
    LaunchSegment("answer", "api_start", "api_end", "request until the API's answer", False),
    LaunchSegment("kernel", "api_start", "machine_start", "request until the kernel starts", True),
    LaunchSegment(
        "userland", "machine_start", "user_data_start", "kernel until the start script", False
    ),
    LaunchSegment("ready", "api_start", "user_data_start", "request until the start script", True),
    LaunchSegment(
        "script", "user_data_start", "user_data_end", "the start script of the measurement", False
    ),
    LaunchSegment(
        "container", "user_data_end", "inspector_start", "fetch and start of a container", False
    ),
)
LONGEST_S = 3600.0
"""A longer segment is no launch: the machine was started again under the same name."""
LEAST_TYPES = 6
"""Of an interval: a median of fewer units has none with 95 % confidence."""
LEAST_FOR_P90 = 29
"""Types of an interval of the 90th percentile: the least for its one-sided bound."""
DRAWS = 4_000
MARGIN = 0.1
"""Relative difference of medians within which providers count as equivalent."""
_METHOD = "bootstrap over server types with all their launches, seed 1"


@dataclass(frozen=True, eq=False)
class _Sample:
    """Seconds of a segment in ascending order, and the type of each, numbered from 0."""

    seconds: Array
    owner: np.ndarray
    types: int
    left_out: Mapping[str, int]

    def quantile(self, q: float, weights: Array | None = None) -> Array:
        """Returns the quantile of the launches, for each row of weights of the types."""
        of_types = np.ones((1, self.types)) if weights is None else weights
        mass = np.cumsum(of_types[:, self.owner], axis=1)
        places = (mass < q * mass[:, -1:] - 1e-9).sum(axis=1)
        return np.asarray(self.seconds[np.minimum(places, len(self.seconds) - 1)])


def analyse(
    launches: Sequence[PublishedLaunch], compared: str, source: str, confidence: float = 0.95
) -> ProviderLaunchTimes:
    """Returns the launch times of each provider and segment, and the comparison of all pairs."""
    by_provider: dict[str, list[PublishedLaunch]] = defaultdict(list)
    for launch in launches:
        by_provider[launch.provider].append(launch)
    times: list[LaunchTime] = []
    drawn: dict[str, tuple[Array, float, int]] = {}
    for segment in SEGMENTS:
        for provider, own in sorted(by_provider.items()):
            sample = _sample(own, segment)
            if not len(sample.seconds):
                continue
            weights = _weights(sample.types)
            medians = sample.quantile(0.5, weights)
            times.append(_time(provider, segment, sample, medians, weights, confidence))
            if segment.name == compared and sample.types >= LEAST_TYPES:
                drawn[provider] = (medians, times[-1].median.value, sample.types)
    return ProviderLaunchTimes(
        SEGMENTS,
        tuple(times),
        compared,
        tuple(_comparisons(drawn, compared, confidence)),
        len(launches),
        source,
        tuple(_notes(times, sorted(by_provider), drawn)),
    )


def _sample(launches: Iterable[PublishedLaunch], segment: LaunchSegment) -> _Sample:
    left_out: Counter[str] = Counter()
    rows: list[tuple[float, str]] = []
    for launch in launches:
        start, end = launch.at_s.get(segment.start), launch.at_s.get(segment.end)
        if start is None or end is None:
            left_out["without one of the moments"] += 1
        elif end < start:
            left_out["whose end is before the start, because clocks differ"] += 1
        elif end - start > LONGEST_S:
            left_out["of more than an hour, which is no launch"] += 1
        else:
            rows.append((end - start, launch.type))
    rows.sort()
    names = {name: place for place, name in enumerate(dict.fromkeys(name for _, name in rows))}
    return _Sample(
        np.array([seconds for seconds, _ in rows]),
        np.array([names[name] for _, name in rows], int),
        len(names),
        dict(left_out),
    )


def _weights(types: int) -> Array:
    """Returns how often each draw has each type."""
    rng = np.random.default_rng(1)
    return rng.multinomial(types, np.full(types, 1 / types), DRAWS).astype(float)


def _time(
    provider: str,
    segment: LaunchSegment,
    sample: _Sample,
    medians: Array,
    weights: Array,
    confidence: float,
) -> LaunchTime:
    values = [float(sample.quantile(q)[0]) for q in (0.5, 0.9)]
    estimates = [
        _estimate(value, draws, sample.types, least, confidence)
        for value, draws, least in (
            (values[0], medians, LEAST_TYPES),
            (values[1], sample.quantile(0.9, weights), LEAST_FOR_P90),
        )
    ]
    median, p90 = estimates
    return LaunchTime(
        provider,
        segment.name,
        median,
        p90,
        len(sample.seconds),
        sample.types,
        sample.left_out,
    )


def _estimate(value: float, draws: Array, types: int, least: int, confidence: float) -> Estimate:
    low, high = (
        bootstrap.percentile_interval(draws, value, types, confidence)
        if types >= least
        else (None, None)
    )
    method = _METHOD if types >= least else f"no interval below {least} server types"
    return Estimate(value, low, high, confidence, types, "s", method)


def _comparisons(
    drawn: Mapping[str, tuple[Array, float, int]], segment: str, confidence: float
) -> Iterable[LaunchComparison]:
    """Yields the ratio of each provider to each slower one."""
    ranked = sorted(drawn, key=lambda name: drawn[name][1])
    pairs = list(combinations(ranked, 2))
    level = 1 - (1 - confidence) / max(1, len(pairs))
    for first, second in pairs:
        (over, fast, n), (under, slow, m) = drawn[first], drawn[second]
        if not fast or not slow:
            continue
        # Draws of two providers are independent of each other, also those of the same number.
        mixed = np.random.default_rng(2).permutation(under)
        ratio = fast / slow
        low, high = bootstrap.interval_of_ratio(over, mixed, ratio, min(n, m), level)
        estimate = Estimate(ratio, low, high, level, min(n, m), "ratio", _METHOD)
        yield LaunchComparison(first, second, segment, estimate, _verdict(low, high))


def _verdict(low: float, high: float | None) -> str:
    top = math.inf if high is None else high
    if top < 1:
        return "faster"
    if low > 1:
        return "slower"
    if low > 1 - MARGIN and top < 1 / (1 - MARGIN):
        return "equivalent"
    return "inconclusive"


def _notes(
    times: Sequence[LaunchTime], providers: Sequence[str], drawn: Mapping[str, object]
) -> Iterable[str]:
    yield (
        "Times are whole seconds. The request is stamped by the machine that calls the API and the "
        "rest by the launched one, so that their difference has the error of two clocks."
    )
    yield (
        "Each provider's median is over the types that were launched there, which are not the same "
        "at all providers."
    )
    totals: Counter[str] = Counter()
    for time in times:
        totals.update(time.left_out)
    for reason, count in totals.items():
        yield f"Segments not used: {count:,} {reason}."
    if few := [name for name in providers if name not in drawn]:
        yield (
            f"Without an interval, and not compared: {', '.join(few)} (fewer than {LEAST_TYPES} "
            "server types)."
        )
