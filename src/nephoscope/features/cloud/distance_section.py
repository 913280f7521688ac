"""Distances between places as a part of the report, and as the text of the command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from nephoscope.cli.kit import output
from nephoscope.core import units
from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.cloud.distance_records import (
    CloudDistances,
    PlaceDistance,
    PlacementEffect,
)
from nephoscope.features.cloud.estimates import estimate_cells
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Heading, Section, Sentence, items
from nephoscope.report.columns import estimates_table, table, text

_MEDIAN = "Round trip, median (p50)"
_FLOW = "TCP goodput from the place of the row to that of the column, median"


def build(result: RunResult) -> Section | None:
    """Returns both matrices, what placements change, and every figure with its interval."""
    distances = result.part(CloudDistances)
    if distances is None:
        return None
    blocks: list[Block] = [Sentence(sentence, lead=True) for sentence in answer(result)]
    for title, values in _matrices(distances):
        blocks += [Heading(title), _matrix_block(distances.places, values)]
    measured = [(words, value) for words, value in rows_of(distances) if value is not None]
    blocks += [Heading("Each pair"), estimates_table(measured, "between places")]
    blocks += items(_missing(distances), "warning", title="Pairs without a value")
    blocks += [Sentence(sentence) for sentence in _notes(distances)]
    return Section("distances", "Distances between places", tuple(blocks))


def _matrix_block(places: Sequence[str], values: dict[tuple[str, str], Estimate | None]) -> Block:
    def cell(column: str, row: str) -> str:
        return estimate_cells(values[row, column])[0] if (row, column) in values else ""

    columns = [text(wording.clean(column), partial(cell, column)) for column in places]
    return table(list(places), text("place", wording.clean), *columns)


def answer(result: RunResult) -> list[str]:
    """Returns what answers the question: the nearest and the farthest pair, or what a placement
    group changes."""
    distances = result.part(CloudDistances)
    if distances is None:
        return []
    if distances.effects:
        return [sentence_of(effect) for effect in distances.effects]
    measured = [(pair.rtt, pair) for pair in distances.pairs if pair.rtt is not None]
    if not measured:
        return ["No round trip between two places was measured."]
    ordered = sorted(measured, key=lambda entry: entry[0].value)
    ends = [ordered[0], *([ordered[-1]] if len(ordered) > 1 else [])]
    return [
        f"{word}: {pair.place_a} and {pair.place_b}, round trip {wording.estimate_text(rtt)}."
        for word, (rtt, pair) in zip(("Nearest", "Farthest"), ends, strict=False)
    ]


def sentence_of(effect: PlacementEffect) -> str:
    """Returns what a kind of placement changes at a place."""
    before, after = (
        units.format_value(each.value, each.unit) for each in (effect.rtt_without, effect.rtt_with)
    )
    ratio = effect.rtt_ratio
    ends = ""
    if ratio.low is not None and ratio.high is not None:
        ends = f" [{ratio.low:.3g}, {ratio.high:.3g}]"
    how = "changes"
    if ends and ratio.high is not None and ratio.high < 1:
        how = "brings"
    elif ends and ratio.low is not None and ratio.low <= 1:
        how = "shows no difference in"
    change = f"from {before} to {after}: ratio {ratio.value:.3g}{ends}"
    return (
        f"{effect.place}: the {effect.placement} placement group {how} the round trip {change}, "
        f"n = {ratio.n}."
    )


def text_of(result: RunResult) -> str:
    """Returns what the command prints."""
    distances = result.part(CloudDistances)
    if distances is None:
        return "No distance was measured."
    parts = ["\n".join(answer(result))]
    parts += [
        f"{title}:\n{_matrix(distances.places, values)}" for title, values in _matrices(distances)
    ]
    rows = [(words, *estimate_cells(value)) for words, value in rows_of(distances)]
    parts.append(output.table(("between places", "median", "interval", "n"), rows, right=(1, 2, 3)))
    parts += ["\n".join(_missing(distances))] if any(_missing(distances)) else []
    parts.append("\n".join(_notes(distances)))
    return "\n\n".join(parts)


def _matrices(
    distances: CloudDistances,
) -> Iterator[tuple[str, dict[tuple[str, str], Estimate | None]]]:
    """Yields the two matrices; none where pairs are within places."""
    pairs = [pair for pair in distances.pairs if pair.place_a != pair.place_b]
    if not pairs:
        return
    rtts = {(pair.place_a, pair.place_b): pair.rtt for pair in pairs}
    goodputs = {(pair.place_a, pair.place_b): pair.goodput for pair in pairs}
    goodputs |= {(pair.place_b, pair.place_a): pair.goodput_back for pair in pairs}
    yield _MEDIAN, rtts
    yield _FLOW, goodputs


def _matrix(places: Sequence[str], values: dict[tuple[str, str], Estimate | None]) -> str:
    rows = [
        (
            row,
            *(
                estimate_cells(values[row, column])[0] if (row, column) in values else ""
                for column in places
            ),
        )
        for row in places
    ]
    return output.table(("place", *places), rows, right=tuple(range(1, len(places) + 1)))


def rows_of(distances: CloudDistances) -> Iterator[tuple[str, Estimate | None]]:
    """Yields each figure with the words that say what it is."""
    for pair in distances.pairs:
        first, second = _names(pair)
        yield f"{first} - {second}: round trip p50", pair.rtt
        yield f"{first} -> {second}: TCP goodput", pair.goodput
        yield f"{second} -> {first}: TCP goodput", pair.goodput_back


def _names(pair: PlaceDistance) -> tuple[str, str]:
    if pair.place_a != pair.place_b:
        return pair.place_a, pair.place_b
    return pair.machine_a, pair.machine_b


def _missing(distances: CloudDistances) -> list[str]:
    return [
        f"{' and '.join(_names(pair))}: not every figure was measured. {pair.missing}"
        for pair in distances.pairs
        if pair.missing
    ]


def _notes(distances: CloudDistances) -> Iterator[str]:
    ways = {pair.way for pair in distances.pairs}
    if ways == {"private"}:
        yield "Machines were reached at their private addresses."
    elif ways == {"public"}:
        yield "Machines were reached at their public addresses."
    else:
        yield (
            "Machines of one region were reached at their private addresses, others at their\n"
            "public ones."
        )
    if distances.effects:
        yield (
            "Each kind of placement has one pair of machines: the interval covers the trials of "
            "these machines,\nand not where the next ones would lie."
        )
