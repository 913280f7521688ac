"""The document of `nephoscope simulate elastic`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nephoscope.core.model import INTERNAL, Estimate


@dataclass(frozen=True, slots=True)
class ScalingFigures:
    """Figures of one rule on one trace, over replications; one replication has no interval.

    cost_h: billed instance-hours. slow_ratio: share of the requests beyond the limit of the
    objective. violated_s: time at which the objective is not met. under_provisioned,
    over_provisioned: mean numbers of instances that are missing and unneeded (SPEC RG's accuracy).
    changes: of the number of instances that serve.
    """

    cost_h: Estimate
    slow_ratio: Estimate
    violated_s: float
    under_provisioned: float
    over_provisioned: float
    changes: float


@dataclass(frozen=True, slots=True)
class ScalingCandidate:
    """One rule with its settings. meets: its share of slow requests is within the objective.

    is_on_frontier: no other candidate has fewer of both cost and slow requests. is_best: it is the
    recommended one, or its goal cannot be distinguished from that one's. test: on the test trace.
    """

    rule: str
    settings: Mapping[str, str]
    figures: ScalingFigures
    meets: bool
    is_on_frontier: bool
    is_best: bool
    test: ScalingFigures | None = None
    test_meets: bool | None = None


@dataclass(frozen=True, slots=True)
class TraceBound:
    """Lower bound on one trace: at each time the fewest instances that meet the objective.

    model: by which that is known. peak_count: the largest number. cost_h: what these would be
    billed, if they started in no time.
    """

    model: str
    trace: str
    duration_s: float
    requests: float
    peak_rate_per_s: float
    peak_count: int
    cost_h: float


@dataclass(frozen=True, slots=True)
class ReplayedDecisions:
    """The decisions of a recorded rule, made again by it from what was observed.

    first_difference_s: time of the first that differs; null where none does. measured_under,
    measured_over: mean missing and unneeded instances of the recorded trials; measured_slow_ratio,
    measured_cost_h: their requests beyond the objective and billed instance-hours, null where they
    are not recorded. simulated_*: of simulations of the load that start with the same number and
    decide at the same times, in the mean of trials and replications.
    """

    rule: str
    trials: int
    decisions: int
    equal: int
    first_difference_s: float | None
    measured_under: float
    measured_over: float
    simulated_under: float
    simulated_over: float
    measured_slow_ratio: float | None
    simulated_slow_ratio: float
    measured_cost_h: float | None
    simulated_cost_h: float


@dataclass(frozen=True, slots=True)
class ScalingCurves:
    """Steps of the chart: time in seconds, and needed or serving instances."""

    needed: tuple[tuple[float, float], ...]
    serving: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class ScalingAnalysis:
    """Simulated scaling of a service on a trace. sentence: the answer. remarks: further ones.

    candidates: the ones that are best first, then by cost. allowed_slow_ratio: share of slow
    requests that the objective allows. replications: each with sampling errors of its own.
    """

    sentence: str
    remarks: tuple[str, ...]
    objective: str
    allowed_slow_ratio: float
    services_per_s: float
    settings: Mapping[str, str]
    replications: int
    seed: int
    bound: TraceBound
    candidates: tuple[ScalingCandidate, ...]
    test_bound: TraceBound | None = None
    replays: tuple[ReplayedDecisions, ...] = ()
    curves: ScalingCurves | None = field(default=None, metadata=INTERNAL)
