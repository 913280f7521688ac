"""The spread of rates behind one CPU model name, within and across providers.

The machines are of different server types, one of each, so that the spread has what types differ in
(clock limits, shared cores) besides what launches of one type would give.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.features.market.spread_records import (
    CpuSpread,
    ModelSpread,
    ProviderSpread,
    SpeedGroup,
)
from nephoscope.stats import modes
from nephoscope.stats.statistics import bootstrap, proportions, ratios, variation
from nephoscope.stats.statistics.values import Array
from nephoscope.store.market.records import LACKS, ServerType

LEAST = 6
"""Machines of a model, and of a provider, from which on a spread has an interval."""
_DRAWS = 2_000
_SEEN = 0.95


def analyse(
    types: Sequence[ServerType],
    rates: Sequence[float],
    title: str,
    unit: str,
    confidence: float = 0.95,
    cpu_model: str = "",
) -> CpuSpread:
    """Returns the spread of each CPU model. rates: of the types, NaN where there is none."""
    by_model: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for server, rate in zip(types, rates, strict=True):
        if (
            math.isfinite(rate)
            and server.cpu_model
            and cpu_model.lower() in server.cpu_model.lower()
        ):
            by_model[server.cpu_model][server.provider].append(rate)
    enough = {name: own for name, own in by_model.items() if sum(map(len, own.values())) >= LEAST}
    models = [_model(name, own, unit, confidence) for name, own in enough.items()]
    few = [own for name, own in by_model.items() if name not in enough]
    return CpuSpread(
        title,
        unit,
        tuple(sorted(models, key=lambda model: -(model.range_ratio.low or 0.0))),
        len(few),
        sum(len(rates) for own in few for rates in own.values()),
        LACKS,
    )


def _model(
    name: str, by_provider: dict[str, list[float]], unit: str, confidence: float
) -> ModelSpread:
    values = np.array([rate for own in by_provider.values() for rate in own])
    providers = [
        _provider(provider, np.array(own), unit, confidence)
        for provider, own in sorted(by_provider.items())
    ]
    groups, p = _groups(values, confidence)
    return ModelSpread(
        name,
        len(values),
        tuple(providers),
        _bootstrapped(values, _range_ratio, confidence, "95th percentile over the 5th"),
        _bootstrapped(values, variation.robust_cv, confidence, "robust coefficient of variation"),
        _between(providers, by_provider, confidence),
        groups,
        p,
        _launches(groups, confidence) if len(groups) > 1 else None,
    )


def _range_ratio(rows: Array) -> Array:
    low, high = np.quantile(rows, [0.05, 0.95], axis=-1)
    return np.asarray(high / low)


def _bootstrapped(
    values: Array, statistic: bootstrap.Statistic, confidence: float, what: str
) -> Estimate:
    draws = bootstrap.resample(values, statistic, seed=1, resamples=_DRAWS)
    point = float(statistic(values))
    low, high = bootstrap.percentile_interval(draws, point, values.size, confidence)
    method = f"{what}; bootstrap over machines, seed 1"
    return Estimate(point, low, high, confidence, values.size, "ratio", method)


def _provider(name: str, own: Array, unit: str, confidence: float) -> ProviderSpread:
    typical = (
        ratios.geometric_mean(own, unit=unit, confidence=confidence)
        if own.size > 1
        else Estimate(float(own[0]), None, None, confidence, 1, unit, "one machine")
    )
    spread = (
        _bootstrapped(own, variation.robust_cv, confidence, "robust coefficient of variation")
        if own.size >= LEAST
        else None
    )
    return ProviderSpread(name, own.size, typical, spread)


def _between(
    providers: Sequence[ProviderSpread], by_provider: dict[str, list[float]], confidence: float
) -> Estimate | None:
    """Returns the ratio of the fastest provider to the slowest one, both of 6 machines or more.

    Two of k providers are selected by their values: the interval has the error rate of all pairs.
    """
    many = [each for each in providers if each.machines >= LEAST]
    if len(many) < 2:
        return None
    ranked = sorted(many, key=lambda each: each.typical.value)
    pairs = len(many) * (len(many) - 1) / 2
    slow, fast = (np.array(by_provider[ranked[place].provider]) for place in (0, -1))
    if slow.std() == 0 and fast.std() == 0:
        return None
    return ratios.log_welch(slow, fast, 1 - (1 - confidence) / pairs)


def _groups(values: Array, confidence: float) -> tuple[tuple[SpeedGroup, ...], float | None]:
    """Returns the groups between the gaps of the rates' logarithms, the slowest first."""
    cuts, p = modes.gaps(np.log(values))
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    groups = []
    for low, high in pairwise(ends.tolist()):
        own = values[(np.log(values) > low) & (np.log(values) <= high)]
        if own.size:
            share = proportions.wilson(own.size, values.size, confidence=confidence)
            groups.append(SpeedGroup(float(own.min()), float(own.max()), own.size, share))
    return tuple(groups), p


def _launches(groups: Sequence[SpeedGroup], confidence: float) -> Estimate:
    """Returns the launches until the rarest group was there once with 95 % probability."""
    rarest = min(groups, key=lambda group: group.machines).share

    def needed(share: float | None) -> float | None:
        if not share or share >= 1:
            return None if not share else 1.0
        return math.ceil(math.log(1 - _SEEN) / math.log(1 - share))

    value = needed(rarest.value) or 1.0
    method = "geometric law of the rarest group, with the interval of its share"
    return Estimate(
        value, needed(rarest.high), needed(rarest.low), confidence, rarest.n, "count", method
    )
