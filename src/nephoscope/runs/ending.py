"""The end of a run: what became of every alternative, in the manifest; and what to say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.errors import BenchmarkFailed
from nephoscope.runs.schedule.alternatives import Outcome
from nephoscope.store import FAILED, MEASURED, StoredRun

REFUSED_WORDS = ("refused", "no_valid", "target_lost")
"""Outcomes of which a result says why there is nothing."""


def finish(
    run: StoredRun,
    outcomes: Sequence[Outcome],
    *,
    spent_s: float,
    trials: int,
    valid: int,
    lost: Mapping[str, str],
    failure: BenchmarkFailed | None,
) -> None:
    """Puts the outcomes into the manifest; the run is measured, or it failed.

    lost: target -> sentence of what was given up. Raises BenchmarkFailed when no trial counts.
    """
    refused = [
        f"{outcome.benchmark} {_told(outcome.factors)}on {outcome.target}: {outcome.reason}"
        for outcome in outcomes
        if outcome.word in REFUSED_WORDS
    ]
    run.update(
        outcomes=[outcome.to_json() for outcome in outcomes],
        refused=refused,
        lost=dict(lost),
        spent_s=round(spent_s, 3),
    )
    run.event({"event": "session_ended", "why": "measured"})
    if valid == 0:
        run.finish(FAILED)
        raise _nothing(run, trials, refused, failure)
    run.finish(MEASURED)


def _nothing(
    run: StoredRun, trials: int, refused: Sequence[str], failure: BenchmarkFailed | None
) -> BenchmarkFailed:
    if failure is not None:
        return BenchmarkFailed(failure.name, failure.message, failure.hint, failure.exit_code)
    return BenchmarkFailed(
        "no_valid_trial",
        f"Not one of {trials} trials counts: {'; '.join(refused) or 'see the run'}.",
        f"`nephoscope show {run.id}` lists them with their reasons.",
    )


def _told(factors: Mapping[str, Any]) -> str:
    return "".join(f"{name}={level} " for name, level in factors.items())
