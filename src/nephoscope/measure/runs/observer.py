"""Who watches a run: the runner tells, and never asks."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core.model import Sample, Setting, TrialKey, TrialRecord
from nephoscope.core.records import dataclass
from nephoscope.measure.runs.schedule.alternatives import Outcome
from nephoscope.measure.runs.schedule.progress import TimeLeft
from nephoscope.store import StoredRun


@dataclass(frozen=True, slots=True)
class Status:
    """Where a run stands.

    trials: finished so far. alternatives: settings times targets. ended: of these, how many are
    done. spent_s: of the budget, over all sessions. budget_s: None where there is none. time_left:
    what measuring will still take; None before every alternative was measured once.
    """

    trials: int
    alternatives: int
    ended: int
    spent_s: float
    budget_s: float | None
    time_left: TimeLeft | None = None

    @property
    def left_s(self) -> float | None:
        """Seconds of the budget that are left; None without a budget."""
        return None if self.budget_s is None else max(0.0, self.budget_s - self.spent_s)


class Observer:
    """Watches nothing; subclasses override what they show."""

    def run_started(self, run: StoredRun, resumed: bool, trials: int) -> None:
        """Measuring begins; `trials` are there already."""

    def warning(self, sentence: str) -> None:
        """Something about the machine or the run that a person should know now."""

    def reported(self, sentence: str) -> None:
        """What is being made ready, for a person who waits."""

    def trial_started(self, key: TrialKey, setting: Setting, status: Status) -> None:
        """A trial begins."""

    def trial_measured(self, record: TrialRecord, samples: Sequence[Sample]) -> None:
        """A trial has samples; `trial_ended` follows."""

    def trial_ended(self, record: TrialRecord, status: Status) -> None:
        """A trial was finished and stored."""

    def alternative_ended(self, outcome: Outcome, status: Status) -> None:
        """A setting on a target is done, for the reason in `outcome`."""
