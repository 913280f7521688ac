"""What a person sees of a watch: a live line while it waits, sentences, and the list of watches."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TextIO

from nephoscope.cli.kit import output
from nephoscope.core import units
from nephoscope.features.watch.events import EventLog
from nephoscope.features.watch.records import FailingTarget, WatchStatus

_LIVE_S, _FOLLOW_S = 1.0, 10.0


class TerminalScreen:
    """A line that is written over on a terminal; sentences alone elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = output.is_terminal(stream)
        self.piece_s = _LIVE_S if self._live else _FOLLOW_S
        self._next_s: float | None = None

    def say(self, sentence: str) -> None:
        """Shows a sentence that stays."""
        self._clear()
        output.log(output.one_line(sentence))

    def waiting(self, next_s: float, log: EventLog) -> None:
        """Shows the next start, the last verdict and the failures; elsewhere the first start."""
        at = datetime.fromtimestamp(next_s, UTC)
        if not self._live:
            if self._next_s is None:
                output.log(f"Next start {at:%Y-%m-%d %H:%M:%S} UTC")
            self._next_s = next_s
            return
        state = log.state
        left = units.format_duration(max(0.0, next_s - time.time()))
        failing = f"; failing: {', '.join(filter(None, state.failing)) or 'all'}"
        line = f"Next start {at:%H:%M:%S} UTC, in {left}"
        line += f"; last: {state.verdict}" if state.verdict else ""
        line += failing if state.failing else ""
        self._stream.write(f"\r\x1b[K{output.one_line(line)[: output.width()]}")
        self._stream.flush()

    def _clear(self) -> None:
        if self._live:
            self._stream.write("\r\x1b[K")


def print_watches(watches: tuple[WatchStatus, ...]) -> None:
    """Prints a line for each watch, and one for each target that fails."""
    if not watches:
        output.say("There are no watches. `nephoscope watch PLAN --every 5m` starts one.")
        return
    head = ("WATCH", "STATE", "SCHEDULE", "RUNS", "SKIPPED", "FAILED", "NEXT START (UTC)", "LAST")
    rows = [
        (
            watch.name,
            "measuring" if watch.measuring else "waiting" if watch.running else "stopped",
            watch.schedule,
            str(watch.events.get("repetition_ended", 0)),
            str(watch.events.get("start_skipped", 0) + watch.events.get("starts_missed", 0)),
            str(watch.events.get("repetition_failed", 0)),
            (watch.next_start or "-").replace("T", " ").partition("+")[0],
            watch.verdict or "-",
        )
        for watch in watches
    ]
    output.say(output.table(head, rows, right=(3, 4, 5)))
    for watch in watches:
        for failing in watch.failing:
            output.paragraph(f"{watch.name}: {_sentence(failing)}")


def _sentence(failing: FailingTarget) -> str:
    who = failing.target or "the plan"
    left = f", left out of {failing.skips} more starts" if failing.skips else ""
    return f"{who} failed {failing.failures} times in a row{left}: {failing.sentence}"
