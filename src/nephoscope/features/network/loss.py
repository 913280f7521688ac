"""Packet loss: its ratio, how it clusters, and how often and how long loss episodes are.

Source of the estimators of episodes: Sommers, Barford, Duffield, Ron, Improving Accuracy in
End-to-end Packet Loss Measurement, SIGCOMM 2005 (Badabing).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.proportions import wilson
from nephoscope.stats.statistics.values import Array, Refused, runs_of

Flags = NDArray[np.bool_]

OUTCOMES = ("00", "01", "10", "11")
"""Outcomes of a pair of probes in adjacent slots; 1: the slot had loss."""

_ASYMMETRY_P = 0.01
"""Probability below which unequal numbers of 01 and 10 are no coincidence."""
_FEWEST_ENDS = 10
"""Starts and ends of episodes below which the duration is only indicative."""


@dataclass(frozen=True, slots=True)
class LossEpisodes:
    """Loss episodes of a path, estimated from pairs of probes in adjacent slots.

    frequency: share of slots with loss. duration_slots: mean length of an episode; its interval
    holds for independent pairs. duration_s: null where the length of a slot is not known. valid:
    whether the checks of the estimator hold; problems: sentences on those that do not.
    """

    pairs: int
    outcomes: Mapping[str, int]
    frequency: Estimate
    duration_slots: Estimate | None
    duration_s: float | None
    valid: bool
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Loss:
    """Packet loss. burst_ratio: mean length of runs of lost packets relative to that of random
    loss (BurstR of ITU-T G.107); null without loss. longest_run: packets.
    """

    sent: int
    lost: int
    ratio: Estimate
    burst_ratio: float | None = None
    longest_run: int | None = None
    episodes: LossEpisodes | None = None


def of_counts(lost: int, sent: int, *, confidence: float = 0.95) -> Loss:
    """Returns the loss of so many packets of which the order is not known."""
    if sent < 1:
        raise Refused("A loss ratio needs at least one packet that was sent.")
    return Loss(sent, lost, wilson(lost, sent, confidence=confidence))


def of_series(lost: Flags, *, slot_s: float | None = None, confidence: float = 0.95) -> Loss:
    """Returns the loss of packets that were sent at even intervals.

    lost: for each packet in the order of sending whether it was lost. Consecutive packets are the
    pairs of probes.
    """
    flags = np.asarray(lost, dtype=bool)
    counted = of_counts(int(flags.sum()), flags.size, confidence=confidence)
    if not counted.lost:
        return counted
    runs = run_lengths(flags)
    episodes = None
    if flags.size > 1:
        codes = np.bincount(2 * flags[:-1].astype(int) + flags[1:], minlength=4)
        outcomes = dict(zip(OUTCOMES, map(int, codes), strict=True))
        episodes = loss_episodes(outcomes, slot_s=slot_s, confidence=confidence)
    return replace(
        counted,
        burst_ratio=burst_ratio(runs, counted.ratio.value),
        longest_run=int(runs.max()),
        episodes=episodes,
    )


def of_pairs(outcomes: Mapping[str, int], *, slot_s: float | None = None) -> Loss:
    """Returns the loss of pairs of probes in adjacent slots, from the counts of outcomes."""
    episodes = loss_episodes(outcomes, slot_s=slot_s)
    counts = episodes.outcomes
    lost = counts["01"] + counts["10"] + 2 * counts["11"]
    return replace(of_counts(lost, 2 * episodes.pairs), episodes=episodes)


def run_lengths(flags: Flags) -> Array:
    """Returns the lengths of the runs of true values."""
    starts, ends = runs_of(flags)
    return np.asarray(ends - starts)


def burst_ratio(runs: Array, ratio: float) -> float:
    """Returns BurstR: the mean run of lost packets over 1 / (1 - loss), at least 1."""
    return max(1.0, float(runs.mean()) * (1 - ratio)) if ratio < 1 else 1.0


def loss_episodes(
    outcomes: Mapping[str, int], *, slot_s: float | None = None, confidence: float = 0.95
) -> LossEpisodes:
    """Returns frequency and duration of loss episodes from the outcomes of pairs of probes.

    With R pairs that saw loss, of which S at the start or end of an episode, the mean duration is
    2 (R / S - 1) + 1 slots. Raises Refused without pairs.
    """
    counts = {name: int(outcomes.get(name, 0)) for name in OUTCOMES}
    pairs = sum(counts.values())
    if pairs < 1 or min(counts.values()) < 0:
        raise Refused("Loss episodes need counts of at least one pair of probes.")
    frequency = wilson(counts["10"] + counts["11"], pairs, confidence=confidence)
    ends = counts["01"] + counts["10"]
    seen = ends + counts["11"]
    problems = tuple(_problems(counts, ends, seen))
    duration = None
    if ends:
        # The share S / R is binomial for independent pairs, and the duration falls with it.
        share = wilson(ends, seen, confidence=confidence)
        assert share.low is not None
        assert share.high is not None
        duration = Estimate(
            2 * (seen / ends - 1) + 1,
            2 / share.high - 1,
            2 / share.low - 1,
            confidence,
            seen,
            "none",
            "2 (R / S - 1) + 1 (Badabing); Wilson's interval of S / R",
        )
    seconds = duration.value * slot_s if duration and slot_s else None
    return LossEpisodes(pairs, counts, frequency, duration, seconds, not problems, problems)


def _problems(counts: Mapping[str, int], ends: int, seen: int) -> list[str]:
    if not seen:
        return ["No pair of probes saw loss, so that episodes have no duration."]
    if not ends:
        return ["Loss never began or ended between two probes of a pair; use longer slots."]
    from scipy.stats import binomtest

    problems = []
    if binomtest(counts["01"], ends).pvalue < _ASYMMETRY_P:
        problems.append(
            f"The numbers of starts ({counts['01']}) and ends ({counts['10']}) of loss differ by "
            "more than by coincidence; the probes themselves may cause loss."
        )
    if ends < _FEWEST_ENDS:
        problems.append(
            f"Only {ends} starts and ends of loss were seen; the duration is indicative below "
            f"{_FEWEST_ENDS}."
        )
    return problems
