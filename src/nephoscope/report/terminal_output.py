"""Renders blocks as text for a terminal of 40 to 200 columns."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from nephoscope.core.reading.unbroken import glued, unglued
from nephoscope.report import sparklines
from nephoscope.report.blocks import (
    Block,
    Chart,
    Heading,
    Items,
    Section,
    Sentence,
    Table,
    Tiles,
    thin,
)
from nephoscope.report.terminal_tables import print_table

MIN_WIDTH = 40
MAX_WIDTH = 200
"""Columns; longer lines are hard to read."""

_MIN_TEXT = 8
"""Columns that a column of text keeps beside numbers that are not to be broken."""
_CHART_ROWS = 12
_TONES = {"warning": ("▲", "bold red"), "notice": ("●", "yellow"), "info": ("○", "cyan")}


def render(title: str, sections: Sequence[Section], *, colour: bool, width: int) -> str:
    """Returns the whole report, in lines of at most `width` columns."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=max(MIN_WIDTH, min(width, MAX_WIDTH)),
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(Text(title, style="bold"))
    for section in sections:
        if not _says_something(section):
            continue
        if section.title != title:
            console.print()
            console.print(Text(section.title.upper(), style="bold cyan"))
        for block in filter(_is_shown, section.blocks):
            _print(console, block)
    return "\n".join(line.rstrip() for line in unglued(out.getvalue()).splitlines()) + "\n"


def _is_shown(block: Block) -> bool:
    if isinstance(block, Table):
        return not block.collapsed and bool(block.rows)
    if isinstance(block, Sentence):
        return not block.roomy
    return not (isinstance(block, Chart) and block.repeats)


def _says_something(section: Section) -> bool:
    """Returns whether a section has content besides its introduction."""
    printed_blocks = [block for block in section.blocks if _is_shown(block)]
    left_out = any(isinstance(block, Chart | Table) for block in section.blocks)
    return not left_out or any(not isinstance(block, Sentence) for block in printed_blocks)


def _print(console: Console, block: Block) -> None:
    match block:
        case Heading():
            console.print()
            console.print(Text(block.text, style="bold"))
        case Sentence():
            console.print(
                Text(glued(block.text, console.width), style="bold" if block.lead else "")
            )
        case Items():
            _print_items(console, block)
        case Tiles():
            _print_tiles(console, block)
        case Table():
            print_table(console, block)
        case Chart():
            _print_chart(console, block)


def _print_items(console: Console, block: Items) -> None:
    for item in block.items:
        mark, style = _TONES.get(item.tone, ("-", ""))
        head = Text.assemble((f"{mark} ", style))
        if item.tone:
            head.append(f"{item.tone}: ", style=style)
        head.append(glued(item.text, console.width - 2), style="bold" if item.tone else "")
        console.print(_hanging(head))
        for detail in item.details:
            console.print(_indented(glued(detail, console.width - 2), "dim"))
        if item.next_step:
            step = glued(f"Next step: {item.next_step}", console.width - 2)
            console.print(_indented(step, ""))


def _hanging(text: Text) -> RichTable:
    """The text with its first two characters hanging in the margin."""
    grid = RichTable.grid(padding=0)
    grid.add_column(width=2, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(text[:2], text[2:])
    return grid


def _indented(text: str, style: str) -> Padding:
    return Padding(Text(text, style=style), (0, 0, 0, 2))


def _print_tiles(console: Console, block: Tiles) -> None:
    """Prints a line for each tile; a label that has no room loses its end, a number never."""
    head = ("value", "interval", "n")
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    for _ in head:
        grid.add_column(justify="right", no_wrap=True)
    numbers = [(tile.value, tile.interval, tile.n) for tile in block.tiles]
    used_width = sum(2 + max(map(cell_len, column)) for column in zip(head, *numbers, strict=True))
    room = max(_MIN_TEXT, console.width - 2 - used_width)
    console.print()
    grid.add_row("", *(Text(title, style="dim") for title in head))
    for tile, (value, interval, n) in zip(block.tiles, numbers, strict=True):
        label = Text(tile.label)
        if tile.setting:
            label.append(f" ({tile.setting})", style="dim")
        label.truncate(room, overflow="ellipsis")
        grid.add_row(label, Text(value, style="bold"), Text(interval), Text(n))
    console.print(Padding(grid, (0, 0, 0, 2)), crop=True)
    console.print()


def _print_chart(console: Console, chart: Chart) -> None:
    console.print()
    console.print(Text(chart.title, style="bold"))
    if chart.caption:
        console.print(Text(chart.caption))
    if chart.sparks:
        _print_sparks(console, chart)
    if chart.brief is not None:
        print_table(console, chart.brief)
    elif not chart.sparks:
        table = chart.table
        rows = thin(table.rows, _CHART_ROWS)
        print_table(console, replace(table, rows=rows, caption=""))
        if len(rows) < len(table.rows):
            note = f"{len(rows)} of {len(table.rows)} rows; the HTML report has all of them."
            console.print(_indented(note, "dim"))


def _print_sparks(console: Console, chart: Chart) -> None:
    label_width = min(26, max(len(spark.label) for spark in chart.sparks))
    room = console.width - label_width - 24
    for spark in chart.sparks:
        line = Text("  ")
        line.append(f"{spark.label[:label_width]:<{label_width}} ", style="bold")
        line.append(f"{spark.first:>8} ", style="dim")
        line.append(sparklines.curve(spark.values, log=spark.log, width=max(8, room)), style="cyan")
        line.append(f" {spark.last}", style="dim")
        console.print(line, overflow="ellipsis", no_wrap=True)
