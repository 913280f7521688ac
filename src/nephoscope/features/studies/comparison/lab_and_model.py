"""Compares published figures that were both measured in the lab and simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.studies.comparison import rules
from nephoscope.features.studies.comparison.part_result import PartResult
from nephoscope.features.studies.comparison.rules import Mark
from nephoscope.features.studies.comparison.side_by_side import Location
from nephoscope.features.studies.definition.study import CIRCULAR

BOTH_AGREE = "both as published"
MEASURED, SIMULATION = "only measured as published", "only simulated as published"
NEITHER, OPEN = "neither as published", "not decided"


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """A published number, which has no interval, with the lab's and the model's estimates.

    verdict: BOTH_AGREE, MEASURED, SIMULATION, NEITHER or OPEN, from the marks of both against the
    published number.
    """

    location: Location
    unit: str
    published: float
    measured: Estimate
    simulated: Estimate
    verdict: str

    @property
    def distance(self) -> float:
        """Returns how far the lab is from the model, relative to the model; 0 where the model is
        0."""
        return abs(self.measured.value / self.simulated.value - 1) if self.simulated.value else 0.0


@dataclass(slots=True)
class _Candidate:
    """Counterpart of a published number; by whether it comes from a model."""

    published: float
    unit: str
    margin: float = 0.0
    estimates: dict[bool, Estimate] = field(default_factory=dict)
    marks: dict[bool, Mark] = field(default_factory=dict)

    def mark(self, simulated: bool) -> Mark:
        """The mark of its comparison; where there is none, by the margin of the others."""
        known = self.marks.get(simulated)
        return known or mark_within(self.published, self.estimates[simulated], self.margin)


def mark_within(published: float, estimate: Estimate, margin: float) -> Mark:
    """Returns whether a figure is the published one, within a margin (ratio)."""
    interval = rules.range_of(estimate)
    if interval is None:
        return Mark.NOT_COMPARABLE
    return rules.in_number(published, None, interval, margin=margin, neutral=None)[0]


def verdict_of(measured: Mark, simulated: Mark) -> str:
    """Returns the verdict for the marks of lab and model."""
    if Mark.NOT_COMPARABLE in (measured, simulated):
        return OPEN
    lab, model = measured is Mark.IN_NUMBER, simulated is Mark.IN_NUMBER
    if lab and model:
        return BOTH_AGREE
    return MEASURED if lab else SIMULATION if model else NEITHER


def three_way_numbers(parts: Sequence[PartResult]) -> list[ThreeWay]:
    """Returns published numbers of which one part measured the answer and another simulated it.

    Only numbers for which some comparison has a margin: without, nothing defines when two are the
    same. None of which a comparison is fitted or set by the plan: its agreement is no evidence.
    """
    circular: set[Location] = set()
    candidates: dict[Location, _Candidate] = {}
    for row in (row for part in parts for row in part.emulated):
        for share in row.shares:
            for entry in share.published:
                location = entry.number.table, entry.number.cell
                candidate = candidates.setdefault(
                    location, _Candidate(entry.number.value, row.unit)
                )
                if share.measured is not None:
                    candidate.estimates.setdefault(share.simulated, share.measured)
    for outcome in (outcome for part in parts for outcome in part.outcomes):
        value = outcome.published.value
        if outcome.location is None or outcome.margin is None or value is None:
            continue
        candidate = candidates.setdefault(outcome.location, _Candidate(value, outcome.unit))
        if outcome.ground in CIRCULAR:
            circular.add(outcome.location)
        candidate.margin = max(candidate.margin, outcome.margin)
        if outcome.measured is not None:
            candidate.estimates.setdefault(outcome.simulated, outcome.measured)
            candidate.marks.setdefault(outcome.simulated, outcome.mark)
    return [
        ThreeWay(
            location,
            candidate.unit,
            candidate.published,
            candidate.estimates[False],
            candidate.estimates[True],
            verdict_of(candidate.mark(False), candidate.mark(True)),
        )
        for location, candidate in candidates.items()
        if candidate.estimates.keys() == {False, True}
        and candidate.margin
        and location not in circular
    ]


def summarise(numbers: Sequence[ThreeWay]) -> str:
    """Returns the counts of the verdicts, and the largest distance between lab and model."""
    counts = Counter(number.verdict for number in numbers)
    parts = [
        f"{counts[BOTH_AGREE]} of {len(numbers)} published figures are met both by the machines "
        "in the lab and by the simulated schedulers"
    ]
    parts += [
        text.format(counts[verdict]) for verdict, text in _REMAINING_VERDICTS if counts[verdict]
    ]
    return "; ".join(parts) + "." + "".join(f" {text}" for text in _largest_distance(numbers))


_REMAINING_VERDICTS = (
    (MEASURED, "{} by the lab alone"),
    (SIMULATION, "{} by the simulation alone"),
    (NEITHER, "{} by neither"),
    (OPEN, "{} not decided (an interval too wide, or a control that does not hold)"),
)


def _largest_distance(numbers: Sequence[ThreeWay]) -> Iterator[str]:
    nonzero = [number for number in numbers if number.simulated.value]
    if not nonzero:
        return
    largest = max(nonzero, key=lambda number: number.distance)
    table, (row, column) = largest.location
    yield (
        f"Lab and simulation differ by at most {100 * largest.distance:.2g} % of the simulated "
        f"figure ({table}, {row}, {column})."
    )
