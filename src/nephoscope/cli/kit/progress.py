"""Prints the progress of a run on stderr: a live line on a terminal, else a line every 10 s."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TextIO

from nephoscope.cli.kit import output, remaining, work_line
from nephoscope.core.model import Setting, TrialKey, TrialRecord, TrialStatus
from nephoscope.core.naming import factors_text, failure_text, plural
from nephoscope.measure.runs import LOST, Observer, Outcome, Status
from nephoscope.store import StoredRun

LINE_EVERY_S = 10.0
"""Interval of lines in a log or a pipe, where they only show that the run goes on."""

TARGETS_NAMED = 4
"""Targets that are named while they measure at one time; more are counted."""

SLOW_FAILURE_NS = 5e9
"""Duration of a failed trial from which its reason is printed before the others end as it did."""

_WORTH_TELLING = frozenset({"refused", "no_valid"})


class ProgressDisplay(Observer):
    """Prints how far a run is and how long it will still take; used as a context."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._last_line = now()
        self._live: Any = None
        self._running: dict[str, tuple[TrialKey, Setting]] = {}

    def __enter__(self) -> ProgressDisplay:
        work_line.end()
        if output.is_terminal(self._stream):
            from nephoscope.cli.kit.live import LiveLine

            self._live = LiveLine(self._stream)
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
            self.say(f"Resuming run {run.id} with {trials} completed trials.")
        else:
            self.say(f"Run {run.id}")

    def warning(self, sentence: str) -> None:
        """Shows the sentence."""
        self.say(f"! {sentence}")

    def reported(self, sentence: str) -> None:
        """Shows what is made ready; a lab may take minutes."""
        if self._live is not None:
            self._live.preparing(output.one_line(sentence))
        else:
            self.say(sentence)

    def trial_started(self, key: TrialKey, setting: Setting, status: Status) -> None:
        """Shows what is being measured now, on which target where there are several, and what is
        left."""
        self._running[key.target] = (key, setting)
        if self._live is not None:
            self._live.update(_now(self._running, key), status)
        elif self._now() - self._last_line >= LINE_EVERY_S:
            self._last_line = self._now()
            text = _now(self._running, key)
            self.say(" · ".join(filter(None, (text, done(status), remaining.left(status)))))

    def trial_ended(self, record: TrialRecord, status: Status) -> None:
        """Says at once when a trial failed: waiting for the report would cost the user's time.

        Not of the only setting, whose failure ends the run at once with the same sentence.
        """
        self._running.pop(record.key.target, None)
        if record.failure_name == LOST:
            return  # told once for the target, not for each of its trials
        if record.status is TrialStatus.FAILED and record.key.round <= 1 and record.reasons:
            ends_at_once = status.alternatives == 1 and record.elapsed_ns < SLOW_FAILURE_NS
            if not ends_at_once:
                output.print_failure(record.reasons[0], self.say, f"! {record.benchmark}: ")

    def alternative_ended(self, outcome: Outcome, status: Status) -> None:
        """Says which settings are given up, and why if that was not said of a trial."""
        ends_the_run = status.alternatives == 1 and not outcome.n
        if outcome.word in _WORTH_TELLING and not ends_the_run:
            head, _, reason = output.one_line(outcome.reason).partition(": ")
            rest = "." if not reason or output.was_printed(reason) else f": {failure_text(reason)}"
            self.say(f"! {_what(outcome)} on {outcome.target}: {head}{rest}")

    def say(self, text: str) -> None:
        """Shows a line that stays."""
        line = output.one_line(text)
        if self._live is not None:
            self._live.say(line)
        else:
            output.log(line)


def _stage(key: TrialKey) -> str:
    return f"round {key.round}" if key.round > 0 else "warm-up"


def _now(running: Mapping[str, tuple[TrialKey, Setting]], last: TrialKey) -> str:
    """Returns what is measured: one trial, or one on each of several targets."""
    if len(running) == 1:
        return f"{_stage(last)}, {_what(running[last.target][1])}"
    if len(running) > TARGETS_NAMED:
        benchmarks = ", ".join(sorted({setting.benchmark for _, setting in running.values()}))
        return f"{_stage(last)}, {benchmarks} on {len(running)} targets"
    parts = [f"{target}: {_what(setting)}" for target, (_, setting) in sorted(running.items())]
    return f"{_stage(last)}, {'; '.join(parts)}"


def _what(measured: Setting | Outcome) -> str:
    levels = factors_text(measured.factors)
    return f"{measured.benchmark} ({levels})" if levels else measured.benchmark


def done(status: Status) -> str:
    """Returns how much was measured; settings that need no more trials where there are any."""
    trials = plural(status.trials, "trial")
    if not status.ended:
        return trials
    return f"{trials}, {status.ended} of {status.alternatives} settings precise enough"
