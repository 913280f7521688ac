"""How long something lives, where many lives were still going on when the observation ended.

Sources: Kaplan and Meier, JASA 53 (1958); Fay, Brittain, Proschan, Biostatistics 14 (2013): the
beta product interval, which covers with few lives, where Greenwood's does not; Garwood, Biometrika
28 (1936): the exact interval of a Poisson rate; Mantel, Cancer Chemotherapy Reports 50 (1966): the
log-rank test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.values import Array, Numbers, Refused, finite

LEAST_COMPARED = 5
"""Events of both groups together from which on they are compared."""


@dataclass(frozen=True, slots=True)
class SurvivalStep:
    """The share that lives longer than `at`, after the events at that time. low, high: its
    interval, up to the next event. at_risk: lives that had reached it; events: that ended then."""

    at: float
    at_risk: int
    events: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Survival:
    """The survival curve of lives. exposure: sum of all lives; longest: the longest one."""

    steps: tuple[SurvivalStep, ...]
    lives: int
    events: int
    exposure: float
    longest: float
    unit: str
    confidence: float
    ends: Array

    def share_at(self, at: float) -> Estimate:
        """Returns the share that lives longer than `at`. Raises Refused beyond the longest life."""
        if at > self.longest:
            raise Refused(
                f"The longest of {self.lives} lives is shorter than that; observe for longer."
            )
        before = [step for step in self.steps if step.at <= at]
        share = before[-1].share if before else 1.0
        low, high = self._interval(at)
        return Estimate(
            share, low, high, self.confidence, self.lives, "ratio",
            "Kaplan-Meier; beta product interval",
        )  # fmt: skip

    def _interval(self, at: float) -> tuple[float, float]:
        at_risk = int((self.ends > at).sum())
        return _beta_product(
            [step for step in self.steps if step.at <= at], at_risk, self.confidence
        )

    def median(self) -> Estimate | None:
        """Returns the median life, with the bounds that the intervals of the curve give it; None
        where more than half of the lives are longer than any that was seen to its end."""
        value = next((step.at for step in self.steps if step.share <= 0.5), None)
        if value is None:
            return None
        # Its interval has all times at which one half lies in the interval of the curve.
        low = next((step.at for step in self.steps if step.low <= 0.5), None)
        high = next((step.at for step in self.steps if step.high < 0.5), None)
        method = "Kaplan-Meier median; inverted beta product interval"
        note = "" if high is not None else "the upper bound is not reached"
        return Estimate(value, low, high, self.confidence, self.lives, self.unit, method, note)

    def rate(self) -> Estimate:
        """Returns events per unit of time lived, with Garwood's exact interval of a Poisson count;
        the value that a constant hazard has."""
        low, high = poisson_bounds(self.events, self.confidence)
        return Estimate(
            self.events / self.exposure,
            low / self.exposure,
            high / self.exposure,
            self.confidence,
            self.lives,
            f"1/{self.unit}",
            "events over exposure; exact Poisson interval",
        )

    def restricted_mean(self, until: float) -> tuple[float, float, float]:
        """Returns the mean of each life cut at `until`, and the areas below both bounds."""
        times = np.array([0.0, *(step.at for step in self.steps if step.at < until), until])
        widths = np.diff(times)
        shares = np.array([1.0, *(step.share for step in self.steps if step.at < until)])
        bounds = np.array([self._interval(at) for at in times[:-1]])
        return (
            float((shares * widths).sum()),
            float((bounds[:, 0] * widths).sum()),
            float((bounds[:, 1] * widths).sum()),
        )


def survival(
    lives: Numbers, ended: Sequence[bool], *, unit: str = "h", confidence: float = 0.95
) -> Survival:
    """Returns the survival curve of lives, some of which were still going on.

    lives: how long each was observed, above zero. ended: whether it ended by the event; else it was
    cut off, for a reason that has nothing to do with the event. Raises Refused without lives.
    """
    times = finite(lives, least=1, statistic="survival")
    flags = np.asarray(ended, dtype=bool)
    if flags.shape != times.shape:
        raise Refused(f"{times.size} lives and {flags.size} ends do not match.")
    if (times <= 0).any():
        raise Refused(f"{int((times <= 0).sum())} of {times.size} lives have no length.")
    steps: list[SurvivalStep] = []
    share = 1.0
    for at in np.unique(times[flags]):
        at_risk, events = int((times >= at).sum()), int((times[flags] == at).sum())
        share *= 1 - events / at_risk
        steps.append(SurvivalStep(float(at), at_risk, events, share, 0.0, 1.0))
        # Lives that end at the same time as the event are not there any more.
        low, high = _beta_product(steps, int((times > at).sum()), confidence)
        steps[-1] = SurvivalStep(float(at), at_risk, events, share, low, high)
    return Survival(
        tuple(steps), times.size, int(flags.sum()), float(times.sum()), float(times.max()), unit,
        confidence, times,
    )  # fmt: skip


def _beta_product(
    steps: Sequence[SurvivalStep], at_risk: int, confidence: float
) -> tuple[float, float]:
    """Returns the interval of the share after these steps; at_risk: lives that went on from there.

    The products of beta variables have the two first moments of one beta variable, whose quantiles
    are taken.
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    mean = square = 1.0
    for step in steps:
        left = step.at_risk - step.events + 1
        mean *= left / (left + step.events)
        square *= left * (left + 1) / ((left + step.events) * (left + step.events + 1))
    high = 1.0 if not steps else _beta_quantile(mean, square, 1 - tail, betaincinv)
    if at_risk == 0:
        return 0.0, high
    mean *= at_risk / (at_risk + 1)
    square *= at_risk * (at_risk + 1) / ((at_risk + 1) * (at_risk + 2))
    return _beta_quantile(mean, square, tail, betaincinv), high


