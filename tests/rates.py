"""Statements about accuracy as counted rates: so many of so many, held to a binomial bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import bdtrc

from nephoscope.stats.statistics.proportions import wilson

FALSE_ALARM = 0.01
"""Chance that a rate which is as promised fails the test."""


def failures_allowed(n: int, promised: float) -> int:
    """Returns the largest number of failures that a promised rate of successes leaves plausible."""
    return next(k for k in range(n + 1) if bdtrc(k, n, 1 - promised) <= FALSE_ALARM)


def holds_rate(name: str, passed: Sequence[bool], promised: float) -> None:
    """Asserts that a counted rate does not refute the promised one; prints both."""
    n, good = len(passed), sum(passed)
    share = wilson(good, n)
    allowed = failures_allowed(n, promised)
    text = (
        f"{name}: {good} of {n} ({good / n:.1%} [{share.low:.1%}, {share.high:.1%}]), "
        f"promised {promised:.0%}: at most {allowed} may fail"
    )
    print(text)  # noqa: T201
    assert n - good <= allowed, text


def allowance(runs: int, whole: int, rate: float = 0.95) -> float:
    """Returns by how much three standard errors of a rate over so many runs exceed those of all.

    A bound that was set for the whole number of runs moves by this where fewer are counted, and
    not at all where all are.
    """
    deviation = math.sqrt(rate * (1 - rate))
    return 3 * deviation * (1 / math.sqrt(runs) - 1 / math.sqrt(whole))
