"""States why a run has a part of what its plan asked for only."""

from __future__ import annotations

from collections import Counter

from nephoscope.core.naming import plural
from nephoscope.store import StoredRun

_UNFINISHED = {
    "running": "the run is not over",
    "interrupted": "the run was interrupted",
    "killed": "the run was killed",
}
_WITHOUT_TRIALS = ("no_valid", "target_lost", "refused")


def partial_reasons(run: StoredRun) -> tuple[str, ...]:
    """Returns a clause for each reason for which a run is partial; nothing for a whole one.

    A run whose budget ended with fewer repetitions than its plan needs is partial; one whose
    intervals stayed wide is not.
    """
    reasons = [_UNFINISHED[run.status]] if run.status in _UNFINISHED else []
    outcomes = run.manifest.outcomes
    words = Counter(str(outcome.get("word")) for outcome in outcomes)
    short = sum(
        end.get("word") == "budget" and int(end.get("n") or 0) < int(end.get("needed") or 0)
        for end in outcomes
    )
    of = f"of {plural(len(outcomes), 'setting')}"
    if short:
        reasons.append(f"the budget ended before {short} {of} had enough repetitions")
    if lost := sum(words[word] for word in _WITHOUT_TRIALS):
        reasons.append(f"{lost} {of} {'has' if lost == 1 else 'have'} no valid trial")
    return tuple(reasons)
