"""What a person sees while it measures: on stderr, a live line on a terminal, else now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TextIO

from nephoscope import units
from nephoscope.commands import output
from nephoscope.model import Setting, TrialKey, TrialRecord, TrialStatus
from nephoscope.runs import Observer, Outcome, Status
from nephoscope.store import StoredRun

LINE_EVERY_S = 10.0
"""Where nobody looks (a log, a pipe) a line so often is enough to see that it lives."""

_WORTH_TELLING = frozenset({"refused", "no_valid"})


class Progress(Observer):
    """Tells how far a run is and how long it will still take; used as a context."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._last_line = now()
        self._live: Any = None

    def __enter__(self) -> Progress:
        if output.is_terminal(self._stream):
            self._live = _live_line(self._stream)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def run_started(self, run: StoredRun, resumed: bool, trials: int) -> None:
        """Says which run it is, and whether it goes on."""
        if resumed:
            self._say(f"Going on with run {run.id}: {trials} trials are there already.")
        else:
            self._say(f"Run {run.id}")

    def warning(self, sentence: str) -> None:
        """Shows the sentence."""
        self._say(f"! {sentence}")

    def trial_started(self, key: TrialKey, setting: Setting, status: Status) -> None:
        """Shows what is being measured now, and what is left."""
        text = f"{_stage(key)}, {setting.benchmark}{_levels(setting)}"
        if self._live is not None:
            self._live.update(text, status)
        elif self._now() - self._last_line >= LINE_EVERY_S:
            self._last_line = self._now()
            self._say(f"{text}: {_left(status)}")

    def trial_ended(self, record: TrialRecord, status: Status) -> None:
        """Says at once when a trial failed: waiting for the report would cost the user's time."""
        if record.status is TrialStatus.FAILED and record.key.round <= 1 and record.reasons:
            self._say(f"! {record.benchmark}: {record.reasons[0]}")

    def alternative_ended(self, outcome: Outcome, status: Status) -> None:
        """Says which settings are given up, and why."""
        if outcome.word in _WORTH_TELLING:
            self._say(f"! {outcome.benchmark} on {outcome.target}: {outcome.reason}")

    def target_opened(self, name: str, fingerprint: Mapping[str, Any]) -> None:
        """Nothing: the report tells what the target is."""

    def _say(self, text: str) -> None:
        line = output.one_line(text)
        if self._live is not None:
            self._live.say(line)
        else:
            output.log(line)


def _stage(key: TrialKey) -> str:
    return f"round {key.round}" if key.round > 0 else "warm-up"


def _levels(setting: Setting) -> str:
    levels = ", ".join(f"{name}={level}" for name, level in sorted(setting.factors.items()))
    return f" ({levels})" if levels else ""


def _left(status: Status) -> str:
    done = f"{status.trials} trials, {status.ended} of {status.alternatives} settings done"
    if status.left_s is None:
        return done
    return f"{done}, about {units.format_duration(status.left_s)} left"


def _live_line(stream: TextIO) -> Any:
    """A bar that fills with the budget (or with settings done, where there is no budget)."""
    from nephoscope.commands.live import LiveLine

    return LiveLine(stream)
