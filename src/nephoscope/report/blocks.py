"""Blocks of a report section, rendered as HTML, Markdown and terminal text.

Section
├── Heading    a title below the section's own
├── Sentence   a paragraph; `lead` for the one that a hurried reader reads
├── Items      a list; each item may carry a tone (severity), evidence and a next step
├── Tiles      a few figures that stand out
├── Table      rows of text; a cell may be a Strip of values in order of time, or Linked to others
└── Chart      a figure with the table of its data behind it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nephoscope.report import wording

Entry = TypeVar("Entry")
Record = TypeVar("Record")

Figure = Mapping[str, Any]
"""A plotly figure as plain data: {"data": […], "layout": {…}}."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A title inside a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A paragraph of plain text. lead: larger, for the one paragraph that carries the section.

    roomy: left out on the terminal, as the columns that it explains.
    """

    text: str
    lead: bool = False
    roomy: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a list. tone: '', 'info', 'notice' or 'warning'; details: lines beneath it."""

    text: str
    tone: str = ""
    details: tuple[str, ...] = ()
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list. folded: title under which the page folds it away; '' leaves it open."""

    items: tuple[Item, ...]
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Tile:
    """A headline result: label, setting, value, interval, number of trials and consistency."""

    label: str
    setting: str
    value: str
    interval: str
    n: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A row of figures."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Strip:
    """Values in order of execution, drawn small in a table's cell.

    Drawn around their median within a band of at least `band` (a ratio), so that noise of a
    per cent does not look like a mountain range.
    """

    values: tuple[float, ...]
    band: float = 0.1


@dataclass(frozen=True, slots=True)
class Linked:
    """Text of a table's cell with links to other cells of the page, or that they lead to.

    links: text and id of each. id: of this cell, a plain word; unique in the report.
    """

    text: str = ""
    links: tuple[tuple[str, str], ...] = ()
    id: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.text, ", ".join(text for text, _ in self.links))))


Cell = str | Strip | Linked


@dataclass(frozen=True, slots=True)
class Column(Generic[Record]):
    """A column's title and its cell of a record; `columns` has the constructors.

    numeric: aligned right. roomy: left out where there is little room. width: of the page's column,
    in the height of a letter, so that tables below each other align; 0 leaves it to the browser.
    """

    title: str
    cell: Callable[[Record], Cell]
    numeric: bool = False
    roomy: bool = False
    width: float = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells. collapsed: folded away on the page, left out on the terminal.

    Where no column has a title, it is a list of facts.
    """

    columns: tuple[Column[Any], ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Spark:
    """One curve in a line of text: label, values in order, and how the ends of the x axis read."""

    label: str
    values: tuple[float, ...]
    first: str = ""
    last: str = ""
    log: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure with its caption and its data as a table.

    id: unique in the report, a plain word. brief: a short table for the terminal in place of the
    data; None where the sparks say enough or there is nothing shorter. repeats: its data stand in
    another table of the report already, so that the terminal leaves it out.
    """

    id: str
    title: str
    figure: Figure
    table: Table
    caption: str = ""
    brief: Table | None = None
    sparks: tuple[Spark, ...] = ()
    repeats: bool = False


Block = Heading | Sentence | Items | Tiles | Table | Chart


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report. id: its anchor; blocks: its content, in order.

    folded: below its title, which opens it on the page.
    """

    id: str
    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)
    folded: bool = False


def items(
    texts: Iterable[str | Item], tone: str = "", *, title: str = "", folded: str = ""
) -> list[Block]:
    """Returns texts as a list, below a heading if it has a title; nothing without texts."""
    entries = tuple(
        text if isinstance(text, Item) else Item(wording.clean(text), tone) for text in texts
    )
    heading = [Heading(title)] if title else []
    return [*heading, Items(entries, folded)] if entries else []


def thin(entries: Sequence[Entry], limit: int) -> tuple[Entry, ...]:
    """At most `limit` entries, evenly spaced, the first and the last among them."""
    if len(entries) <= limit:
        return tuple(entries)
    last = len(entries) - 1
    picks = sorted({round(index * last / (limit - 1)) for index in range(limit)})
    return tuple(entries[pick] for pick in picks)
