"""Who took the time: the rule by which a slowdown is called a neighbour's, or anything else.

"Neighbour" is said only where the slowdown is certain, a counter of what is taken from outside
(steal, pressure, scheduling gaps) rises with it, and neither the own quota nor other programs of
this machine rise too. A counter that the machine hides is no evidence of anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from nephoscope.core import units
from nephoscope.core.estimate_text import estimate_text
from nephoscope.core.model import INTERNAL, Estimate
from nephoscope.core.naming import as_number
from nephoscope.stats.compare import MARGIN
from nephoscope.stats.statistics import means, ranks
from nephoscope.stats.statistics.reach import range_of_differences, without_wide_interval
from nephoscope.stats.statistics.values import Array, percent
from nephoscope.stats.verdicts import margin_bounds

Reading = Mapping[str, Any]
"""The `beside` object of one trial."""


class SlowdownCause(StrEnum):
    """Cause to which a slowdown is attributed."""

    NEIGHBOUR = "neighbour"
    OWN_QUOTA = "own quota"
    LOCAL_LOAD = "local load"  # other programs of this very machine
    UNEXPLAINED = "unexplained"
    NO_SLOWDOWN = "no slowdown"  # beyond the margin
    UNDECIDED = "undecided"  # whether there is a slowdown at all


class CounterOrigin(StrEnum):
    """Whose doing a rise of a counter is."""

    QUOTA = "quota"
    OWN = "own"
    HYPERVISOR = "hypervisor"  # nothing on this kernel can raise it
    KERNEL = "kernel"  # somebody on this kernel raises it: a neighbour unless it is ourselves


@dataclass(frozen=True, slots=True)
class AttributedCounter:
    """One key of `beside`. least: a smaller rise explains nothing. share: of the lost time."""

    key: str
    name: str
    unit: str
    side: CounterOrigin
    least: float
    share: float


# A counter has to rise by a tenth of the share of time that was lost: less is no explanation of
# it, however certain. The least values are the grain: 10 ms ticks over trials of a second.
COUNTERS: tuple[AttributedCounter, ...] = (
    AttributedCounter(
        "throttled_ratio",
        "time stopped by the own CPU quota",
        "ratio",
        CounterOrigin.QUOTA,
        0.01,
        0.1,
    ),
    AttributedCounter(
        "others_busy_cpus", "CPUs used by other programs here", "cpus", CounterOrigin.OWN, 0.05, 0.1
    ),
    AttributedCounter(
        "others_io_bytes_per_s",
        "disk traffic of other programs here",
        "bytes_per_s",
        CounterOrigin.OWN,
        1e6,
        0.0,
    ),
    AttributedCounter("steal_ratio", "steal", "ratio", CounterOrigin.HYPERVISOR, 0.01, 0.1),
    AttributedCounter(
        "psi_cpu_some_ratio", "CPU pressure", "ratio", CounterOrigin.KERNEL, 0.01, 0.1
    ),
    AttributedCounter(
        "psi_memory_some_ratio", "memory pressure", "ratio", CounterOrigin.KERNEL, 0.01, 0.1
    ),
    AttributedCounter(
        "psi_io_some_ratio", "disk pressure", "ratio", CounterOrigin.KERNEL, 0.01, 0.1
    ),
    AttributedCounter(
        "own_gap_ratio", "gaps of the measured loop", "ratio", CounterOrigin.KERNEL, 0.01, 0.1
    ),
    AttributedCounter(
        "spare_gap_ratio", "gaps on a spare CPU", "ratio", CounterOrigin.KERNEL, 0.01, 0.1
    ),
)
"""In the order in which evidence is told. `own_gap_ratio` is no key of the probe: whoever has it
(a run of cpu.gaps: 1 minus the share) puts it into the reading."""

FEWEST = 3
"""Readings on each side; with fewer, no change has an interval."""


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one counter from quiet to noisy; `estimate` None where it is unknown.

    rose: the interval lies above 0 and the rise is large enough to explain something. may_explain:
    it did not rise as far as is known, but its interval reaches a rise that explains all.
    """

    counter: AttributedCounter
    estimate: Estimate | None
    rose: bool
    may_explain: bool = False

    def sentence(self) -> str:
        """One line of evidence."""
        if self.estimate is None:
            return f"{self.counter.name}: not shown here, which is no evidence"
        verb = "rose" if self.rose else "may have risen" if self.may_explain else "did not rise"
        return f"{self.counter.name} {verb}: change {estimate_text(self.estimate)}"


