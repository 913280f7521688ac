"""Prints tables on a terminal so that no word is broken across lines.

Columns get the room that their longest words need, the rest goes to the columns with the most text.
A table whose words have no room beside each other is printed row by row, a line for each cell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from nephoscope.core.reading.column_widths import column_widths
from nephoscope.report import sparklines
from nephoscope.report.blocks import Cell, Strip, Table

_CELLS, _PHRASES, _WORDS = re.compile(r"\n"), re.compile(r"(?<=[,;])\s"), re.compile(r"\s+")
"""What separates the parts of a cell that stay in one line."""
_BREAKS = re.compile(r"[\n\t]")
"""What makes a cell other than one line of the width of its characters."""
_GAP = 2
"""Columns of the margin, and between two columns of a table."""


def print_table(console: Console, table: Table) -> None:
    """Prints a table with its caption; nothing of a table without rows."""
    if not table.rows:
        return
    if table.caption:
        console.print(Text(table.caption, style="italic"))
    columns = [index for index, column in enumerate(table.columns) if not column.roomy]
    is_titled = any(table.columns[index].title for index in columns)
    widths = _widths(table, columns, console.width)
    if widths is None and is_titled:
        _print_rows(console, table, columns)
        return
    grid = RichTable(
        box=SIMPLE_HEAD if is_titled else None,
        show_header=is_titled,
        padding=(0, 1, 0, 0) if is_titled else (0, 2, 0, 0),
        pad_edge=False,
        show_edge=False,
        header_style="dim",
    )
    for position, index in enumerate(columns):
        column = table.columns[index]
        grid.add_column(
            Text(column.title),
            justify="right" if column.numeric else "left",
            overflow="fold",
            width=widths[position] if widths else None,
        )
    for row in table.rows:
        grid.add_row(*(_text(row[index]) for index in columns))
    console.print(Padding(grid, (0, 0, 0, _GAP)))


def _text(cell: Cell) -> Text:
    return Text(sparklines.as_text(cell) if isinstance(cell, Strip) else str(cell))


def _widths(table: Table, columns: Sequence[int], width: int) -> list[int] | None:
    """Returns the widths of the columns; None where their words have no room."""
    texts = [
        [table.columns[index].title, *(_text(row[index]).plain for row in table.rows)]
        for index in columns
    ]
    whole = [max(map(cell_len, cells)) for cells in texts]
    words = [_longest(cells, _WORDS) for cells in texts]
    room = width - _GAP * len(columns)
    # Where there is room, only text is wrapped; else lists of numbers, and units at the last.
    for separator in (_CELLS, _PHRASES, _WORDS):
        least = [
            max(_longest(cells[1:], separator), word) if table.columns[index].numeric else word
            for index, cells, word in zip(columns, texts, words, strict=True)
        ]
        if widths := column_widths(whole, least, room):
            return widths
    return None


def _longest(cells: Sequence[str], separator: re.Pattern[str]) -> int:
    """Returns the width of the longest part of any cell."""
    return max(cell_len(part) for cell in cells for part in separator.split(cell))


def _print_rows(console: Console, table: Table, columns: Sequence[int]) -> None:
    """Prints each row as lines of title and cell, empty cells left out.

    A cell whose longest word has no room beside the title is below it.
    """
    titles = {index: Text(table.columns[index].title, style="dim") for index in columns}
    label = max(cell_len(title.plain) for title in titles.values())
    room = console.width - label - 2 * _GAP
    margin = Text(" " * _GAP)
    heads = {
        index: Text.assemble(title, " " * (label - cell_len(title.plain) + _GAP))
        for index, title in titles.items()
    }
    for number, row in enumerate(table.rows):
        if number:
            console.print()
        lines: list[Text] = []
        for index in columns:
            text = _text(row[index])
            if not text.plain:
                continue
            if cell_len(text.plain) <= room and not _BREAKS.search(text.plain):
                lines.append(Text.assemble(margin, heads[index], text))
                continue
            _print_lines(console, lines)
            if _longest([text.plain], _WORDS) > room:
                console.print(Padding(titles[index], (0, 0, 0, _GAP)))
                console.print(Padding(text, (0, 0, 0, _GAP)))
                continue
            grid = RichTable.grid(padding=(0, _GAP, 0, 0))
            grid.add_column(width=label)
            grid.add_column()
            grid.add_row(titles[index], text)
            console.print(Padding(grid, (0, 0, 0, _GAP)))
        _print_lines(console, lines)


def _print_lines(console: Console, lines: list[Text]) -> None:
    """Prints lines that have room, all at once, because a grid for each takes 1 ms; empties it."""
    if lines:
        console.print(Text("\n").join(lines))
        lines.clear()
