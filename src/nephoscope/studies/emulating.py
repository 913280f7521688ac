"""Rows that were set up here: set, measured, published, and what is seen of it from inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nephoscope.analysis.compare import estimate_json
from nephoscope.model import Estimate, RunResult
from nephoscope.studies import ours
from nephoscope.studies.emulated import Emulated, Share
from nephoscope.studies.filling import told
from nephoscope.studies.records import Part
from nephoscope.studies.shelf import Shelf
from nephoscope.studies.together import Where, is_simulated

HOLDS, MISSED, UNSURE, ABSENT = "holds", "missed", "too wide", "not measured"


@dataclass(frozen=True, slots=True)
class Cell:
    """One share: what was set, ours, and (what it is called, value) of each published number.

    word: holds (the whole interval lies within), missed (it lies beyond), too wide, not measured.
    published: where each of `theirs` stands. simulated: ours comes from a model.
    """

    what: str
    set_to: float
    word: str
    ours: Estimate | None
    theirs: tuple[tuple[str, float], ...]
    absent: str = ""
    published: tuple[Where, ...] = ()
    simulated: bool = False

    def to_json(self) -> dict[str, Any]:
        """The object of study.json."""
        return {
            "what": self.what,
            "set": self.set_to,
            "ours": estimate_json(self.ours) if self.ours else None,
            "word": self.word,
            "theirs": [{"as": name, "value": value} for name, value in self.theirs],
            "absent": self.absent or None,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One emulated row. verdict: what the inference called it from inside; '' if it was not asked.

    expected: what it had to call it.
    """

    part: str
    id: str
    title: str
    unit: str
    within: float
    cells: tuple[Cell, ...]
    expected: str
    verdict: str
    sentence: str
    why: str

    @property
    def holds(self) -> bool:
        """Whether every share holds and the verdict is the expected one."""
        return self.verdict == self.expected and all(cell.word == HOLDS for cell in self.cells)

    def to_json(self) -> dict[str, Any]:
        """The object of study.json."""
        return {
            "part": self.part,
            "id": self.id,
            "title": self.title,
            "unit": self.unit,
            "within": self.within,
            "shares": [cell.to_json() for cell in self.cells],
            "expected": self.expected or None,
            "verdict": self.verdict or None,
            "sentence": self.sentence or None,
            "why": self.why,
        }


def emulate(shelf: Shelf, part: Part, result: RunResult) -> list[Row]:
    """Every emulated row of the part, from a run of its plan."""
    return [_row(shelf, part, one, result) for one in part.emulated]


def _row(shelf: Shelf, part: Part, one: Emulated, result: RunResult) -> Row:
    cells = tuple(_cell(shelf, one, share, result) for share in one.shares)
    verdict, sentence = _seen(one, result)
    return Row(
        part.name,
        one.id,
        one.title,
        one.unit,
        one.within,
        cells,
        one.word,
        verdict,
        sentence,
        one.why,
    )


def _cell(shelf: Shelf, one: Emulated, share: Share, result: RunResult) -> Cell:
    theirs = tuple(
        (beside.called, shelf.number(beside.table, beside.cell).value) for beside in share.beside
    )
    cell = Cell(
        share.what,
        share.set_to,
        ABSENT,
        None,
        theirs,
        published=tuple((beside.table, beside.cell) for beside in share.beside),
        simulated=is_simulated(share.ours.benchmark),
    )
    try:
        found = ours.estimate(result, share.ours)
    except ours.Absent as error:
        return replace(cell, absent=str(error))
    return replace(cell, word=_word(found, share.set_to, one.within), ours=found)


def _word(found: Estimate, set_to: float, within: float) -> str:
    if found.low is None or found.high is None:
        return UNSURE
    low, high = set_to - within, set_to + within
    if low <= found.low and found.high <= high:
        return HOLDS
    return MISSED if found.high < low or found.low > high else UNSURE


def _seen(one: Emulated, result: RunResult) -> tuple[str, str]:
    """What the target is called from inside, and the sentence; '' where it is not asked."""
    if not one.word:
        return "", ""
    for scheduler in result.schedulers:
        if scheduler.target == one.target:
            return str(scheduler.word), str(scheduler.sentence)
    return "nothing", "no look at it says what schedules it"


def told_ours(cell: Cell, unit: str) -> str:
    """Our share with interval and n, or why there is none."""
    if cell.ours is None:
        return f"none: {cell.absent}"
    found = cell.ours
    return f"{told(found.value, found.low, found.high, unit)}, n {found.n}"


def told_theirs(cell: Cell) -> str:
    """'75.6 emulated, 75.7 EC2'; the study gives them without interval or n."""
    return ", ".join(f"{value:g} {name}" for name, value in cell.theirs) or "–"


def told_verdict(row: Row) -> str:
    """What is seen from inside, and whether that is what it is; '' where it was not asked."""
    if not row.expected:
        return ""
    if row.verdict == row.expected:
        return f"From inside: {row.verdict}, as it is. {row.sentence}"
    return f"From inside: {row.verdict}, while it is: {row.expected}. {row.sentence}"


def summary(rows: Sequence[Row]) -> str:
    """'7 of 8 rows hold: every share within 2 % of a CPU of what was set; 7 of 7 named rightly'."""
    good = sum(all(cell.word == HOLDS for cell in row.cells) for row in rows)
    asked = [row for row in rows if row.expected]
    right = sum(row.verdict == row.expected for row in asked)
    text = f"{good} of {len(rows)} rows have every share within the bound of what was set"
    return (
        f"{text}; {right} of {len(asked)} are named rightly from inside." if asked else f"{text}."
    )
