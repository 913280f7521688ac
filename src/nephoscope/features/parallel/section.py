"""Parallel work as a section of the report: steps, ranks and the straggler law."""

from __future__ import annotations

from nephoscope.core.model import RunResult
from nephoscope.features.parallel.records import FittedLaw, ParallelWork
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Section, Sentence
from nephoscope.report.columns import interval, number, table, text


def build(result: RunResult) -> Section | None:
    """Returns the tables of steps and of ranks, and a sentence for each law."""
    work = result.part(ParallelWork)
    if work is None:
        return None
    blocks: list[Block] = [Sentence(law_sentence(law), lead=True) for law in work.laws]
    blocks.append(
        table(
            work.steps,
            text("setting", lambda line: wording.factors_text(line.factors)),
            number("ranks", lambda line: line.ranks),
            *interval("step", lambda line: line.step),
            *interval("slowest rank's work", lambda line: line.slowest),
            number("of independent ranks'", lambda line: line.independence),
            number("operation", lambda line: line.operation),
            number("efficiency", lambda line: line.efficiency),
            number("n", lambda line: line.step.n),
            caption="Means over trials. Operation: time of a step beyond its slowest rank's work. "
            "Efficiency: share of the time that ranks do not wait. Of independent ranks': the "
            "slowest work relative to its expectation if the ranks were independent.",
        )
    )
    blocks.append(
        table(
            work.ranks,
            text("setting", lambda line: wording.factors_text(line.factors)),
            number("ranks", lambda line: line.ranks),
            number("rank", lambda line: line.rank),
            *interval("work", lambda line: line.work),
            *interval("waiting", lambda line: line.wait),
            number("steps in which it was slowest", lambda line: line.slowest_share),
            caption="Rank 0 is the target; the others are the members in their order.",
        )
    )
    return Section("parallel-work", "Parallel work", tuple(blocks))


def law_sentence(law: FittedLaw) -> str:
    """Returns the law with its intervals and its misfit."""
    setting = wording.factors_text(law.factors)
    return (
        f"{f'{setting}: t' if setting else 'T'}he slowest of n ranks takes "
        f"{wording.estimate_text(law.fixed)} and {wording.estimate_text(law.delay)} times the "
        "harmonic number 1 + 1/2 + … + 1/n per step; the law misses no mean by more than "
        f"{wording.percent(law.misfit_ratio)}."
    )
