"""The public statistics of one's own numbers: `from nephoscope.stats import median, ratio`.

Arrays in, results out: the same intervals and verdicts that results of runs have. Values are one a
repetition, in order of execution; a timeout is +inf. Failures are raised as `Refused`, whose text
says why and what it would take.

    from nephoscope.stats import median, ratio

    median([102, 98, 101, 97, 103, 99], unit="ms")
    ratio(before, after, better="lower").verdict.sentence
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from nephoscope.core.model import Better, Estimate
from nephoscope.stats import compare
from nephoscope.stats.change_points import detection, step_test
from nephoscope.stats.change_points.detection import DetectedStep
from nephoscope.stats.compare import MARGIN, TwoSampleComparison
from nephoscope.stats.statistics import estimates, means
from nephoscope.stats.statistics.dependence import ASSUMED, INDEPENDENT
from nephoscope.stats.statistics.values import Numbers, Refused, clean, finite, known_confidence

Direction = Literal["lower", "higher", "none"]
LEAST_GROUPS = 3
FALSE_ALARM_RANGE = (0.01, 0.2)
STEADY_CADENCE_S = 86_400.0
"""Distance of values without times: too long for a daily season."""


def median(
    values: Numbers, *, unit: str = "none", confidence: float = 0.95, independent: bool = False
) -> Estimate:
    """Returns the median with its interval, as wide as the dependence of the values requires.

    independent: the values cannot depend on each other, such as replications of a simulation.
    """
    prior = INDEPENDENT if independent else ASSUMED
    return estimates.median(values, unit=unit, confidence=known_confidence(confidence), prior=prior)


def ratio(
    a: Numbers,
    b: Numbers,
    *,
    better: Direction,
    margin: float = MARGIN,
    unit: str = "none",
    confidence: float = 0.95,
    independent: bool = False,
) -> TwoSampleComparison:
    """Returns b against a, two unpaired samples: ratio b / a with its interval, and a verdict.

    better: which values are good. margin: ratio up to which a difference does not matter.
    """
    return compare.independent(
        a,
        b,
        better=_direction(better),
        margin=margin,
        unit=unit,
        confidence=known_confidence(confidence),
        replications=independent,
    )


def paired(
    a: Numbers,
    b: Numbers,
    *,
    better: Direction,
    margin: float = MARGIN,
    unit: str = "none",
    confidence: float = 0.95,
    independent: bool = False,
) -> TwoSampleComparison:
    """As `ratio`, of values that were taken in the same rounds: a[i] with b[i]."""
    return compare.paired(
        a,
        b,
        better=_direction(better),
        margin=margin,
        unit=unit,
        confidence=known_confidence(confidence),
        replications=independent,
    )


def _direction(better: str) -> Better:
    try:
        return Better(better)
    except ValueError as error:
        raise Refused(f"better is 'lower', 'higher' or 'none', not {better!r}.") from error


def nested(groups: Sequence[Numbers], *, unit: str = "none", confidence: float = 0.95) -> Estimate:
    """Returns the mean over groups, such as instances, whose repetitions are no repetitions of it.

    The interval is Student's of the means of the groups: n is their number. Raises Refused below
    three groups.
    """
    if len(groups) < LEAST_GROUPS:
        raise Refused(
            f"{len(groups)} groups are too few for an interval of the mean over groups; "
            f"measure at least {LEAST_GROUPS}."
        )
    centres = np.array([float(finite(clean(group)).mean()) for group in groups])
    return means.mean_t(centres, unit=unit, confidence=known_confidence(confidence))


def history(
    values: Numbers,
    at_s: Numbers | None = None,
    *,
    false_alarms: float = detection.FALSE_ALARMS,
    confidence: float = 0.95,
    smallest: float = 0.0,
) -> list[DetectedStep]:
    """Returns the change points of a series, as `nephoscope history` finds them.

    at_s: times in seconds since 1970, ascending; without them the values have no daily season.
    false_alarms: probability that 200 values without a change have one (0.01 to 0.2). confidence:
    of the intervals. smallest: size from which on a change is reported, in the unit of the values.
    Raises Refused for timeouts, for fewer values than a test needs, and for times that do not
    belong to them.
    """
    lowest, highest = FALSE_ALARM_RANGE
    if not lowest <= false_alarms <= highest:
        raise Refused(
            f"A share of {false_alarms:g} false alarms is not tabulated; "
            f"give one of {lowest:g} to {highest:g}."
        )
    array = finite(values, statistic="history")
    usual: Numbers = STEADY_CADENCE_S * np.arange(array.size, dtype=np.float64)
    times = finite(usual if at_s is None else at_s)
    if times.size != array.size:
        raise Refused(f"{array.size} values have {times.size} times; each needs one.")
    if np.any(np.diff(times) < 0):
        raise Refused("The times do not ascend; sort the values by their times.")
    if not step_test.is_testable(times):
        raise Refused(
            f"{array.size} values cannot be tested for changes; "
            f"measure at least {step_test.MINIMUM_POINTS}."
        )
    return detection.detect(
        times,
        array,
        false_alarms=false_alarms,
        confidence=known_confidence(confidence),
        smallest=smallest,
    )
