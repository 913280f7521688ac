"""The digest of a day: counted from what was planted, once a day, also across a restart."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.features.watch.made import FakeClock, Said, definition, measuring, plan_file

from nephoscope.core.errors import TargetError
from nephoscope.core.model import Finding, Severity
from nephoscope.features.watch.alarms import AlarmAction
from nephoscope.features.watch.digest import MAX_SENTENCES, Day, digest_of
from nephoscope.features.watch.events import events, state_of
from nephoscope.features.watch.folder import WatchFolder
from nephoscope.features.watch.loop import Watch
from nephoscope.features.watch.repetition import WatchRepetition
from nephoscope.store import Store

MIDNIGHT_S = 1_790_035_200.0
"""2026-09-22 00:00 UTC."""
SIX_HOURS_S = 6 * 3600.0
LOST = Finding("objects_lost", Severity.WARNING, "2 of 100 objects are lost.", ())
ANSWER = "photos: 98 of 100 objects intact."
SAVING = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"


class Watched:
    """A watch every six hours, whose second start of a day fails and whose third warns."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "store")
        plan = plan_file(folder / "plan.yaml")
        self.definition = definition(plan, every_s=SIX_HOURS_S)
        self.clock, self.screen = FakeClock(MIDNIGHT_S - 60), Said()
        self.file = folder / "digests.jsonl"
        self.action = AlarmAction((sys.executable, "-c", SAVING, str(self.file)), 0)
        self._plain = measuring(self.clock)

    def run(self, repetitions: int) -> None:
        clock, action = self.clock, self.action
        watch = Watch(
            self.store, self.definition, self._measure, self.screen, clock=clock, on_day=action
        )
        watch.run(repetitions)

    def _measure(self, *given: Any) -> WatchRepetition:
        hour = int((self.clock.now_s() - MIDNIGHT_S) % 86_400 / 3600)
        if hour == 6:
            raise TargetError("The lab is not there.")
        repetition = replace(self._plain(*given), answers=(ANSWER,))
        return replace(repetition, warnings=(LOST,)) if hour == 12 else repetition

    @property
    def digests(self) -> list[Mapping[str, Any]]:
        lines = self.file.read_text("utf-8").splitlines() if self.file.exists() else []
        return [json.loads(line) for line in lines]


def test_a_day_is_counted_and_handed_over_once_also_after_a_restart(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.run(2)
    watched.run(2)
    assert watched.digests == []
    watched.run(2)
    (digest,) = watched.digests
    assert digest["date"] == "2026-09-22"
    assert (digest["repetitions"], digest["failed"], digest["skipped"]) == (3, 1, 0)
    assert digest["wrong"] == {"The lab is not there.": 1, LOST.sentence: 1}
    assert digest["answers"] == [ANSWER]
    assert digest["sentence"] in watched.screen.sentences
    assert digest["sentence"].startswith("2026-09-22: 3 repetitions, 1 failed, 0 starts skipped.")
    folder = WatchFolder(watched.store, "web").events
    kinds = [event["event"] for event in events(folder)]
    assert kinds.count("day_ended") == kinds.count("digest_handed_over") == 1
    # The second day goes on with counts of its own.
    day = state_of(folder).day
    assert day.date == "2026-09-23"
    assert day.counts["repetition_ended"] == 1


def test_a_day_without_a_warning_is_stated_too_and_many_sentences_are_bounded() -> None:
    day = Day()
    for number in range(3 * MAX_SENTENCES):
        sentence = f"Warning {number}."
        day.apply({"event": "repetition_ended", "at": "2026-09-22T00:00", "warnings": [sentence]})
    assert len(day.wrong) == MAX_SENTENCES
    assert "17 more warnings." in digest_of("web", day).sentence
    day.apply({"event": "day_ended"})
    day.apply({"event": "repetition_ended", "at": "2026-09-23T00:00", "warnings": []})
    digest = digest_of("web", day)
    assert digest.sentence == ("2026-09-23: 1 repetition, 0 failed, 0 starts skipped. No warning.")
