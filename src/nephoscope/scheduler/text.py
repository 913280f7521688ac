"""Verdicts on schedulers as text: the word, the sentence, what each CPU gave, the evidence."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from nephoscope.commands import output
from nephoscope.scheduler.inference import Obtained, Scheduler
from nephoscope.scheduler.inference.sentences import percent

_LOOKS = {
    "one": "one busy loop",
    "all": "one on every CPU",
    "several": "several on one CPU",
    "sleeping": "one that sleeps",
}


def text(found: Iterable[Scheduler]) -> str:
    """A block for each target and condition."""
    return "\n\n".join(block(one) for one in found) or "No valid observation."


def block(scheduler: Scheduler) -> str:
    """One verdict."""
    levels = ", ".join(f"{name}={level}" for name, level in sorted(scheduler.conditions.items()))
    head = f"{scheduler.target}{f' ({levels})' if levels else ''}: {scheduler.word.value}"
    parts = [head, _filled(scheduler.sentence), _shares(scheduler.per_cpu)]
    parts += [_filled(f"- {sentence}") for sentence in scheduler.evidence]
    parts += [_filled(f"! {sentence}") for sentence in scheduler.contradictions]
    parts += [_filled(f"? Not observed: {sentence}") for sentence in scheduler.missing]
    parts += [_filled(f"Next step: {scheduler.next_step}")] if scheduler.next_step else []
    return "\n".join(part for part in parts if part)


def _shares(obtained: Iterable[Obtained]) -> str:
    rows = []
    for obtained_share in obtained:
        total = obtained_share.total
        known = total.low is not None and total.high is not None
        between = f"[{percent(total.low or 0)}, {percent(total.high or 0)}]" if known else "-"
        cpu = "any" if obtained_share.cpu is None else str(obtained_share.cpu)
        each = ", ".join(percent(share) for share in obtained_share.share)
        rows.append((f"  {_LOOKS[obtained_share.look]}", cpu, each, between, str(total.n)))
    if not rows:
        return ""
    return output.table(("  OBSERVATION", "CPU", "SHARE", "TOTAL", "N"), rows, right=(1, 3, 4))


def _filled(sentence: str) -> str:
    return textwrap.fill(sentence, output.width(), initial_indent="  ", subsequent_indent="    ")
