"""Counts and measurements of the request generators of a run, as a section of the report."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from nephoscope.core.model import RunResult
from nephoscope.features.load import charts, generator_table, sentences, tools
from nephoscope.features.load.result import LoadAnalysis, LoadCounts
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Heading, Section, Sentence, items
from nephoscope.report.columns import count, number, table, text


def build(result: RunResult) -> Section | None:
    """Requests sent and answered, failed ones by kind, and what the trials state."""
    load = result.part(LoadAnalysis)
    if load is None:
        return None
    counts = table(
        load.lines,
        text("load", _name),
        number("trials", lambda line: line.trials),
        count("requests due", lambda line: line.due_count),
        count("valid responses", lambda line: line.completed_count),
        text("errors", lambda line: sentences.errors_text(line.errors_count)),
    )
    bounds = [
        sentence
        for line in load.lines
        if (sentence := sentences.overload(line) or sentences.bounds(line))
    ]
    blocks: list[Block] = [Sentence(wording.clean(bound)) for bound in dict.fromkeys(bounds)]
    if bounds:
        blocks.append(
            Sentence(
                "Distributions show requests without an answer at the time that they waited; "
                "charts show a percentile that they reach as an open triangle."
            )
        )
    blocks += [*charts.by_load(result), *charts.by_configuration(result)]
    blocks += tools.build(result)
    blocks += [
        Sentence(
            "Counts over all valid trials, warm-up included: valid responses and errors add up to "
            "the requests due."
        ),
        counts,
    ]
    for shared in load.shared:
        blocks += [
            Heading("Generators"),
            Sentence(wording.clean(sentences.conservation(shared))),
            generator_table.listing(shared),
            Sentence(
                "Counts over all trials, excluded ones and warm-up included. Percentiles of the "
                "whole load come from the histograms of the generators, added bucket by bucket."
            ),
        ]
        notes = [sentences.starts(shared), *sentences.limits(shared)]
        blocks += items([wording.clean(note) for note in notes if note])
    blocks += items(sentences.notes_of(load), title="Notes")
    return Section("load", "Load", tuple(blocks))


def answer(result: RunResult) -> list[str]:
    """Returns what became of the requests due, and whether the server kept up."""
    load = result.part(LoadAnalysis)
    if load is None:
        return []
    overloaded = [text for line in load.lines if (text := sentences.overload(line))]
    answers = overloaded if len(load.lines) == 1 else []
    if len(load.lines) > 1 and overloaded:
        answers = [f"{len(overloaded)} of {len(load.lines)} settings overloaded the server."]
    answers += [sentences.became(_whole(load))] if load.lines else []
    answers += [sentences.conservation(shared) for shared in load.shared]
    return [wording.clean(text) for text in answers]


def _whole(load: LoadAnalysis) -> LoadCounts:
    """The counts of all lines together."""
    errors: Counter[str] = Counter()
    for line in load.lines:
        errors.update(line.errors_count)
    return replace(
        load.lines[0],
        due_count=sum(line.due_count for line in load.lines),
        completed_count=sum(line.completed_count for line in load.lines),
        errors_count=errors,
        unasked_count=sum(line.unasked_count for line in load.lines),
    )


def _name(line: LoadCounts) -> str:
    levels = wording.factors_text(line.factors)
    return f"{line.benchmark} on {line.target}{f' ({levels})' if levels else ''}"
