"""Duets as a table of the report, and as a sentence of the summary."""

from __future__ import annotations

from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.duet.result import Duet, Duets
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Section, Sentence, items
from nephoscope.report.columns import ratio, table, text


def build(result: RunResult) -> Section | None:
    """Returns a row for each duet: the ratio with its interval, and the verdict."""
    part = result.part(Duets)
    if part is None:
        return None
    blocks: list[Block] = [Sentence(sentence, lead=True) for sentence in answer(result)]
    if part.duets:
        blocks.append(
            table(
                part.duets,
                text("command", lambda duet: duet.second),
                text("compared with", lambda duet: duet.first),
                *ratio(
                    "wall time ratio",
                    lambda duet: duet.comparison.ratio,
                    lambda duet: duet.comparison.n_a,
                ),
                text("verdict", lambda duet: duet.comparison.verdict.word),
                text("slowdown by the partner", lambda duet: _slowdown(duet.slowdown)),
            )
        )
        blocks.append(Sentence(_method(part.duets[0])))
    blocks += items(part.notes, title="Unavailable statistics")
    return Section("duet", "Duet", tuple(blocks))


def answer(result: RunResult) -> list[str]:
    """Returns the verdict of each duet."""
    part = result.part(Duets)
    return [duet.comparison.verdict.sentence for duet in part.duets] if part else []


def slowdown_text(slowdown: Estimate) -> str:
    """Returns the slowdown as the end of a sentence."""
    factor = wording.estimate_text(wording.plain(slowdown))
    return f"each takes {factor} times as long while the other one runs"


def _slowdown(slowdown: Estimate | None) -> str:
    return wording.estimate_text(wording.plain(slowdown)) if slowdown else "unknown"


def _method(duet: Duet) -> str:
    cpus = wording.plural(duet.cpus, "CPU")
    unused = f"; {wording.plural(duet.unused_cpus, 'CPU')} had no counterpart" * (
        duet.unused_cpus > 0
    )
    return (
        f"Both commands ran at the same time, each on {cpus}{unused}, and exchanged them within "
        "each trial. n counts trials."
    )
