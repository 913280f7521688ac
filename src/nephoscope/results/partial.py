"""States why a run has a part of what its plan asked for only, and what of it is a replay."""

from __future__ import annotations

from collections import Counter

from nephoscope.core.naming import plural
from nephoscope.stats import facts
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
        which = f"{short} {of}" if short < len(outcomes) else "any setting"
        reasons.append(f"the budget ended before {which} had enough repetitions")
    if lost := sum(words[word] for word in _WITHOUT_TRIALS):
        reasons.append(f"{lost} {of} {'has' if lost == 1 else 'have'} no valid trial")
    return tuple(reasons)


def recorded_text(run: StoredRun) -> str:
    """Returns a sentence on the targets that answered from a recording; empty where none did."""
    manifest = run.manifest
    names = manifest.recorded_targets
    if not names:
        return ""
    documents = [manifest.fingerprints.get(name) for name in names]
    runs = {str(facts.fact(document, "reached.run")) for document in documents if document}
    origin = f"run {' and '.join(sorted(runs))}" if runs else "an earlier run"
    total = len(manifest.target_names)
    if len(names) < total:
        who = f"{len(names)} of {total} targets"
    else:
        who = f"All {total} targets" if total > 1 else "The target"
    verb = "answer" if len(names) > 1 else "answers"
    return (
        f"{who} {verb} from a recording of {origin}: these results are a replay, no new "
        "measurement."
    )