@dataclass(frozen=True, slots=True)
class Attribution:
    """The word, one sentence, the evidence for and against, and the changes behind it."""

    word: SlowdownCause
    sentence: str
    evidence: tuple[str, ...]
    changes: tuple[Change, ...] = field(default=(), metadata=INTERNAL)


def attribute(
    slowdown: Estimate,
    baseline: Sequence[Reading],
    noisy: Sequence[Reading],
    *,
    paired: bool = False,
    confidence: float = 0.95,
    margin: float = MARGIN,
    equivalence: Estimate | None = None,
) -> Attribution:
    """Puts a slowdown down to somebody, or says that nothing explains it.

    slowdown: time noisy over time quiet (or rate quiet over rate noisy): above 1 is slower.
    baseline, noisy: the `beside` objects of the trials behind it. paired: baseline[i] belongs to
    noisy[i] (they were measured right after one another). equivalence: the interval that has to
    lie below 1 + margin for "no slowdown"; that of the slowdown unless given.
    """
    decides = equivalence or slowdown
    negligible = decides.high is not None and decides.high <= margin_bounds(margin)[1]
    if negligible or slowdown.low is None or slowdown.low <= 1:
        return _not_slower(slowdown, decides, margin, negligible=negligible)
    lost = 1 - 1 / slowdown.value
    rises = tuple(
        change(counter, baseline, noisy, lost, paired=paired, confidence=confidence)
        for counter in COUNTERS
    )
    word, sentence = _judge(rises)
    # What nobody looks for here (the gaps of a loop that there was not) is not told as hidden.
    named = [rise for rise in rises if rise.estimate or rise.counter.key != "own_gap_ratio"]
    named.sort(key=lambda rise: not rise.rose)
    return Attribution(word, sentence, tuple(rise.sentence() for rise in named), rises)


def change(
    counter: AttributedCounter,
    baseline: Sequence[Reading],
    noisy: Sequence[Reading],
    lost: float,
    *,
    paired: bool = False,
    confidence: float = 0.95,
) -> Change:
    """Returns how a counter changed. lost: share of the time that the slowdown cost, 0 to 1."""
    a, b = ([as_number(reading.get(counter.key)) for reading in side] for side in (baseline, noisy))
    if paired and len(a) == len(b):
        pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
        left, right = np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])
    else:
        paired = False
        left = np.array([x for x in a if x is not None], dtype=np.float64)
        right = np.array([y for y in b if y is not None], dtype=np.float64)
    if min(left.size, right.size) < FEWEST:
        return Change(counter, None, rose=False)
    estimate = _paired(left, right, counter.unit, confidence) if paired else _apart(
        left, right, counter.unit, confidence
    )  # fmt: skip
    needed = max(counter.least, counter.share * lost)
    rose = estimate.low is not None and estimate.low > 0 and estimate.value >= needed
    reaches = estimate.high is None or estimate.high >= max(counter.least, lost)
    return Change(counter, estimate, rose, reaches and not rose and counter.share > 0)


def _paired(baseline: Array, noisy: Array, unit: str, confidence: float) -> Estimate:
    differences = noisy - baseline
    shift = ranks.one_sample_shift(differences, confidence)
    if shift.low is not None:
        method = "Hodges-Lehmann of paired differences, signed ranks"
        n = int(differences.size)
        return Estimate(shift.value, shift.low, shift.high, confidence, n, unit, method)
    return means.mean_t(differences, unit=unit, confidence=confidence)


