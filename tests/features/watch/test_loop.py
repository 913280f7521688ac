"""A watch on a clock that the test moves: schedule, failures, edits, kills, a full disk."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests import file_systems
from tests.features.watch.made import (
    EVERY_S,
    START_S,
    FakeClock,
    Said,
    definition,
    measuring,
    plan_file,
)

from nephoscope.core.errors import StoreError, TargetError
from nephoscope.features.watch.events import events
from nephoscope.features.watch.folder import WatchFolder
from nephoscope.features.watch.loop import Watch
from nephoscope.features.watch.repetition import Created, Measure, Repetition
from nephoscope.measure import plans
from nephoscope.store import FINISHED, Store, StoredRun, journal

HOUR_S = 3600.0


class Made:
    """A watch of a store, which can be started again and again."""

    def __init__(self, path: Path, **more: Any) -> None:
        self.store = Store(path / "store")
        self.plan = plan_file(path / "plan.yaml", more.pop("targets", ("web",)))
        self.definition = definition(self.plan, **more)
        self.clock = FakeClock()
        self.screen = Said()
        self.published: list[Repetition | None] = []

    def run(self, repetitions: int, measure: Measure | None = None) -> None:
        Watch(
            self.store,
            self.definition,
            measure or measuring(self.clock),
            self.screen,
            clock=self.clock,
            publish=lambda repetition, log, next_s: self.published.append(repetition),
        ).run(repetitions)

    def runs(self) -> list[StoredRun]:
        """By their start; ids of one second have no order."""
        return sorted(self.store.runs(), key=lambda run: float(run.manifest.started_at))

    def events(self, kind: str) -> list[Mapping[str, Any]]:
        folder = WatchFolder(self.store, self.definition.name).events
        return [event for event in events(folder) if event["event"] == kind]


def failing(error: Callable[[int], Exception | None], clock: FakeClock) -> Measure:
    """A step that fails in its n-th call with an error, where there is one."""
    good, calls = measuring(clock), 0

    def measure(*given: Any) -> Repetition:
        nonlocal calls
        calls += 1
        if found := error(calls):
            raise found
        return good(*given)

    return measure


def test_a_run_is_stored_at_each_moment_with_its_labels(tmp_path: Path) -> None:
    made = Made(tmp_path, labels={"env": "test"})
    made.run(3)
    started = made.events("repetition_started")
    assert [event["due_s"] - START_S for event in started] == [EVERY_S, 2 * EVERY_S, 3 * EVERY_S]
    runs = made.runs()
    assert [run.id for run in runs] == [event["run"] for event in made.events("repetition_ended")]
    labels = {"env": "test", "watch": "web", "watch-series": "1"}
    assert all(run.manifest.labels == labels for run in runs)
    assert [one.run for one in made.published if one] == [run.id for run in runs]


def test_a_retention_that_fails_is_tried_after_the_next_repetition(tmp_path: Path) -> None:
    """As where another watch of the store compacts at the same moment."""
    made, calls = Made(tmp_path), 0
    problem = "Another process compacts the store."

    def retain() -> None:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise StoreError(problem)

    given = (made.store, made.definition, measuring(made.clock), made.screen)
    Watch(*given, clock=made.clock, retain=retain).run(5)
    assert calls == 3
    assert made.screen.sentences.count(problem) == 1


def test_a_clock_set_back_an_hour_neither_floods_nor_stops_the_watch(tmp_path: Path) -> None:
    made = Made(tmp_path, jitter=0.1)
    made.clock = FakeClock(steps=[(1000.0, -HOUR_S)])
    made.run(12)
    (step,) = made.events("clock_stepped")
    assert step["step_s"] == pytest.approx(-HOUR_S)
    assert made.clock.monotonic_s() == pytest.approx(12 * EVERY_S, abs=1.2 * EVERY_S)
    assert not made.events("start_skipped")
    assert "The clock was set by -3600.000 s" in " ".join(made.screen.sentences)


def test_a_clock_set_forward_does_not_make_up_for_what_it_left_out(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.clock = FakeClock(steps=[(1000.0, HOUR_S)])
    made.run(6)
    assert len(made.runs()) == 6
    assert made.clock.monotonic_s() == pytest.approx(6 * EVERY_S, abs=1.1 * EVERY_S)


def test_starts_missed_while_it_did_not_run_are_counted(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.run(2)
    made.clock.wait(10 * EVERY_S)
    made.run(1)
    assert [event["count"] for event in made.events("starts_missed")] == [10]
    assert "10 starts were missed" in " ".join(made.screen.sentences)
    assert len(made.runs()) == 3


def test_a_start_during_a_repetition_is_skipped_and_counted(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.run(2, measuring(made.clock, takes_s=2.5 * EVERY_S))
    skipped = made.events("start_skipped")
    assert [event["count"] for event in skipped] == [2, 2]
    assert "2 starts skipped: the one before was not over." in made.screen.sentences
    due = [event["due_s"] - START_S for event in made.events("repetition_started")]
    assert due == [EVERY_S, 4 * EVERY_S]


def test_measuring_takes_at_most_its_share(tmp_path: Path) -> None:
    made = Made(tmp_path, max_share=0.1)
    made.run(10, measuring(made.clock, takes_s=100.0))
    assert len(made.events("repetition_ended")) == 3
    reasons = {event["reason"] for event in made.events("start_skipped")}
    assert reasons == {"measuring may take 10 % of the time"}


def test_a_failing_plan_is_tried_more_and_more_rarely_and_says_so(tmp_path: Path) -> None:
    made = Made(tmp_path)
    lost = failing(lambda call: TargetError("web hung up.", "Look for it."), made.clock)
    made.run(60, lost)
    failed = made.events("repetition_failed")
    assert [event["skips"] for event in failed] == [0, 1, 3, 7, 12, 12, 12, 12]
    assert made.screen.sentences[0] == "The repetition failed: web hung up. Look for it."
    assert "It is left out of the next 7 starts." in " ".join(made.screen.sentences)
    assert "waiting after 4 failures in a row" in " ".join(made.screen.sentences)
    assert made.store.ids() == []
    made.run(13)
    assert [event["failures"] for event in made.events("repetition_failed")][-1] == 8
    assert len(made.events("repetition_ended")) >= 1, "it begins again where it answers"


def test_a_target_that_fails_is_left_out_while_the_others_are_measured(tmp_path: Path) -> None:
    made = Made(tmp_path, targets=("a", "b"))
    absent: list[set[str]] = []
    lost = {"b": "b cannot be reached."}

    def measure(
        plan: plans.Plan, store: Store, labels: Any, out: Any, created: Created
    ) -> Repetition:
        absent.append(set(out))
        return measuring(made.clock, lost=lost)(plan, store, labels, out, created)

    made.run(8, measure)
    assert [bool(one) for one in absent] == [False, False, True, False, True, True, True, False]
    assert [event["failures"] for event in made.events("target_failed")] == [1, 2, 3, 4]
    assert len(made.events("repetition_ended")) == 8
    lost.clear()
    made.run(8, measure)
    assert [event["target"] for event in made.events("target_answers")] == ["b"]
    assert "b answers again." in made.screen.sentences


def test_an_edited_plan_begins_a_series_that_is_linked_to_the_old_one(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.run(2)
    plan_file(made.plan, value=2.0)
    made.run(1)
    first, second = made.events("series_started")
    assert (first["series"], second["series"], second["follows"]) == (1, 2, 1)
    assert second["previous_plan_hash"] == first["plan_hash"] != second["plan_hash"]
    assert [run.manifest.labels["watch-series"] for run in made.runs()] == ["1", "1", "2"]
    assert "The plan was edited: series 2 begins after series 1." in made.screen.sentences


def test_a_plan_that_cannot_be_read_is_a_failure_and_no_end(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.run(1)
    text = made.plan.read_text()
    made.plan.write_text("version: [")
    made.run(1)
    made.plan.write_text(text)
    made.run(1)
    (failed,) = made.events("repetition_failed")
    assert "plan.yaml:" in failed["sentence"]
    assert len(made.events("series_started")) == 1
    assert len(made.runs()) == 2


def test_a_killed_repetition_keeps_its_trials_and_the_schedule_goes_on(tmp_path: Path) -> None:
    made = Made(tmp_path)

    class Killed(BaseException):
        """Ends the process without any of its own code."""

    def kill() -> None:
        raise Killed

    with pytest.raises(Killed):
        made.run(1, measuring(made.clock, before_finish=kill))
    (run,) = made.runs()
    assert run.state == "running"
    made.run(1)
    (interrupted,) = made.events("repetition_interrupted")
    assert interrupted["run"] == run.id
    run.reread()
    assert (run.state, len(run.records())) == (FINISHED, 1)
    assert len(made.runs()) == 2


def test_a_kill_before_the_run_is_known_is_found_by_its_label(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.run(1)

    class Killed(BaseException):
        """Ends the process without any of its own code."""

    def create(plan: Any, store: Store, labels: Any, absent: Any, created: Any) -> Repetition:
        def kill(run: str) -> None:
            raise Killed

        return measuring(made.clock)(plan, store, labels, absent, kill)

    with pytest.raises(Killed):
        made.run(1, create)
    assert [run.state for run in made.runs()] == [FINISHED, "running"]
    made.run(1)
    assert [run.state for run in made.runs()] == [FINISHED, FINISHED], "it had no trial"


def test_what_a_full_disk_keeps_out_is_written_once_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path)
    append, full = journal.append, False

    def limited(path: Path, event: Mapping[str, Any]) -> None:
        if full:
            raise StoreError(f"{path} cannot be written: the disk is full.", "Free some space.")
        append(path, event)

    monkeypatch.setattr("nephoscope.features.watch.events.journal.append", limited)
    good = measuring(made.clock)

    def measure(*given: Any) -> Repetition:
        nonlocal full
        full = 2 <= len(made.store.ids()) < 4
        return good(*given)

    made.run(6, measure)
    assert len(made.events("repetition_started")) == 6
    assert len(made.events("repetition_ended")) + len(made.events("repetition_failed")) == 6
    moments = [event["at"] for event in events(WatchFolder(made.store, "web").events)]
    assert moments == sorted(moments), "each event has the time at which it happened"
    assert sum("Events wait in memory." in one for one in made.screen.sentences) == 1


@pytest.fixture
def small_disk(tmp_path: Path, root_only: None) -> Iterator[Path]:
    """A file system of 2 MiB in the store's place."""
    with file_systems.in_memory(tmp_path / "store", "size=2m") as path:
        yield path