def _beta_quantile(mean: float, square: float, p: float, inverse: object) -> float:
    variance = square - mean**2
    total = mean * (1 - mean) / variance - 1
    return float(inverse(mean * total, (1 - mean) * total, p))  # type: ignore[operator]


def poisson_bounds(events: int, confidence: float = 0.95) -> tuple[float, float]:
    """Returns the exact interval of the mean of a Poisson count."""
    from scipy.special import gammaincinv

    tail = (1 - confidence) / 2
    low = 0.0 if events == 0 else float(gammaincinv(events, tail))
    return low, float(gammaincinv(events + 1, 1 - tail))


def log_rank(groups: Mapping[str, tuple[Numbers, Sequence[bool]]]) -> float | None:
    """Returns the p-value for equal hazards in all groups; None with too few events to tell.

    groups: name -> lives and ends, as of `survival`.
    """
    from scipy.special import gammaincc

    times = [np.asarray(lives, dtype=float) for lives, _ in groups.values()]
    flags = [np.asarray(ended, dtype=bool) for _, ended in groups.values()]
    if len(groups) < 2 or sum(int(each.sum()) for each in flags) < LEAST_COMPARED:
        return None
    every = np.unique(np.concatenate([t[f] for t, f in zip(times, flags, strict=True)]))
    size = len(groups)
    difference, covariance = np.zeros(size), np.zeros((size, size))
    for at in every:
        risk = np.array([(t >= at).sum() for t in times], dtype=float)
        events = np.array([(t[f] == at).sum() for t, f in zip(times, flags, strict=True)])
        total, ended = risk.sum(), events.sum()
        part = risk / total
        difference += events - ended * part
        if total > 1:
            factor = ended * (total - ended) / (total - 1)
            covariance += factor * (np.diag(part) - np.outer(part, part))
    reduced, differences = covariance[:-1, :-1], difference[:-1]
    if np.linalg.matrix_rank(reduced) < size - 1:
        return None
    statistic = float(differences @ np.linalg.solve(reduced, differences))
    return float(gammaincc((size - 1) / 2, max(statistic, 0.0) / 2))


@dataclass(frozen=True, slots=True)
class JobOutlook:
    """A job on a machine that may end. finishes: probability that one attempt does. machine_time:
    expected time of machines until it is done, starting again from the beginning each time."""

    length: float
    finishes: Estimate
    machine_time: Estimate


def outlook(curve: Survival, length: float) -> JobOutlook:
    """Returns what interruptions mean for a job of a length.

    The expected time is that of an attempt (cut at the length) over the probability of its success:
    attempts are independent renewals. Raises Refused where no life was as long, or none may last.
    """
    finishes = curve.share_at(length)
    if not finishes.value > 0:
        raise Refused("No life lasted that long: the job would hardly ever be done in one piece.")
    mean, low, high = curve.restricted_mean(length)
    upper = None if not finishes.low else high / finishes.low
    spent = Estimate(
        mean / finishes.value,
        max(length, low / finishes.high) if finishes.high else length,
        upper,
        curve.confidence,
        curve.lives,
        curve.unit,
        "restricted mean over the probability of success; bounds of both",
    )
    return JobOutlook(length, finishes, spent)
