"""The document of `nephoscope capacity`."""

from __future__ import annotations

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Tried:
    """A rate that was tried, and how many of its trials met the objective.

    sender_late: trials in which the load generator was behind its schedule.
    """

    rate_per_s: float
    trials: int
    met: int
    sender_late: int = 0


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """A trial of a search: its rate, whether it met the objective, and the latency that decided.

    latency_ns: the objective's percentile; None where failed requests reach it. is_sender_late: the
    load generator was behind its schedule. Latency counts from there, so that such a trial shows
    that the server meets the objective, and never that it misses it.
    """

    rate_per_s: float
    met: bool
    latency_ns: float | None = None
    is_sender_late: bool = False

    @property
    def is_undecided(self) -> bool:
        """Returns whether the generator may have missed the objective and not the server."""
        return self.is_sender_late and not self.met


@dataclass(frozen=True, slots=True)
class SearchStage:
    """Trials of one stage, and the capacity with its interval from all trials up to it."""

    trials: tuple[TrialOutcome, ...]
    capacity_per_s: float
    low_per_s: float
    high_per_s: float


@dataclass(frozen=True, slots=True)
class CapacityResult:
    """The highest rate under an objective.

    capacity_per_s: where half of the trials meet the objective; None where the end of the range was
    not excluded: then `sentence` says what is known. closed_loop_per_s: rate of the closed loop
    with as many connections. tried: rates in rising order. runs: ids of the stored runs. limit_ns:
    of the objective. stages: in the order of measurement.
    """

    url: str
    objective: str
    connections: int
    capacity_per_s: Estimate | None
    sentence: str
    closed_loop_per_s: float
    tried: tuple[Tried, ...]
    excluded_trials: int
    runs: tuple[str, ...]
    limit_ns: int
    stages: tuple[SearchStage, ...]
    remarks: tuple[str, ...] = ()
