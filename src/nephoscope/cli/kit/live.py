"""The live line of a terminal, in a module of its own so that a pipe never loads its library."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from nephoscope.cli.kit import output, remaining
from nephoscope.core.reading.printable import printable
from nephoscope.measure.runs import Status


class LiveLine:
    """A bar, the time left, and the trial that is measured; messages scroll above it."""

    def __init__(self, stream: TextIO) -> None:
        console = Console(
            file=stream, no_color=not output.colour_wanted(stream), highlight=False, emoji=False
        )
        self._bar = Bar(
            BarColumn(12),
            TextColumn("{task.fields[left]}"),
            # Only this column gives way: the time left is never cut.
            TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True)),
            console=console,
            expand=True,
            transient=True,
            auto_refresh=False,  # drawn between trials only: a trial has the CPUs to itself
        )
        self._task: TaskID = self._bar.add_task("preparing", total=None, left="")

    def start(self) -> None:
        """Begins to draw."""
        self._bar.start()

    def stop(self) -> None:
        """Removes the line; messages stay."""
        self._bar.stop()

    def say(self, text: str) -> None:
        """Prints a message that stays."""
        self._bar.console.print(escape(printable(text)), soft_wrap=True)

    def preparing(self, text: str) -> None:
        """Shows what is prepared before measuring begins."""
        self._bar.update(self._task, total=None, description=escape(printable(text)), left="")
        self._bar.refresh()

    def update(self, text: str, status: Status) -> None:
        """Shows what is measured now, and how far the run is."""
        if status.budget_s:
            total, done = status.budget_s, min(status.spent_s, status.budget_s)
            left = remaining.left(status)
        else:
            total, done = float(status.alternatives), float(status.ended)
            left = f"{status.ended} of {status.alternatives} settings done"
            left = ", ".join(filter(None, (remaining.left(status), left)))
        self._bar.update(
            self._task, total=total, completed=done, description=escape(printable(text)), left=left
        )
        self._bar.refresh()