def test_a_real_full_disk_loses_nothing_that_was_measured(small_disk: Path, tmp_path: Path) -> None:
    made = Made(tmp_path)
    good, calls = measuring(made.clock), 0
    ballast = small_disk / "ballast"

    def measure(*given: Any) -> Repetition:
        nonlocal calls
        calls += 1
        if calls == 3:
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as stream:
                while True:
                    stream.write(bytes(1024))
        if calls == 5:
            ballast.unlink()
        return good(*given)

    made.run(6, measure)
    ended, failed = made.events("repetition_ended"), made.events("repetition_failed")
    assert len(made.events("repetition_started")) == 6
    assert (len(ended), len(failed)) == (4, 2)
    assert all("the disk is full" in event["sentence"] for event in failed)
    assert all(run.state == FINISHED and len(run.records()) == 1 for run in made.runs())
    assert {event["run"] for event in ended} == {run.id for run in made.runs()}


def test_a_run_that_a_full_disk_stops_keeps_its_trials_and_is_tried_at_the_next_start(
    tmp_path: Path,
) -> None:
    made = Made(tmp_path)
    error = OSError(errno.ENOSPC, "No space left on device")

    def measure(*given: Any) -> Repetition:
        def full() -> None:
            raise StoreError(f"It cannot be written: {error.strerror}.", "Free some space.")

        first = not made.events("repetition_failed")
        return measuring(made.clock, before_finish=full if first else lambda: None)(*given)

    made.run(2, measure)
    (failed,) = made.events("repetition_failed")
    assert failed["skips"] == 0
    assert [run.state for run in made.runs()] == [FINISHED, FINISHED]
    assert [len(run.records()) for run in made.runs()] == [1, 1]


def test_the_same_watch_twice_is_refused_in_one_sentence(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.run(1)
    twice = pytest.raises(StoreError, match="The watch 'web' is running already")
    with WatchFolder(made.store, "web").running(), twice:
        made.run(1)


def test_two_watches_share_the_smaller_bound(tmp_path: Path) -> None:
    first, second = Made(tmp_path), Made(tmp_path, name="db", max_runs=5)
    first.run(1)
    second.run(1)
    web, db = (WatchFolder(first.store, name) for name in ("web", "db"))
    with web.running(), web.measuring(1) as free:
        assert free
        with db.measuring(5) as room:
            assert not room, "the bound of the watch that runs holds for both"
        second.run(1)
        (skipped,) = second.events("start_skipped")
        assert skipped["reason"] == "other watches of this store are measuring"
    with web.running(), web.measuring(5) as free, db.measuring(5) as room:
        assert free
        assert not room, "max_runs of web is 1"
    second.run(1)
    assert len(second.events("repetition_ended")) == 2
