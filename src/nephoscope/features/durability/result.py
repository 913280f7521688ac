"""What the newest check of each set of objects saw, and the annual loss that follows.

The counts of a check are of the whole ledger, so that the newest trial has all earlier ones in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from nephoscope.catalog import instruments
from nephoscope.core.model import Estimate, Factors, MetricResult, TrialStatus, factors_key, stated
from nephoscope.results.run_data import RunData
from nephoscope.stats.durability import YEAR_S, annual_loss

_LOST, _DAMAGED = "lost_count", "damaged_count"


@dataclass(frozen=True, slots=True)
class ObjectSet:
    """One set of objects in a store, by its newest check.

    name: of its ledger. intact, lost, damaged: objects by their last answer. unreachable: without
    an answer in the newest check. returned: lost or damaged before, intact again in one of the
    run's checks. object_years: observed time, summed over the objects. loss: share of objects that
    is lost or damaged within a year; None before time was observed.
    """

    target: str
    name: str
    factors: Factors
    intact: int
    lost: int
    damaged: int
    unreachable: int
    returned: int
    object_years: float
    loss: Estimate | None

    @stated
    def objects(self) -> int:
        """Returns the number of objects that were written and read back at least once."""
        return self.intact + self.lost + self.damaged


@dataclass(frozen=True, slots=True)
class Durability:
    """The sets of objects of a run."""

    sets: tuple[ObjectSet, ...]


def analyse(data: RunData) -> Durability | None:
    """Returns the state of each set; None where no check ended well."""
    lines = [line for line in data.metrics if line.benchmark == instruments.STORAGE_DURABILITY]
    checks = [line for line in lines if line.metric == _LOST and line.trial_values]
    sets = tuple(_set_of(data, line, lines) for line in checks)
    return Durability(sets) if sets else None


def _set_of(data: RunData, line: MetricResult, lines: list[MetricResult]) -> ObjectSet:
    own = (line.target, factors_key(line.factors))
    values = {
        sibling.metric: sibling.trial_values
        for sibling in lines
        if (sibling.target, factors_key(sibling.factors)) == own and sibling.trial_values
    }
    newest = {metric: int(of_trials[-1]) for metric, of_trials in values.items()}
    intact = newest.get("intact_count", 0)
    lost, damaged = newest[_LOST], newest.get(_DAMAGED, 0)
    object_years = newest.get("exposure_ns", 0) / 1e9 / YEAR_S
    return ObjectSet(
        line.target,
        _name_of(data, line),
        line.factors,
        intact,
        lost,
        damaged,
        newest.get("unreachable_count", 0),
        int(sum(values.get("returned_count", ()))),
        object_years,
        annual_loss(lost + damaged, object_years, intact + lost + damaged, data.confidence),
    )


def _name_of(data: RunData, line: MetricResult) -> str:
    """Returns the name of the ledger, which is a parameter of each trial."""
    for record in data.records:
        if (
            (record.benchmark, record.key.target) == (line.benchmark, line.target)
            and record.status is TrialStatus.VALID
            and dict(record.factors) == dict(line.factors)
        ):
            return str(record.params.get("name") or "")
    return ""
