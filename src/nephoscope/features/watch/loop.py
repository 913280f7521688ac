"""Repeats a plan on its schedule, and outlives what goes wrong meanwhile.

Waits follow the monotonic clock in short pieces, starts the wall clock; a difference between the
two is a step, after which the next start is looked up anew. A repetition that fails is an event,
and its target, or the whole plan, is left out of more and more starts until it answers again.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from nephoscope.core.errors import Interrupted, NephoscopeError, StoreError
from nephoscope.features.watch.alarms import Alarm, AlarmAction, alarms_of
from nephoscope.features.watch.digest import digest_of
from nephoscope.features.watch.events import EventLog
from nephoscope.features.watch.folder import WatchFolder
from nephoscope.features.watch.records import Definition
from nephoscope.features.watch.repetition import (
    SERIES_LABEL,
    Measure,
    WatchRepetition,
    close_interrupted,
)
from nephoscope.features.watch.schedule import (
    Clock,
    ClockSteps,
    Cron,
    IntervalSchedule,
    Schedule,
    Start,
)
from nephoscope.measure import plans
from nephoscope.store import Store
from nephoscope.store.day_files import WATCH

POLL_S = 1.0
"""Time between two attempts to begin while other watches measure."""
RETAIN_EVERY_S = 3600.0
"""Time between two compactions: each reads the day file that it adds runs to."""
LONGEST_REST_S = 3600.0
"""Time for which a failing target is left out at most; it is tried at every start that is rarer."""


class Screen(Protocol):
    """What a person sees of a watch.

    piece_s: longest wait after which the clock is looked at, and the screen told, again.
    """

    piece_s: float

    def say(self, sentence: str) -> None:
        """Shows a sentence that stays."""

    def waiting(self, next_s: float, log: EventLog) -> None:
        """Shows what the watch waits for. next_s: the next start, epoch s."""


def schedule_of(definition: Definition) -> Schedule:
    """Returns the schedule of a definition. Raises UsageError for a wrong cron expression."""
    delay = definition.jitter, definition.seed
    if definition.every_s is not None:
        return IntervalSchedule(definition.every_s, *delay)
    return Cron(str(definition.cron), definition.time_zone, *delay)


@dataclass
class Watch:
    """The one process that repeats a plan.

    retain: compacts and removes runs, once an hour. publish: takes each repetition, None for a
    start without one. on_alarm: what is done when something is wrong. on_day: what takes the
    digest of each day.
    """

    store: Store
    definition: Definition
    measure: Measure
    screen: Screen
    clock: Clock = field(default_factory=Clock)
    retain: Callable[[], object] = lambda: None
    publish: Callable[[WatchRepetition | None, EventLog, float], None] = lambda *_: None
    on_alarm: AlarmAction | None = None
    on_day: AlarmAction | None = None

    def __post_init__(self) -> None:
        self._schedule = schedule_of(self.definition)
        self._folder = WatchFolder(self.store, self.definition.name)
        self._steps = ClockSteps(self.clock)
        self._rest_until_s = 0.0
        self._retained_s = -math.inf
        self._complaints: dict[str, str] = {}
        self._log: EventLog

    def run(self, repetitions: int | None = None) -> None:
        """Repeats until a signal ends it, or for so many starts.

        Raises StoreError where another process repeats this watch.
        """
        self._folder.create()
        with self._folder.running():
            self._folder.write(self.definition)
            self._log = EventLog(self._folder.events, self.clock.now_s)
            self._begin()
            try:
                while repetitions is None or repetitions > 0:
                    start = self._schedule.next(self.clock.now_s())
                    if self._wait(start):
                        self._repeat(start)
                        repetitions = None if repetitions is None else repetitions - 1
            except (KeyboardInterrupt, Interrupted):
                self._close()
                self._event("watch_stopped", why="interrupted")
                raise
            self._event("watch_stopped", why="all repetitions are done")

    def _begin(self) -> None:
        upcoming, last_s = self._schedule.next(self.clock.now_s()), self._log.state.due_s
        missed = 0 if last_s is None else self._schedule.count(last_s, upcoming.due_s) - 1
        self._event("watch_started")
        if missed > 0:
            self._event("starts_missed", count=missed)
            self.screen.say(f"{missed} starts were missed while the watch did not run.")
        self._close()
        self.publish(None, self._log, upcoming.at_s)

    def _wait(self, start: Start) -> bool:
        """Waits for a start; False where the clock was set meanwhile."""
        while not self._note_step():
            left_s = start.at_s - self.clock.now_s()
            if left_s <= 0:
                return True
            self.screen.waiting(start.at_s, self._log)
            self.clock.wait(min(left_s, self.screen.piece_s))
        return False

    def _note_step(self) -> bool:
        """Notes a step of the clock; returns whether there was one."""
        step_s = self._steps.step_s()
        if step_s is None:
            return False
        self._event("clock_stepped", step_s=round(step_s, 3))
        self.screen.say(
            f"The clock was set by {step_s:+.3f} s, or the machine slept; the schedule goes on in "
            "the new time."
        )
        return True

    def _repeat(self, start: Start) -> None:
        """Measures once, or notes why not; then the schedule goes on."""
        self._end_day()
        repetition = None
        if self._log.state.open:
            self._close()
        reason = self._obstacle()
        if not reason:
            with self._place(start) as free:
                if free:
                    repetition = self._measured(start)
                else:
                    reason = "other watches of this store are measuring"
        if reason:
            self._skip(start.due_s, reason)
        if self.clock.monotonic_s() - self._retained_s >= RETAIN_EVERY_S:
            self._guarded("retention", self._apply_retention)
        upcoming = self._schedule.next(self.clock.now_s())
        overlapped = self._schedule.count(start.due_s, upcoming.due_s) - 1
        if not self._note_step() and overlapped > 0:
            last_s = self._schedule.until(upcoming.due_s - 1)
            self._skip(last_s, "the one before was not over", overlapped)
        self.publish(repetition, self._log, upcoming.at_s)

    def _end_day(self) -> None:
        """States the digest of a day that is over."""
        day, today = self._log.state.day, datetime.fromtimestamp(self.clock.now_s(), UTC)
        if not day.date or day.date >= f"{today:%Y-%m-%d}":
            return
        digest = digest_of(self.definition.name, day)
        self._event("day_ended", date=digest.date, sentence=digest.sentence, sync=True)
        self.screen.say(digest.sentence)
        if self.on_day is not None:
            self.screen.say(self.on_day.hand_over(digest, self._event))

    def _apply_retention(self) -> None:
        self.retain()
        self._retained_s = self.clock.monotonic_s()

    def _skip(self, due_s: float, reason: str, count: int = 1) -> None:
        self._event("start_skipped", due_s=due_s, reason=reason, count=count)
        starts = "Start" if count == 1 else f"{count} starts"
        self.screen.say(f"{starts} skipped: {reason}.")

    def _obstacle(self) -> str:
        """Returns why a start is skipped; empty where nothing stands against it."""
        failures, skips, sentence = self._log.state.failing.get("", (0, 0, ""))
        if skips:
            return f"waiting after {failures} failures in a row ({sentence})"
        if self.clock.monotonic_s() < self._rest_until_s:
            return f"measuring may take {100 * self.definition.max_share:g} % of the time"
        return ""

    @contextlib.contextmanager
    def _place(self, start: Start) -> Iterator[bool]:
        """Waits for a place among the runs of all watches, almost until the next start."""
        wait_s = self._schedule.next(start.at_s).at_s - self.clock.now_s() - 2 * POLL_S
        until_s = self.clock.monotonic_s() + wait_s
        while True:
            with self._folder.measuring(self.definition.max_runs) as free:
                if free or self.clock.monotonic_s() >= until_s:
                    yield free
                    return
            self.clock.wait(POLL_S)

    def _measured(self, start: Start) -> WatchRepetition | None:
        """Measures the plan; what fails is an event."""
        begun_s = self.clock.monotonic_s()
        failing = self._log.state.failing.items()
        resting = {name: sentence for name, (_, skips, sentence) in failing if skips}
        self._event("repetition_started", due_s=start.due_s)
        repetition = None
        try:
            repetition = self._attempt(start, resting)
        except Interrupted:
            raise
        except NephoscopeError as error:
            failures, skips = self._next_rest("", start)
            skips = 0 if isinstance(error, StoreError) else skips  # space may be freed any moment
            self._event(
                "repetition_failed", sentence=str(error), failures=failures, skips=skips, sync=True
            )
            self.screen.say(f"The repetition failed: {error}{_rest(skips)}")
            self._guarded("interrupted run", self._close_run)
            self._act(Alarm(self.definition.name, "repetition_failed", "", str(error)))
        spent_s = self.clock.monotonic_s() - begun_s
        self._rest_until_s = begun_s + spent_s / self.definition.max_share
        return repetition

    def _attempt(self, start: Start, resting: Mapping[str, str]) -> WatchRepetition:
        """Measures the plan without the targets that rest, and notes what became of it."""
        plan = self._plan()
        names = [target.name for target in plan.targets]
        labels = {
            **self.definition.labels,
            WATCH: self.definition.name,
            SERIES_LABEL: str(self._log.state.series),
        }
        repetition = self.measure(
            plan,
            self.store,
            labels,
            {name: why for name, why in resting.items() if name in names},
            lambda run: self._event("run_created", run=run),
        )
        for name in names:
            if name not in resting:
                self._note_target(name, repetition.lost.get(name), start)
        self._event(
            "repetition_ended",
            run=repetition.run,
            verdict=repetition.verdict,
            warnings=[finding.sentence for finding in repetition.warnings],
            answers=list(repetition.answers),
            sync=True,
        )
        self.screen.say(f"{repetition.run}: {repetition.verdict}")
        self._act(*alarms_of(self.definition.name, repetition))
        return repetition

    def _act(self, *alarms: Alarm) -> None:
        if self.on_alarm is None:
            return
        for alarm in alarms:
            done = self.on_alarm.handle(alarm, self._log, self.clock.now_s(), self._event)
            if done:
                self.screen.say(done)

    def _plan(self) -> plans.Plan:
        """Reads the plan; where it was edited a new series begins."""
        plan = plans.load(Path(self.definition.plan), dict(self.definition.values))
        digest, state = plans.plan_hash(plan), self._log.state
        if digest != state.plan_hash:
            self._event(
                "series_started",
                series=state.series + 1,
                plan_hash=digest,
                follows=state.series or None,
                previous_plan_hash=state.plan_hash or None,
            )
            if state.series > 1:
                self.screen.say(
                    f"The plan was edited: series {state.series} begins after series "
                    f"{state.series - 1}."
                )
        return plan

    def _note_target(self, name: str, why_lost: str | None, start: Start) -> None:
        if why_lost is not None:
            failures, skips = self._next_rest(name, start)
            self._event(
                "target_failed", target=name, sentence=why_lost, failures=failures, skips=skips
            )
            self.screen.say(f"{name} was not measured: {why_lost}{_rest(skips)}")
        elif name in self._log.state.failing:
            self._event("target_answers", target=name)
            self.screen.say(f"{name} answers again.")

    def _next_rest(self, name: str, start: Start) -> tuple[int, int]:
        """Returns the failures in a row with this one, and how many starts are skipped now."""
        failures = self._log.state.failing.get(name, [0])[0] + 1
        longest = int(LONGEST_REST_S // self._schedule.interval_s(start.due_s))
        return failures, min(2 ** min(failures - 1, 20) - 1, longest)

    def _close(self) -> None:
        """Ends a repetition that a kill interrupted; its run keeps the trials that it has."""
        state = self._log.state
        if state.open:
            run = self._guarded("interrupted run", self._close_run)
            self._event(
                "repetition_interrupted", run=run, sentence="The repetition was interrupted."
            )

    def _close_run(self) -> str | None:
        due = datetime.fromtimestamp((self._log.state.due_s or 0) - 1, UTC)
        run = close_interrupted(
            self.store, self._log.state.run, self.definition.name, f"{due:%Y%m%d-%H%M%S}"
        )
        return run.id if run is not None else None

    def _guarded(self, name: str, work: Callable[[], Any]) -> Any:
        """Does work after a repetition; what fails is said once, and tried after the next one."""
        result, complaint = None, ""
        try:
            result = work()
        except NephoscopeError as error:
            complaint = str(error)
        self._say_once(name, complaint)
        return result

    def _event(self, kind: str, *, sync: bool = False, **details: Any) -> None:
        error = self._log.append(kind, sync=sync, **details)
        self._say_once("events", "" if error is None else f"{error} Events wait in memory.")

    def _say_once(self, name: str, complaint: str) -> None:
        if complaint and complaint != self._complaints.get(name):
            self.screen.say(complaint)
        self._complaints[name] = complaint


def _rest(skips: int) -> str:
    return f" It is left out of the next {skips} starts." if skips else ""
