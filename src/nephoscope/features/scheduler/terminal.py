"""Verdicts on schedulers as text: the word, the sentence, what each CPU gave, the evidence."""

from __future__ import annotations

from collections.abc import Iterable

from nephoscope.cli.kit import output
from nephoscope.features.scheduler.inference.sentences import percent
from nephoscope.features.scheduler.inference.verdict import Obtained, Scheduler
from nephoscope.report import wording

_WINDOW_KINDS = {
    "one": "one busy loop",
    "all": "one on every CPU",
    "several": "several on one CPU",
    "sleeping": "one that sleeps",
}


def text(schedulers: Iterable[Scheduler]) -> str:
    """A block for each target and condition."""
    return "\n\n".join(block(scheduler) for scheduler in schedulers) or "No valid observation."


def block(scheduler: Scheduler) -> str:
    """One verdict."""
    head = f"{wording.target_text(scheduler.target, scheduler.conditions)}: {scheduler.word.value}"
    parts = [head, _filled(scheduler.sentence), _shares(scheduler.per_cpu)]
    parts += [_filled(f"- {sentence}") for sentence in scheduler.evidence]
    parts += [_filled(f"! {sentence}") for sentence in scheduler.contradictions]
    parts += [_filled(f"? Not observed: {sentence}") for sentence in scheduler.missing]
    parts += [_filled(f"Next step: {scheduler.next_step}")] if scheduler.next_step else []
    return "\n".join(part for part in parts if part)


def _shares(obtained: Iterable[Obtained]) -> str:
    rows = []
    for observed in obtained:
        low, high = observed.total.low, observed.total.high
        between = "-" if low is None or high is None else f"[{percent(low)}, {percent(high)}]"
        cpu = "any" if observed.cpu is None else str(observed.cpu)
        each = ", ".join(map(percent, observed.share))
        rows.append(
            (f"  {_WINDOW_KINDS[observed.window]}", cpu, each, between, str(observed.total.n))
        )
    if not rows:
        return ""
    return output.table(("  OBSERVATION", "CPU", "SHARE", "TOTAL", "N"), rows, right=(1, 3, 4))


def _filled(sentence: str) -> str:
    return output.wrapped(sentence, "  ", "    ")
