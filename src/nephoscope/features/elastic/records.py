"""Records of experiments on elasticity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nephoscope.core.model import Estimate
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.elasticity import ElasticityMeasures, Oscillation, ScalingTimes


@dataclass(frozen=True, slots=True)
class LoadInterval:
    """A part of a trial, which ends at_s seconds after its begin.

    offered_per_s: requests due. responses_per_s: valid ones. latency_s: of the objective's
    percentile, None without a response. errors: failed requests.
    """

    at_s: float
    offered_per_s: float
    responses_per_s: float
    latency_s: float | None
    errors: float
    is_violated: bool


@dataclass(frozen=True, slots=True)
class DecisionPoint:
    """A decision of the reference autoscaler: what its rule wanted, and what it decided and why."""

    at_s: float
    wanted: int
    desired: int
    reason: str


@dataclass(frozen=True, slots=True)
class ElasticTrial:
    """One trial: demand, supply, and what the clients had of it.

    supply, demand: seconds since the begin, and number from then on. due, slow, failed: requests;
    slow are those that had a valid response later than the objective's limit. violated_s: time of
    the intervals whose percentile is beyond the limit, or in which no request succeeded although
    some failed or waited for longer than the limit.
    billed_s: instance-seconds as billed, minimum_billed_s: those of a clairvoyant autoscaler for
    the load without the attack, bound_s: of the largest number throughout; None where it is
    unknown. attack_per_s: requests that nobody needs, in the second half. is_left_out:
    the round was disturbed, and others of its autoscaler were not.
    """

    autoscaler: str
    round: int
    duration_s: float
    supply: tuple[tuple[float, float], ...]
    demand: tuple[tuple[float, float], ...]
    measures: ElasticityMeasures
    changes: tuple[ScalingTimes, ...]
    oscillations: tuple[Oscillation, ...]
    due: int
    slow: int
    failed: int
    violated_s: float
    billed_s: float
    minimum_billed_s: float
    decision_intervals_s: tuple[float, ...]
    decisions: tuple[DecisionPoint, ...]
    timeline: tuple[LoadInterval, ...]
    bound_s: float | None = None
    attack_per_s: float = 0.0
    is_left_out: bool = False


@dataclass(frozen=True, slots=True)
class AutoscalerSummary:
    """An autoscaler over the rounds.

    measures: SPEC RG's, by name. out_segments, in_segments: times of scaling out and in, by
    segment, and from the demand to the rotation (total): means over the rounds of the median of
    each. violated_requests: share of the requests that were slow or failed. cost: billed over the
    clairvoyant minimum. cost_bound: what the largest number of instances lets it be, None where
    that is unknown. problems: what forbids a judgement; then the other figures describe the
    experiment and not the autoscaler.
    """

    autoscaler: str
    rounds: int
    measures: Mapping[str, Estimate]
    out_segments: Mapping[str, Estimate]
    in_segments: Mapping[str, Estimate]
    decision_interval: Estimate | None
    violated_requests: Estimate
    violated_time: Estimate
    cost: Estimate
    oscillating_rounds: int
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    cost_bound: float | None = None


@dataclass(frozen=True, slots=True)
class AutoscalerComparison:
    """Violated requests of an autoscaler against the first one, paired by round, with the elastic
    speed-up of the means; None where a measure is 0."""

    autoscaler: str
    reference: str
    violations: TwoSampleComparison
    speed_up: float | None


@dataclass(frozen=True, slots=True)
class ElasticCredit:
    """What an objective of the run's contract grants for an autoscaler that is judged.

    promise: the objective in words. good, known: requests, or steps of the demand, within it and in
    all; unknown: steps that ended before its limit. is_met: null where nothing is known.
    credit_ratio: share of the bill that a period like the run has; lowest_ratio, highest_ratio: its
    rounds alone. bill, credit: amounts of money as decimal text; null without a bill.
    """

    autoscaler: str
    measure: str
    promise: str
    good: int
    known: int
    unknown: int
    is_met: bool | None = None
    credit_ratio: float | None = None
    lowest_ratio: float | None = None
    highest_ratio: float | None = None
    currency: str = ""
    bill: str | None = None
    credit: str | None = None


@dataclass(frozen=True, slots=True)
class Elasticity:
    """What a run's experiments on elasticity show. unmeasured: those without a valid trial.
    credits: of the run's contract."""

    client: str
    objective: str
    capacity_per_s: float
    autoscalers: tuple[AutoscalerSummary, ...]
    comparisons: tuple[AutoscalerComparison, ...]
    trials: tuple[ElasticTrial, ...]
    unmeasured: tuple[str, ...] = ()
    credits: tuple[ElasticCredit, ...] = ()
