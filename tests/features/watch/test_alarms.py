"""The command of an alarm: what it is given, how often it runs, and what its event has."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.features.watch.made import EVERY_S, FakeClock, Said, definition, measuring, plan_file

from nephoscope.core.errors import TargetError, UsageError
from nephoscope.core.model import Finding, Severity
from nephoscope.features.watch.alarms import Alarm, AlarmAction, action_of
from nephoscope.features.watch.events import EventLog, events
from nephoscope.features.watch.folder import WatchFolder
from nephoscope.features.watch.loop import Watch
from nephoscope.features.watch.repetition import Measure, WatchRepetition
from nephoscope.store import Store

SLOW_PORT = Finding(
    "half_duplex", Severity.WARNING, "The port runs at 10 Mbit/s.", ("speed 10",), "Restart it."
)
SAVING = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n'); print('repaired')"


class Watched:
    """A watch whose command appends what it is given to a file."""

    def __init__(self, folder: Path, every_s: float, script: str = SAVING) -> None:
        self.file = folder / "alarms.jsonl"
        self.store = Store(folder / "store")
        self.definition = definition(plan_file(folder / "plan.yaml", ("web", "db")))
        self.clock, self.screen = FakeClock(), Said()
        self.action = AlarmAction((sys.executable, "-c", script, str(self.file)), every_s)

    def run(self, repetitions: int, measure: Measure) -> None:
        watch = Watch(
            self.store,
            self.definition,
            measure,
            self.screen,
            clock=self.clock,
            on_alarm=self.action,
        )
        watch.run(repetitions)

    @property
    def taken(self) -> list[Mapping[str, Any]]:
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        return [json.loads(line) for line in lines]

    def events(self, kind: str) -> list[Mapping[str, Any]]:
        folder = WatchFolder(self.store, self.definition.name).events
        return [event for event in events(folder) if event["event"] == kind]


def warned(clock: FakeClock) -> Measure:
    plain = measuring(clock)

    def measure(*given: Any) -> WatchRepetition:
        return replace(plain(*given), warnings=(SLOW_PORT,))

    return measure


def test_a_warning_reaches_the_command_once_in_its_time_also_after_a_restart(
    tmp_path: Path,
) -> None:
    watched = Watched(tmp_path, every_s=2.5 * EVERY_S)
    watched.run(2, warned(watched.clock))
    watched.run(2, warned(watched.clock))
    # Starts at 0, 1, 2 and 3 intervals: the fourth is far enough from the first.
    assert len(watched.taken) == len(watched.events("alarm_handled")) == 2
    assert len(watched.events("alarm_held_back")) == 2
    (first, _) = watched.taken
    runs = {run.id for run in watched.store.runs()}
    assert first["run"] in runs
    assert {key: first[key] for key in ("watch", "kind", "name", "sentence", "next_step")} == {
        "watch": "web",
        "kind": "finding",
        "name": "half_duplex",
        "sentence": SLOW_PORT.sentence,
        "next_step": SLOW_PORT.next_step,
    }
    assert first["evidence"] == ["speed 10"]
    assert first["schema_version"] >= 1
    event = watched.events("alarm_handled")[0]
    assert (event["code"], event["output"]) == (0, "repaired")
    assert (
        "The command for 'finding half_duplex' ended with 0: repaired" in watched.screen.sentences
    )


def test_lost_targets_and_failed_repetitions_are_alarms_of_their_own(tmp_path: Path) -> None:
    watched = Watched(tmp_path, every_s=0)
    lost = measuring(watched.clock, lost={"web": "no route to host"})
    failures = iter([TargetError("The lab is not there."), None])

    def measure(*given: Any) -> WatchRepetition:
        if (error := next(failures)) is not None:
            raise error
        return lost(*given)

    watched.run(2, measure)
    kinds = [(alarm["kind"], alarm["name"], alarm["sentence"]) for alarm in watched.taken]
    assert kinds == [
        ("repetition_failed", "", "The lab is not there."),
        ("target_failed", "web", "no route to host"),
    ]


def test_without_a_command_nothing_is_done(tmp_path: Path) -> None:
    watched = Watched(tmp_path, every_s=0)
    plan = watched.definition
    Watch(watched.store, plan, warned(watched.clock), watched.screen, clock=watched.clock).run(1)
    assert not watched.taken
    assert not watched.events("alarm_handled")


@pytest.mark.parametrize(
    ("script", "code", "text"),
    [
        ("import sys; sys.exit('no rights')", 1, "no rights"),
        ("print('x' * 10_000, end='end')", 0, "end"),
        ("import time; print('begun', flush=True); time.sleep(600)", None, "begun"),
    ],
)
def test_the_event_has_how_the_command_ended(
    tmp_path: Path, script: str, code: int | None, text: str
) -> None:
    log = EventLog(tmp_path / "events", lambda: 100.0)
    noted: list[dict[str, Any]] = []
    # Python starts in less than a tenth of it.
    action = AlarmAction((sys.executable, "-c", script), 0, timeout_s=5 if code is None else 60)
    alarm = Alarm("web", "finding", "slow", "It is slow.")
    action.handle(alarm, log, 100.0, lambda kind, **details: noted.append(details))
    (event,) = noted
    assert event["code"] == code
    assert event["output"].endswith(text)
    assert len(event["output"]) <= 500


def test_a_command_that_cannot_be_started_is_refused_before_the_watch_begins() -> None:
    for command in ("", "nephoscope-no-such-program --x", "sh -c 'open"):
        with pytest.raises(UsageError, match="--on-alarm"):
            action_of(command, 1.0)
    assert action_of("sh -c 'exit 3'", 60.0).words == ["sh", "-c", "exit 3"]
