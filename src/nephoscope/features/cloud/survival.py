"""How long machines of the spot market live: curves by place and type, and what a job expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.naming import plural
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.machine_lives import MachineLife
from nephoscope.stats import survival as stats
from nephoscope.stats.statistics.multiplicity import holm
from nephoscope.stats.statistics.values import Refused
from nephoscope.stats.survival import JobOutlook, SurvivalStep

LEVELS = ("provider", "region", "zone", "type")
_CHECKED = 1.0
"""Largest distance of two listings, relative to the median life, for a life to be known well."""


@dataclass(frozen=True, slots=True)
class GroupSurvival:
    """Machines of one kind. interruptions: of them the cloud took so many back; the others were cut
    off by their end here. rate: interruptions per machine-hour; median: null where more than half
    were never taken back."""

    name: str
    machines: int
    interruptions: int
    machine_hours: float
    rate: Estimate
    median: Estimate | None
    steps: tuple[SurvivalStep, ...]


@dataclass(frozen=True, slots=True)
class SurvivalComparison:
    """Whether the levels of one property differ. p: of the log-rank test, adjusted by Holm over the
    properties; null where there are too few interruptions."""

    level: str
    groups: tuple[str, ...]
    p: float | None


@dataclass(frozen=True, slots=True)
class SpotSurvival:
    """Survival of machines on the spot market.

    whole: of all machines. groups: by provider, region, zone and type, and each alone where it has
    more than one value. jobs: what interruptions mean for jobs of some lengths. left_out: lines
    that were not used, by reason.
    """

    whole: GroupSurvival
    groups: tuple[GroupSurvival, ...]
    comparisons: tuple[SurvivalComparison, ...]
    jobs: tuple[JobOutlook, ...]
    notes: tuple[str, ...]
    left_out: Mapping[str, int]


def analyse(
    lives: Sequence[MachineLife],
    *,
    job_h: Sequence[float] = (1.0, 8.0, 24.0),
    confidence: float = 0.95,
    left_out: Mapping[str, int] | None = None,
) -> SpotSurvival:
    """Returns the survival of lives, of which those of the spot market count.

    A machine that its user removed, that powered itself off or that failed was not taken back: its
    life is cut off there. Raises UsageError without any.
    """
    spot = [life for life in lives if life.market == "spot"]
    on_demand = len(lives) - len(spot)
    if not spot:
        rented = f" ({plural(on_demand, 'machine')} on demand)" if on_demand else ""
        raise UsageError(
            f"No machine of the spot market has ended here{rented}.",
            "Rent some: `nephoscope cloud survival PROVIDER --region R --type T --image I "
            "--count 6 --hours 24 --money 5`.",
        )
    whole, curve = _group("all", spot, confidence)
    groups, comparisons = [], []
    for level in LEVELS:
        by_value: dict[str, list[MachineLife]] = {}
        for life in spot:
            by_value.setdefault(str(getattr(life, level)) or "any", []).append(life)
        if len(by_value) > 1:
            groups += [
                _group(f"{level} {value}", own, confidence)[0]
                for value, own in sorted(by_value.items())
            ]
            comparisons.append(_comparison(level, by_value))
    notes = []
    jobs = []
    for length in job_h:
        try:
            jobs.append(stats.outlook(curve, length))
        except Refused as refused:
            notes.append(f"A job of {units.format_duration(3600 * length)}: {refused}")
    far = [life for life in spot if life.is_interrupted and life.between_s > 1800 * life.hours]
    if far:
        notes.append(
            f"{plural(len(far), 'interruption')} lay between two listings that are further apart "
            "than a quarter of the life; list more often (`nephoscope cloud survival` does)."
        )
    removed = dict(left_out or {})
    if on_demand:
        removed["of machines on demand"] = on_demand
    return SpotSurvival(
        whole, tuple(groups), tuple(_adjusted(comparisons)), tuple(jobs), tuple(notes), removed
    )


def _group(
    name: str, lives: Sequence[MachineLife], confidence: float
) -> tuple[GroupSurvival, stats.Survival]:
    curve = stats.survival(
        [life.hours for life in lives],
        [life.is_interrupted for life in lives],
        confidence=confidence,
    )
    return GroupSurvival(
        name,
        curve.lives,
        curve.events,
        curve.exposure,
        curve.rate(),
        curve.median(),
        curve.steps,
    ), curve


def _comparison(level: str, by_value: Mapping[str, Sequence[MachineLife]]) -> SurvivalComparison:
    p = stats.log_rank(
        {
            value: ([life.hours for life in own], [life.is_interrupted for life in own])
            for value, own in by_value.items()
        }
    )
    return SurvivalComparison(level, tuple(sorted(by_value)), p)


def _adjusted(comparisons: Sequence[SurvivalComparison]) -> list[SurvivalComparison]:
    known = [each.p for each in comparisons if each.p is not None]
    adjusted = iter(holm(known))
    return [
        SurvivalComparison(each.level, each.groups, None if each.p is None else next(adjusted))
        for each in comparisons
    ]


def job_sentence(job: JobOutlook, per_h: float | None = None, currency: str = "USD") -> str:
    """Returns what interruptions mean for a job, in one line. per_h: price of a machine."""
    length = units.format_duration(3600 * job.length)
    share = _interval(job.finishes, lambda value: f"{100 * value:.0f} %")
    time = _interval(job.machine_time, lambda value: units.format_duration(3600 * value))
    cost = ""
    if per_h is not None:
        cost = ", which cost " + _interval(
            job.machine_time, lambda value: f"{value * per_h:.3g} {currency}"
        )
    return (
        f"A job of {length} ends without an interruption with probability {share}; started again "
        f"from the beginning after each, it takes {time} of machine time in the mean{cost}."
    )


def _interval(estimate: Estimate, text: object) -> str:
    assert callable(text)
    low = "0" if estimate.low is None else text(estimate.low)
    high = "no bound" if estimate.high is None else text(estimate.high)
    return f"{text(estimate.value)} [{low}, {high}]"
