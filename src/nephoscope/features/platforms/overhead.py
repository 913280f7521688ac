"""The overhead of platforms by class of system call, against a reference platform.

The differences of a round are averaged, so that the overheads of the classes add up to the overhead
of one operation of each class. Ratios are Hodges and Lehmann's, paired by round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nephoscope.catalog import instruments
from nephoscope.core.model import Estimate, LineKey, MetricResult, factors_key
from nephoscope.core.naming import level_name
from nephoscope.features.platforms.records import CallOverhead, PlatformOverhead, SystemCallOverhead
from nephoscope.results.lines import pool_comparisons
from nephoscope.results.run_data import RunData
from nephoscope.stats import compare
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.means import mean_of_skewed
from nephoscope.stats.statistics.values import Array, Refused

BENCHMARK, METRIC, CALL, PLATFORM = instruments.SYS_CALLS, "call_ns", "call", "platform"
BARE = "bare"

Lines = Mapping[str, MetricResult]
"""Class of system call -> its line."""


def analyse(data: RunData) -> SystemCallOverhead | None:
    """Returns the overheads in a run; None below two platforms with system calls."""
    settings: dict[tuple[str, str], dict[str, dict[str, MetricResult]]] = {}
    for line in data.metrics:
        own = (line.benchmark, line.metric) == (BENCHMARK, METRIC) and line.trial_values
        if own and PLATFORM in line.factors and CALL in line.factors:
            rest = {k: v for k, v in line.factors.items() if k not in (PLATFORM, CALL)}
            at = settings.setdefault((line.target, factors_key(rest)), {})
            platform = level_name(line.factors[PLATFORM])
            at.setdefault(platform, {})[str(line.factors[CALL])] = line
    names = list(dict.fromkeys(name for setting in settings.values() for name in setting))
    if len(names) < 2:
        return None
    design = data.manifest.plan.get("design") or {}
    reference = reference_of(names, (design.get("baseline") or {}).get(PLATFORM))
    platforms, notes = [], []
    for (target, _), by_platform in settings.items():
        base = by_platform.get(reference)
        if base is None:
            notes.append(f"{target}: the reference platform {reference} has no values.")
            continue
        compared = {name: lines for name, lines in by_platform.items() if name != reference}
        priors = _priors(base, compared.values())
        for name, lines in compared.items():
            platforms.append(_platform(name, target, base, lines, data.confidence, priors))
    return SystemCallOverhead(reference, tuple(platforms), tuple(notes)) if platforms else None


def reference_of(names: Sequence[str], baseline: object) -> str:
    """Returns the reference: bare hosts where they were measured, else the plan's baseline."""
    wanted = BARE if baseline is None or BARE in names else level_name(baseline)
    return wanted if wanted in names else names[0]


def _priors(base: Lines, compared: Iterable[Lines]) -> Mapping[str, Array]:
    series: dict[LineKey, Array] = {}
    for lines in compared:
        for call in base.keys() & lines.keys():
            line, (a, b) = lines[call], compare.shared_rounds(base[call], lines[call])
            if a.size:
                key = (line.benchmark, line.metric, line.target, factors_key(line.factors))
                series[key] = compare.round_shifts(a, b)
    return pool_comparisons(series)


def _platform(
    name: str,
    target: str,
    base: Lines,
    lines: Lines,
    confidence: float,
    priors: Mapping[str, Array],
) -> PlatformOverhead:
    calls = [
        _call(call, base[call], lines[call], confidence, priors.get(BENCHMARK, ASSUMED))
        for call in base
        if call in lines
    ]
    whole = sum(call.overhead.value for call in calls if call.overhead is not None)
    calls = [
        replace(call, share=call.overhead.value / whole)
        if call.overhead is not None and whole > 0
        else call
        for call in calls
    ]
    calls.sort(key=lambda call: call.overhead.value if call.overhead else 0.0, reverse=True)
    first = next(iter(lines.values()))
    factors = {k: v for k, v in first.factors.items() if k not in (PLATFORM, CALL)}
    return PlatformOverhead(name, target, factors, tuple(calls), _total(base, lines, confidence))


def _call(
    call: str, base: MetricResult, line: MetricResult, confidence: float, prior: Array
) -> CallOverhead:
    a, b = compare.shared_rounds(base, line)
    if not a.size:
        reason = "the two platforms have no round in common"
        return CallOverhead(call, base.estimate, line.estimate, None, None, None, reason)
    unit = line.estimate.unit
    overhead = replace(
        mean_of_skewed(b - a, unit=unit, confidence=confidence),
        method="mean of the rounds' differences; Student t, corrected for skewness",
    )
    ratio, reason = None, ""
    try:
        ratio = compare.paired(
            a, b, better=line.better, unit=unit, confidence=confidence, prior=prior
        ).ratio
    except Refused as error:
        reason = str(error)
    return CallOverhead(call, base.estimate, line.estimate, overhead, ratio, None, reason)


def _total(base: Lines, lines: Lines, confidence: float) -> Estimate | None:
    """The overhead of one operation of each class, over the rounds that have all of them."""
    calls = [call for call in base if call in lines]
    sides = [base[call].by_round for call in calls], [lines[call].by_round for call in calls]
    rounds = set.intersection(*(set(side) for part in sides for side in part)) if calls else set()
    if not rounds:
        return None
    below, above = (
        np.array([[side[r] for r in sorted(rounds)] for side in part]) for part in sides
    )
    differences = (above - below).sum(axis=0)
    return mean_of_skewed(differences, unit="ns", confidence=confidence)