def _apart(baseline: Array, noisy: Array, unit: str, confidence: float) -> Estimate:
    n = int(min(baseline.size, noisy.size))
    shift = ranks.SafeShift(baseline, noisy)(confidence)
    if shift.low is not None and n > FEWEST:
        method = "Hodges-Lehmann difference"
        return Estimate(shift.value, shift.low, shift.high, confidence, n, unit, method)
    a, b = means.summary(baseline), means.summary(noisy)
    value, method = b.mean - a.mean, "difference of means, Welch t"
    if a.s == 0 and b.s == 0:
        return Estimate(value, value, value, confidence, n, unit, method)
    low, high = means.welch(a, b).interval(confidence)
    estimate = Estimate(value, low, high, confidence, n, unit, method)
    return without_wide_interval(estimate, range_of_differences(baseline, noisy))


def _judge(changes: Sequence[Change]) -> tuple[SlowdownCause, str]:
    """The word and its sentence: quota first, then local load, then those outside."""
    rose = {
        side: [shift for shift in changes if shift.rose and shift.counter.side is side]
        for side in CounterOrigin
    }
    outside = rose[CounterOrigin.HYPERVISOR] + rose[CounterOrigin.KERNEL]
    if rose[CounterOrigin.QUOTA]:
        return SlowdownCause.OWN_QUOTA, (
            "The own CPU quota stopped it: that is what was rented or set, and no neighbour."
        )
    if rose[CounterOrigin.OWN]:
        names = _names(rose[CounterOrigin.OWN])
        return SlowdownCause.LOCAL_LOAD, f"Other programs of this machine explain it: {names} rose."
    if not outside:
        return SlowdownCause.UNEXPLAINED, "No system counter explains it."
    names = _names(outside)
    unknown = [
        shift
        for shift in changes
        if shift.estimate is None and shift.counter.key in _MUST_BE_KNOWN_TO_ACCUSE
    ]
    if unknown and not rose[CounterOrigin.HYPERVISOR]:
        return SlowdownCause.UNEXPLAINED, (
            f"{names} rose with it, but {_names(unknown)} cannot be told here, and those would "
            "raise it too."
        )
    unsure = [
        shift
        for shift in changes
        if shift.may_explain and shift.counter.key in _MUST_BE_KNOWN_TO_ACCUSE
    ]
    if unsure:
        return SlowdownCause.UNEXPLAINED, (
            f"{names} rose with it, but {_names(unsure)} may have risen as much; more trials "
            "would tell."
        )
    return SlowdownCause.NEIGHBOUR, (
        f"{names} rose with it, while neither the own quota nor other programs here did."
    )


_MUST_BE_KNOWN_TO_ACCUSE = frozenset({"throttled_ratio", "others_busy_cpus"})
"""What raises pressure and gaps just as a neighbour does; steal it cannot raise."""


def _names(changes: Sequence[Change]) -> str:
    names = [shift.counter.name for shift in changes]
    text = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return text[0].upper() + text[1:] if text[:3] != "CPU" else text


def _not_slower(
    slowdown: Estimate, equivalence: Estimate, margin: float, *, negligible: bool
) -> Attribution:
    """Returns the word for an interval that contains 1 or only slowdowns inside the margin."""
    limit = f"the margin of {percent(margin)}"
    if slowdown.low is None:
        sentence = f"n = {slowdown.n}: too few repetitions to tell whether there is a slowdown."
    elif negligible:
        interval = units.format_interval(
            equivalence.value, equivalence.low, equivalence.high, "none"
        )
        sentence = (
            f"At {percent(equivalence.confidence)} {interval} excludes a slowdown beyond {limit}."
        )
        return Attribution(SlowdownCause.NO_SLOWDOWN, sentence, ())
    else:
        interval = units.format_interval(slowdown.value, slowdown.low, slowdown.high, "none")
        sentence = f"{interval} contains 1 and slowdowns beyond {limit}; more rounds would decide."
    return Attribution(SlowdownCause.UNDECIDED, sentence, ())
