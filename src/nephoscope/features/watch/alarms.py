"""What a watch does when something is wrong: it runs a command of the user, and not too often.

An alarm is a warning of a repetition, a target that was not measured, or a repetition that failed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nephoscope.core import documents
from nephoscope.core.errors import UsageError
from nephoscope.features.watch.digest import DayDigest
from nephoscope.features.watch.events import EventLog
from nephoscope.features.watch.repetition import WatchRepetition

TIMEOUT_S = 60.0
"""Time for which the command may run: the next start of the watch waits for it."""
_OUTPUT_BYTES = 500
"""End of the command's output that its event has."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """What is wrong. name: id of the finding, or the target; '' of a repetition that failed.

    run: id of the run, '' without one. next_step: what the finding advises, '' where nothing.
    """

    watch: str
    kind: Literal["finding", "target_failed", "repetition_failed"]
    name: str
    sentence: str
    evidence: tuple[str, ...] = ()
    next_step: str = ""
    run: str = ""

    @property
    def key(self) -> str:
        """Alarms of one key are one thing that lasts."""
        return f"{self.kind} {self.name}".rstrip()


def alarms_of(watch: str, repetition: WatchRepetition) -> list[Alarm]:
    """Returns the alarms of a repetition that was measured."""
    lost = [
        Alarm(watch, "target_failed", name, why, run=repetition.run)
        for name, why in repetition.lost.items()
    ]
    warned = [
        Alarm(
            watch,
            "finding",
            finding.id,
            finding.sentence,
            finding.evidence,
            finding.next_step,
            repetition.run,
        )
        for finding in repetition.warnings
    ]
    return [*lost, *warned]


@dataclass(frozen=True, slots=True)
class AlarmAction:
    """A command that takes each alarm as JSON on its standard input, without a shell.

    every_s: least time between two calls for alarms of one key. The times are those of the events,
    so that a restart keeps them.
    """

    words: Sequence[str]
    every_s: float
    timeout_s: float = TIMEOUT_S

    def handle(self, alarm: Alarm, log: EventLog, now_s: float, event: Callable[..., None]) -> str:
        """Runs the command, or notes that it ran lately; returns a sentence for people, or ''."""
        last_s = log.state.alarms.get(alarm.key)
        if last_s is not None and 0 <= now_s - last_s < self.every_s:
            event("alarm_held_back", alarm=alarm.key)
            return ""
        return self._call(alarm, "alarm_handled", event, alarm=alarm.key, at_s=now_s)

    def hand_over(self, digest: DayDigest, event: Callable[..., None]) -> str:
        """Runs the command for the digest of a day; returns a sentence for people."""
        return self._call(digest, "digest_handed_over", event, date=digest.date)

    def _call(
        self, record: Alarm | DayDigest, kind: str, event: Callable[..., None], **details: Any
    ) -> str:
        began_s = time.monotonic()
        code, text = self._run(json.dumps(documents.versioned(record)).encode())
        details |= {"code": code, "seconds": round(time.monotonic() - began_s, 3)}
        event(kind, **details, output=text, sync=True)
        ended = "was ended after its time limit" if code is None else f"ended with {code}"
        return f"The command for '{record.key}' {ended}{f': {text}' if text else '.'}"

    def _run(self, document: bytes) -> tuple[int | None, str]:
        """Returns the exit code, None where the time limit ended it, and the end of its output."""
        with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as output:
            text.write(document)
            text.seek(0)
            try:
                child = subprocess.Popen(
                    self.words,
                    stdin=text,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                return 127, str(error)
            try:
                code: int | None = child.wait(self.timeout_s)
            except BaseException as error:
                # All that it started too. One that ends by itself may leave something to run.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                code = None
            end = output.seek(0, os.SEEK_END)
            output.seek(max(0, end - _OUTPUT_BYTES))
            return code, output.read(_OUTPUT_BYTES).decode(errors="replace").strip()


def action_of(command: str, every_s: float, option: str = "--on-alarm") -> AlarmAction:
    """Returns the action of a command line. UsageError where it cannot be started."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{option}: '{command[:80]}': {error}.", "Close the quotes.") from None
    if not words or shutil.which(words[0]) is None:
        raise UsageError(
            f"{option}: there is no program '{words[0] if words else ''}'.",
            "Write its path, or install it; a shell is started by: sh -c '…'.",
        )
    return AlarmAction(words, every_s)
