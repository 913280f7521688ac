"""Records of parallel work: steps by number of ranks, ranks one by one, and the straggler law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.core.model import Estimate


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Mean times of a step in one setting; each estimate is over trials.

    factors: those of the setting besides the number of ranks. slowest: work of the slowest rank.
    independence: that work over its expectation if the ranks were independent; below 1 some delays
    hit several ranks at once. operation: what a step takes beyond its slowest rank's work.
    efficiency: share of the time that a rank does not wait.
    """

    target: str
    factors: Mapping[str, Any]
    ranks: int
    step: Estimate
    slowest: Estimate
    independence: Estimate | None
    operation: Estimate
    efficiency: Estimate


@dataclass(frozen=True, slots=True)
class RankLine:
    """Mean times of one rank in one setting. slowest_share: share of the steps in which it had the
    longest work."""

    target: str
    factors: Mapping[str, Any]
    ranks: int
    rank: int
    work: Estimate
    wait: Estimate
    slowest_share: Estimate


@dataclass(frozen=True, slots=True)
class FittedLaw:
    """The straggler law over several numbers of ranks: fixed + delay x H_n, H_n = 1 + ... + 1/n.

    misfit_ratio: largest distance of a mean from the law, relative to the mean.
    """

    target: str
    factors: Mapping[str, Any]
    fixed: Estimate
    delay: Estimate
    misfit_ratio: float


@dataclass(frozen=True, slots=True)
class ParallelWork:
    """Parallel work of a run."""

    steps: tuple[StepTimes, ...]
    ranks: tuple[RankLine, ...]
    laws: tuple[FittedLaw, ...]
