"""What a run measures at the moment, in words, and how long it will still take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nephoscope import catalog
from nephoscope.core.naming import clean, factors_text
from nephoscope.measure.runs import journal

_TRIAL = re.compile(r"([rw])(\d+)-s(\d+)(?:t\d+)?-(.*)", re.DOTALL)
"""As `TrialKey.name` writes it."""


def described(event: Mapping[str, Any], settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns an event of the journal with its sentence.

    Of a trial that begins also what it measures: benchmark, about (what that is), setting in words,
    round (0 and less: warm-up) and target.
    """
    described = {**event, "text": journal.sentence(event)}
    match = _TRIAL.fullmatch(str(event.get("trial")))
    if event.get("event") != "trial_started" or match is None or int(match[3]) >= len(settings):
        return described
    setting = settings[int(match[3])]
    spec = catalog.load().benchmarks.get(setting["benchmark"])
    described["measures"] = {
        "benchmark": setting["benchmark"],
        "about": "" if spec is None else clean(spec.summary),
        "setting": factors_text(setting.get("factors") or {}),
        "round": int(match[2]) * (1 if match[1] == "r" else -1),
        "target": match[4],
    }
    return described


def left_s(
    trials: Iterable[str], alternatives: int, spent_s: float, budget_s: float | None
) -> float | None:
    """Returns the seconds that a run will still measure; None where that is unknown.

    They are those of the budget, but at least as many as the settings without a trial take at the
    mean of the trials so far: each is measured once whatever the budget is.
    """
    matches = [match for name in trials if (match := _TRIAL.fullmatch(name)) is not None]
    measured = {(match[3], match[4]) for match in matches if match[1] == "r"}
    unmeasured = max(0, alternatives - len(measured))
    first_round_s = unmeasured * spent_s / len(matches) if matches else None
    if budget_s is None:
        return first_round_s if unmeasured else None
    return max(budget_s - spent_s, first_round_s or 0.0)
