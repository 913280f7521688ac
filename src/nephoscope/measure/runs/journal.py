"""A run's journal as lines that a person reads: when, what, and how long each phase took.

journal.jsonl stays the form for programs; nothing is decided by either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from nephoscope.core import units
from nephoscope.core.naming import factors_text

Event = Mapping[str, Any]


def lines(events: Iterable[Event]) -> list[str]:
    """One line an event: time of day, what happened; the date wherever it changes."""
    out = []
    day = ""
    for event in events:
        moment = _moment(event)
        if moment is not None and f"{moment:%Y-%m-%d}" != day:
            day = f"{moment:%Y-%m-%d}"
            out.append(f"{day} (UTC)")
        at = f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}" if moment else " " * 12
        out.append(f"{at}  {sentence(event)}")
    return out


def sentence(event: Event) -> str:
    """Returns what an event is, on one line."""
    try:
        return _SENTENCES.get(str(event.get("event")), _unknown_event)(event)
    except (TypeError, ValueError, AttributeError, OverflowError):
        return _unknown_event(event)  # of another version: its parts are not what they are here


def _moment(event: Event) -> datetime | None:
    try:
        return datetime.fromisoformat(str(event.get("at")))
    except ValueError:
        return None


def _session_started(event: Event) -> str:
    where = f" on {event['machine']}" if event.get("machine") else ""
    resumption = f", going on after {event.get('trials')} trials" if event.get("resumed") else ""
    return f"process {event.get('pid')}{where} begins to measure{resumption}"


def _session_ended(event: Event) -> str:
    return f"the process stops measuring: {event.get('why')}"


def _trial_started(event: Event) -> str:
    together = f" (together: {event['together']})" if event.get("together") else ""
    attempt = f", attempt {event['attempt']}" if event.get("attempt") else ""
    return f"{event.get('trial')} begins{together}{attempt}"


def _trial_ended(event: Event) -> str:
    parts = [f"{event.get('trial')} {event.get('status')}"]
    parts += [f"{name} {_span(times)}" for name, times in _timeline(event)]
    if event.get("skew_ns") is not None:
        parts.append(f"skew {units.format_value(float(event['skew_ns']), 'ns')}")
    for load in event.get("loads") or ():
        parts.append(f"load {load.get('name')} on {load.get('target')} {_covered(load)}")
    if event.get("attempt"):
        parts.append(f"attempt {event['attempt']}")
    reasons = "; ".join(map(str, event.get("reasons") or ()))
    return ", ".join(parts) + (f": {reasons}" if reasons else "")


def _tried_again(event: Event) -> str:
    reasons = "; ".join(map(str, event.get("reasons") or ()))
    return f"{event.get('trial')} attempt {event.get('attempt')} failed, tried again: {reasons}"


def _alternative_ended(event: Event) -> str:
    text = factors_text(event.get("factors") or {})
    setting = f" ({text})" if text else ""
    return (
        f"{event.get('benchmark')}{setting} on {event.get('target')} is done: "
        f"{event.get('word')} ({event.get('reason')})"
    )


def _covered(load: Event) -> str:
    ratio = load.get("covered_ratio")
    return "ran for an unknown part" if ratio is None else f"covered {100 * float(ratio):.0f} %"


def _timeline(event: Event) -> list[tuple[str, tuple[int, int]]]:
    timeline = event.get("timeline")
    if not isinstance(timeline, Mapping):
        return []
    return [(name, (int(start), int(end))) for name, (start, end) in timeline.items()]


def _span(times: tuple[int, int]) -> str:
    return units.format_value(float(times[1] - times[0]), "ns")


def _unknown_event(event: Event) -> str:
    """An event of another version, or of an import: as it stands."""
    rest = {key: value for key, value in event.items() if key not in ("at", "event")}
    words = ", ".join(f"{key} {value}" for key, value in rest.items())
    name = str(event.get("event", "event")).replace("_", " ")
    return f"{name}: {words}" if words else name


_SENTENCES: Mapping[str, Callable[[Event], str]] = {
    "session_started": _session_started,
    "session_ended": _session_ended,
    "trial_started": _trial_started,
    "trial_ended": _trial_ended,
    "trial_tried_again": _tried_again,
    "alternative_ended": _alternative_ended,
    "warning": lambda event: f"warning: {event.get('sentence')}",
    "said": lambda event: str(event.get("sentence")),
    "trials_merged": lambda event: f"{len(event['trials'])} trials are put into one file",
    "target_opened": lambda event: f"{event.get('target')} answers",
    "target_lost": lambda event: f"{event.get('target')} is lost: {event.get('why')}",
    "time_limit_reached": lambda event: f"the limit of {event.get('limit_s'):.3g} s was reached",
    "trial_cut_short_by_budget": lambda e: f"{e.get('trial')} was cut short: the budget is spent",
}
