"""The digest of a day of a watch: how often it measured, what was wrong, and what holds now.

A day is one of UTC. Its digest is made at the first repetition after it that has ended, and once,
also across restarts, because the day's counts are part of the state of the events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nephoscope.core.naming import plural

MAX_SENTENCES = 20
"""Different warnings and failures of a day that are kept."""
_COUNTED = ("repetition_ended", "repetition_failed", "start_skipped", "starts_missed")


@dataclass(slots=True)
class Day:
    """What the events of a day amount to. date: of UTC, '' before the first event.

    counts: events by kind. wrong: sentence of a warning or a failure -> how often it was stated.
    answers: sentences of the newest repetition on the question of its plan.
    """

    date: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)

    def apply(self, event: Mapping[str, Any]) -> None:
        """Takes one event in; the first one after a digest begins the next day."""
        kind = str(event["event"])
        if kind == "day_ended":
            self.date, self.counts, self.wrong, self.answers = "", {}, {}, []
            return
        if kind in _COUNTED:
            self.date = self.date or str(event["at"])[:10]
            self.counts[kind] = self.counts.get(kind, 0) + int(event.get("count", 1))
        if kind == "repetition_ended":
            self.answers = [str(sentence) for sentence in event.get("answers", ())]
        for sentence in self._wrong_of(kind, event):
            if sentence in self.wrong or len(self.wrong) < MAX_SENTENCES:
                self.wrong[sentence] = self.wrong.get(sentence, 0) + 1

    def _wrong_of(self, kind: str, event: Mapping[str, Any]) -> list[str]:
        if kind == "repetition_ended":
            return [str(sentence) for sentence in event.get("warnings", ())]
        if kind == "target_failed":
            return [f"{event['target']}: {event['sentence']}"]
        return [str(event["sentence"])] if kind == "repetition_failed" else []


@dataclass(frozen=True, slots=True)
class DayDigest:
    """The digest of a day, as the command of `--digest` gets it.

    repetitions, failed, skipped: of its starts. wrong: sentence of a warning or a failure -> how
    often. answers: what the newest repetition of the day says on the question of its plan.
    """

    watch: str
    date: str
    repetitions: int
    failed: int
    skipped: int
    wrong: Mapping[str, int]
    answers: tuple[str, ...]
    sentence: str

    @property
    def key(self) -> str:
        """What it is called in sentences and events."""
        return f"digest {self.date}"


def digest_of(watch: str, day: Day) -> DayDigest:
    """Returns the digest of a day that is over."""
    ended, failed = (day.counts.get(kind, 0) for kind in _COUNTED[:2])
    skipped = sum(day.counts.get(kind, 0) for kind in _COUNTED[2:])
    parts = [
        plural(ended, "repetition"),
        f"{failed} failed",
        f"{plural(skipped, 'start')} skipped",
    ]
    often = sorted(day.wrong.items(), key=lambda pair: -pair[1])
    wrong = " ".join(f"{sentence} ({plural(number, 'time')})" for sentence, number in often[:3])
    more = f" {len(often) - 3} more warnings." if len(often) > 3 else ""
    sentence = " ".join(
        filter(
            None,
            (
                f"{day.date}: {', '.join(parts)}.",
                f"{wrong}{more}" if wrong else "No warning.",
                *day.answers,
            ),
        )
    )
    return DayDigest(
        watch, day.date, ended, failed, skipped, dict(often), tuple(day.answers), sentence
    )
