"""Builds the section of a comparison, for the terminal, a page and a pull request alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.comparison.compared import Compared
from nephoscope.features.comparison.differences import Difference
from nephoscope.features.comparison.headlines import adjective, change_text, of_word
from nephoscope.features.comparison.result import ComparisonRules, Comparisons
from nephoscope.report import columns, figures, wording
from nephoscope.report.blocks import Block, Chart, Heading, Section, Sentence, Table, items
from nephoscope.report.columns import fact_table, number, table, text
from nephoscope.report.feature_sections import MIN_POINTS
from nephoscope.stats.statistics.values import percent
from nephoscope.stats.verdicts import equivalence_confidence

MAX_ROWS = 30
"""Rows of a table that is not folded away."""
MAX_DIFFERENCES = 8
_WORDS = {"inconclusive": "undecided", "different but negligible": "negligible"}


def of_two(
    comparisons: Comparisons, rules: ComparisonRules, direction: str, *, every: bool
) -> Section:
    """Returns the section, whose title is the outcome.

    direction: which plain numbers are better, or ''. every: with all results and statistics open.
    """
    lines = comparisons.comparisons
    main = [line for line in lines if line.is_headline]
    further = [line for line in lines if not line.is_headline]
    open_lines = main if every else first_rows(main)
    blocks: list[Block] = [_sides(lines, rules, direction), _table(open_lines, "")]
    if len(open_lines) < len(main):
        left = [line for line in main if line not in open_lines]
        blocks.append(_table(left, f"{len(left)} more headline results", collapsed=True))
    blocks.append(Sentence(how_to_read(main, rules)))
    blocks += dot_plot(main, lambda line: line.title)
    if further:
        blocks += _of_further(further, every=every)
    blocks += _differences(comparisons, every=every)
    blocks += notes_of(comparisons, open_lines, every=every)
    blocks.append(statistics_table(lines, collapsed=not every and len(lines) > 1))
    if comparisons.next_step:
        blocks.append(Sentence(f"Next step: {comparisons.next_step}"))
    return Section("comparison", comparisons.conclusion, tuple(blocks))


def _sides(lines: Sequence[Compared], rules: ComparisonRules, direction: str) -> Table:
    first = lines[0]
    design = [first.design, f"margin {percent(rules.margin)}"]
    if direction:
        design.append(f"{direction} is better")
    rows = (
        ("A", wording.clean(first.a)),
        ("B", wording.clean(first.b)),
        ("Design", "; ".join(design)),
    )
    return fact_table(rows, aligned=False)


def first_rows(lines: Sequence[Compared]) -> Sequence[Compared]:
    """At most MAX_ROWS lines in their order: the decided ones first of all."""
    if len(lines) <= MAX_ROWS:
        return lines
    decided = of_word(lines, "worse", "better")
    rest = [line for line in lines if line not in decided]
    chosen = {id(line) for line in [*decided, *rest][:MAX_ROWS]}
    return [line for line in lines if id(line) in chosen]


def _table(lines: Sequence[Compared], caption: str, *, collapsed: bool = False) -> Table:
    return table(
        lines,
        text("result", lambda line: line.title),
        number("A", lambda line: side_text(line.estimate_a)),
        number("B", lambda line: side_text(line.estimate_b)),
        number("change of B", change_cell),
        text("B is", word_cell),
        number("n", sizes_cell),
        caption=caption,
        collapsed=collapsed,
    )


def side_text(estimate: Estimate) -> str:
    """A value with half of its interval: '251 ns ± 8 %'; the wider half of an uneven interval."""
    value = units.format_value(estimate.value, estimate.unit)
    low, high = estimate.low, estimate.high
    if low is None or high is None or estimate.value == 0:
        return value
    half = max(high - estimate.value, estimate.value - low) / abs(estimate.value)
    if half >= 1:  # ± reaches below zero and says nothing of the other end
        return units.format_interval(estimate.value, low, high, estimate.unit)
    return f"{value} ± {percent(half, 2)}"


def change_cell(line: Compared) -> str:
    """Returns the change from A to B with its interval, or that there is none."""
    if line.has_interval:
        return change_text(line.ratio)
    if line.comparison.ratio is not None:
        return "no interval"
    return _shift(line)


def word_cell(line: Compared) -> str:
    """The verdict, or why there is none."""
    comparison = line.comparison
    if comparison.verdict.word == "inconclusive":
        fewest = min(comparison.n_a, comparison.n_b)
        if fewest < comparison.least:
            return f"n = {fewest} of {comparison.least}"
    return _WORDS.get(comparison.verdict.word, adjective(line, [line]))


def dot_plot(lines: Sequence[Compared], name: Callable[[Compared], str]) -> list[Block]:
    """Returns the ratios of results as a chart of the page; none of fewer than three."""
    drawn = [line for line in lines if line.has_interval and line.ratio is not None]
    drawn = drawn[:MAX_ROWS]
    if len(drawn) < MIN_POINTS:
        return []
    rows = [(name(line), wording.plain(line.ratio)) for line in drawn if line.ratio is not None]
    figure = figures.dots(rows, figures.Axis("B / A", "none"), reach=(1.0,))
    figures.vertical(figure["layout"], 1.0, "equal", log=False)
    data = table(
        rows, text("result", lambda row: row[0]), *columns.estimate("B / A", lambda row: row[1])
    )
    return [Chart("ratios", "Ratio of B to A", figure, data, repeats=True)]


def sizes_cell(line: Compared) -> str:
    """Returns the number of repetitions of both sides."""
    a, b = line.comparison.n_a, line.comparison.n_b
    return str(a) if a == b else f"{a}, {b}"


def how_to_read(lines: Sequence[Compared], rules: ComparisonRules) -> str:
    """Returns what the columns are, and at which level they hold."""
    level = percent(rules.confidence)
    text = f"Medians, and the change from A to B with its {level} interval"
    if of_word(lines, "equivalent"):
        text += f" ({percent(equivalence_confidence(rules.confidence))} where equivalent)"
    few = [
        line.comparison.least
        for line in lines
        if min(line.comparison.n_a, line.comparison.n_b) < line.comparison.least
    ]
    if few:
        text += f"; below n = {min(few)} there is no interval"
    if len(lines) > 1:
        text += "; faster, slower, better and worse hold together at this level (Holm)"
    return f"{text}."


def _of_further(lines: Sequence[Compared], *, every: bool) -> list[Block]:
    """The other results: those that differ, and all of them folded away."""
    worse, better = (of_word(lines, word) for word in ("worse", "better"))
    count = wording.plural(len(lines), "other result")
    outcome = f"Of {count}, B is worse in {len(worse)} and better in {len(better)}."
    if every:
        return [Heading("Other results"), Sentence(outcome), _table(lines, "")]
    decided = [*worse, *better]
    if not decided:
        outcome = f"In {count}, no difference is shown."
    elif len(decided) > MAX_ROWS // 2:
        decided = []
    blocks: list[Block] = [Heading("Other results"), Sentence(outcome)]
    if decided:
        blocks.append(_table(decided, ""))
    return [*blocks, _table(lines, "All other results", collapsed=True)]


def _differences(comparisons: Comparisons, *, every: bool) -> list[Block]:
    differences = comparisons.differences
    blocks: list[Block] = []
    if differences:
        names = wording.joined(
            [wording.clean(difference.what) for difference in differences[:MAX_DIFFERENCES]]
        )
        more = len(differences) - MAX_DIFFERENCES
        names += f" and {more} more" if more > 0 else ""
        open_rows = len(differences) if every else MAX_DIFFERENCES
        blocks = [
            Heading("Environment"),
            Sentence(f"A and B differ in: {names}."),
            _environment(differences[:open_rows]),
        ]
        if differences[open_rows:]:
            title = "More differences of environment"
            blocks.append(
                replace(_environment(differences[open_rows:]), caption=title, collapsed=True)
            )
    if comparisons.unknown:
        blocks.append(Sentence(comparisons.unknown))
    return blocks


def _environment(differences: Sequence[Difference]) -> Table:
    return table(
        differences,
        text("environment", lambda row: row.what),
        text("A", lambda row: row.a),
        text("B", lambda row: row.b),
    )


def notes_of(
    comparisons: Comparisons, open_lines: Sequence[Compared], *, every: bool
) -> list[Block]:
    """The warnings on all, then those of the results, of each kind one unless `every`."""
    lines = comparisons.comparisons if every else open_lines
    pairs = [
        (line.title, text) for line in lines for text in (*_reason(line), *line.comparison.warnings)
    ]
    if len(lines) == 1:
        own = [text for _, text in pairs]
    elif every:
        own = [f"{title}: {text}" for title, text in pairs]
    else:
        own = wording.by_kind(pairs)
    return items([*comparisons.warnings, *own], title="Notes")


def _reason(line: Compared) -> list[str]:
    """Why a verdict that the interval suggests is not given: Holm's correction, or no ratio."""
    sentence = line.comparison.verdict.sentence
    is_open = line.comparison.verdict.word == "inconclusive"
    return (
        [sentence] if is_open and sentence.startswith(("Undecided: alone", "No verdict:")) else []
    )


def statistics_table(lines: Sequence[Compared], *, collapsed: bool) -> Table:
    """Returns shift, effect sizes and p-values of all results."""

    def formatted(value: float | None, form: str) -> str | None:
        return None if value is None else format(value, form)

    return table(
        lines,
        text("result", lambda line: line.title),
        number("shift", _shift),
        number("Cliff's delta", lambda line: formatted(line.comparison.cliffs_delta, "+.2f")),
        number("A12", lambda line: formatted(line.comparison.a12, ".2f")),
        number("p", lambda line: formatted(line.comparison.p, ".2g")),
        number("p after Holm", lambda line: formatted(line.comparison.p_holm, ".2g")),
        caption="Statistics",
        collapsed=collapsed,
    )


def _shift(line: Compared) -> str:
    shift = line.comparison.difference
    if shift is None or shift.low is None or shift.high is None:
        return "no interval"
    ends = (shift.value, shift.low, shift.high)
    # The unit is that of the wider end: a shift of 0 has none of its own.
    divisor, label = units.scale_of(shift.unit, max(ends, key=abs))
    value, low, high = (units.format_number(end / divisor) for end in ends)
    return f"{value} {label} [{low}, {high}]".replace("  ", " ")
