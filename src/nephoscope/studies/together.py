"""Published figures that were both measured in the lab and simulated, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nephoscope.analysis.compare import estimate_json
from nephoscope.catalog import SIMULATED
from nephoscope.model import Estimate
from nephoscope.studies import rules
from nephoscope.studies.picks import Cell
from nephoscope.studies.rules import Mark, Range

if TYPE_CHECKING:
    from nephoscope.studies.comparing import Outcome
    from nephoscope.studies.emulating import Row

Where = tuple[str, Cell]
"""Table, then row and column of a published number."""

BOTH = "both as published"
MEASURED, SIMULATION = "only measured as published", "only simulated as published"
NEITHER, OPEN = "neither as published", "not decided"
VERDICTS = (BOTH, MEASURED, SIMULATION, NEITHER, OPEN)


def is_simulated(benchmark: str) -> bool:
    """Whether a figure of ours comes from a model and not from a machine."""
    return benchmark.startswith(SIMULATED)


@dataclass(frozen=True, slots=True)
class Beside:
    """A published number, which has no interval, with the same of the lab and of the model.

    measured_mark, simulated_mark: those of the comparison of each with the published number; where
    a part has none with this number, by the margin of the others.
    """

    where: Where
    unit: str
    published: float
    measured: Estimate
    simulated: Estimate
    measured_mark: Mark
    simulated_mark: Mark

    @property
    def verdict(self) -> str:
        """One of VERDICTS."""
        if Mark.NOT_COMPARABLE in (self.measured_mark, self.simulated_mark):
            return OPEN
        lab, model = (one is Mark.IN_NUMBER for one in (self.measured_mark, self.simulated_mark))
        if lab and model:
            return BOTH
        return MEASURED if lab else SIMULATION if model else NEITHER

    def to_json(self) -> dict[str, Any]:
        """The object of study.json."""
        table, (row, column) = self.where
        return {
            "table": table,
            "row": row,
            "column": column,
            "unit": self.unit,
            "published": self.published,
            "measured": estimate_json(self.measured),
            "simulated": estimate_json(self.simulated),
            "measured_mark": self.measured_mark.value,
            "simulated_mark": self.simulated_mark.value,
            "verdict": self.verdict,
        }


@dataclass(slots=True)
class _Seen:
    published: float
    unit: str
    margin: float = 0.0
    found: dict[bool, Estimate] = field(default_factory=dict)
    marks: dict[bool, Mark] = field(default_factory=dict)

    def mark(self, simulated: bool) -> Mark:
        known = self.marks.get(simulated)
        return known or mark_of(self.published, self.found[simulated], self.margin)


def mark_of(published: float, found: Estimate, margin: float) -> Mark:
    """Whether a figure is the published one, within a margin (ratio)."""
    if found.low is None or found.high is None:
        return Mark.NOT_COMPARABLE
    band = Range(found.low, found.high)
    return rules.in_number(published, None, band, margin=margin, neutral=None)[0]


def together(outcomes: Sequence[Outcome], rows: Sequence[Row]) -> list[Beside]:
    """Every published number of which both were had, in the order of the rows and comparisons.

    outcomes, rows: comparisons and emulated rows of all parts. Only numbers that some comparison
    gives a margin for: without, nothing says when two are the same.
    """
    seen: dict[Where, _Seen] = {}
    for row in rows:
        for cell in row.cells:
            for where, (_, value) in zip(cell.published, cell.theirs, strict=True):
                own = seen.setdefault(where, _Seen(value, row.unit))
                if cell.ours is not None:
                    own.found.setdefault(cell.simulated, cell.ours)
    for one in outcomes:
        if one.where is None or one.margin is None or one.figure.value is None:
            continue
        own = seen.setdefault(one.where, _Seen(one.figure.value, one.unit))
        own.margin = max(own.margin, one.margin)
        if one.estimate is not None:
            own.found.setdefault(one.simulated, one.estimate)
            own.marks.setdefault(one.simulated, one.mark)
    return [
        Beside(
            where,
            own.unit,
            own.published,
            own.found[False],
            own.found[True],
            own.mark(False),
            own.mark(True),
        )
        for where, own in seen.items()
        if own.found.keys() == {False, True} and own.margin
    ]


def by_table(found: Sequence[Beside]) -> Mapping[str, list[Beside]]:
    """The numbers of each published table."""
    tables: dict[str, list[Beside]] = {}
    for one in found:
        tables.setdefault(one.where[0], []).append(one)
    return tables


def summary(found: Sequence[Beside]) -> str:
    """What they add up to, in plain words."""
    counts = Counter(one.verdict for one in found)
    told = [
        f"{counts[BOTH]} of {len(found)} published figures are met both by the machines in the lab "
        "and by the simulated schedulers"
    ]
    told += [text.format(counts[verdict]) for verdict, text in _REST if counts[verdict]]
    return "; ".join(told) + "." + "".join(f" {one}" for one in _farthest(found))


_REST = (
    (MEASURED, "{} by the lab alone"),
    (SIMULATION, "{} by the simulation alone"),
    (NEITHER, "{} by neither"),
    (OPEN, "{} not decided (an interval too wide, or a control that does not hold)"),
)


def _farthest(found: Sequence[Beside]) -> Iterator[str]:
    """The greatest distances between the lab and the simulation, relative to the latter."""
    apart = [one for one in found if one.simulated.value]
    if not apart:
        return
    worst = max(apart, key=_distance)
    row, column = worst.where[1]
    yield (
        f"Lab and simulation differ by at most {100 * _distance(worst):.2g} % of the simulated "
        f"figure ({worst.where[0]}, {row}, {column})."
    )


def _distance(one: Beside) -> float:
    return abs(one.measured.value / one.simulated.value - 1)
