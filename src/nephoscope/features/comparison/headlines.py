"""Chooses the results that carry a comparison, and states its outcome in one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nephoscope.core.model import Estimate, MetricResult, VerdictWord
from nephoscope.report import summary, wording
from nephoscope.stats.statistics.values import percent
from nephoscope.stats.verdicts import change

if TYPE_CHECKING:
    from nephoscope.features.comparison.compared import Compared

SURVEYED = 4
"""Benchmarks of the summary's own choices from which on a run is a survey: these choices, and not
each size of each memory benchmark, are then its headline results."""
SPEEDS = frozenset({"ns", "per_s", "bytes_per_s", "bits_per_s"})
"""Units of times and rates, of which better is faster."""


def titles_of_headlines(lines: Sequence[MetricResult], *, all_wanted: bool) -> Mapping[int, str]:
    """Returns the names of the headline results by the position of their line.

    They are the summary's choices of a survey, else the headline metrics, else all; they do not
    depend on any value. all_wanted: the user selected the lines, so that all are.
    """
    names = {number: title_of(line) for number, line in enumerate(lines)}
    if all_wanted:
        return names
    choices = {(choice.benchmark, choice.metric) for choice in summary.choices()}
    surveyed = {line.benchmark for line in lines if (line.benchmark, line.metric) in choices}
    if len(surveyed) >= SURVEYED:
        place = {id(line): number for number, line in enumerate(lines)}
        return {
            place[id(line)]: f"{label} ({setting})" if setting else label
            for label, setting, line in summary.choose(lines)
        }
    main = {number: names[number] for number, line in enumerate(lines) if line.headline}
    return main or names


def title_of(line: MetricResult) -> str:
    """Returns the name of a line for people."""
    return wording.line_name(line.benchmark, line.metric, line.factors)


def conclude(lines: Sequence[Compared]) -> str:
    """Returns the outcome of the headline results in one sentence."""
    main = [line for line in lines if line.is_headline]
    if len(main) == 1:
        return main[0].comparison.verdict.sentence
    kind = "headline results" if len(main) < len(lines) else "results"
    worse, better = (of_word(main, word) for word in ("worse", "better"))
    rest = _count_rest(main)
    if worse or better:
        decided = [*worse, *better]
        parts = [
            f"{adjective(own[0], decided)}{{}} ({_largest(own)})" for own in (worse, better) if own
        ]
        counts = [f" in {len(own)}" for own in (worse, better) if own]
        counts[0] = f" than A{counts[0]} of {len(main)} {kind}"
        outcome = " and ".join(
            part.format(count) for part, count in zip(parts, counts, strict=True)
        )
        return f"B is {outcome}; {rest}." if rest else f"B is {outcome}."
    least = {line.comparison.least for line in main}
    sizes = [min(line.comparison.n_a, line.comparison.n_b) for line in main]
    if max(sizes) < min(least):
        return (
            f"No verdict on {len(main)} {kind}: n = {_span(sizes)} of at least {min(least)} "
            "repetitions a side."
        )
    same = of_word(main, "equivalent", "different but negligible")
    if len(same) == len(main):
        margin = percent(main[0].comparison.margin)
        return f"B and A are equivalent in all {len(main)} {kind}, within ±{margin}."
    listed = f": {rest}" if "," in rest else ""
    return f"Undecided: no difference between A and B is shown in {len(main)} {kind}{listed}."


def of_word(lines: Sequence[Compared], *words: VerdictWord) -> list[Compared]:
    """Returns the lines with one of these verdicts."""
    return [line for line in lines if line.comparison.verdict.word in words]


def adjective(line: Compared, compared_lines: Sequence[Compared]) -> str:
    """Returns the verdict better or worse as a word; a speed is faster or slower.

    beside: the lines of the same sentence or table, of which each has to be a speed.
    """
    word = line.comparison.verdict.word
    if not all(compared.estimate_a.unit in SPEEDS for compared in compared_lines):
        return word
    return {"better": "faster", "worse": "slower"}.get(word, word)


def change_text(ratio: Estimate | None) -> str:
    """Returns a ratio as a change, '+12 % [+9 %, +15 %]', or that there is no interval."""
    if ratio is None or ratio.low is None:
        return "no interval"
    value, low = change(ratio.value), change(ratio.low)
    high = "unbounded" if ratio.high is None else change(ratio.high)
    return f"{value} [{low}, {high}]"


def _largest(lines: Sequence[Compared]) -> str:
    def size(line: Compared) -> float:
        ratio = line.comparison.ratio
        return abs(math.log(ratio.value)) if ratio is not None and ratio.value > 0 else math.inf

    line = max(lines, key=size)
    return f"{'most in ' if len(lines) > 1 else ''}{line.title}: {change_text(line.ratio)}"


def _count_rest(lines: Sequence[Compared]) -> str:
    """Returns how many results are equivalent, undecided or without an interval."""
    same = of_word(lines, "equivalent", "different but negligible")
    open_lines = of_word(lines, "inconclusive")
    wide = [line for line in open_lines if line.has_interval]
    counts = (
        (len(same), "equivalent"),
        (len(wide), "undecided"),
        (len(open_lines) - len(wide), "without an interval"),
    )
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _span(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return str(low) if low == high else f"{low} to {high}"
