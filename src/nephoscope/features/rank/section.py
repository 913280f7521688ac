"""A ranking as a section of the report and of the terminal: ranks, dots, overall order, advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nsmallest

from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate, RunResult
from nephoscope.core.naming import common_factors
from nephoscope.core.reading.sentences import listed
from nephoscope.features.rank.lead import GAP, NAMED, chance, in_order, lead
from nephoscope.features.rank.records import OverallCell, RankedCell, RankedRow, Ranking
from nephoscope.features.rank.rows import RANK
from nephoscope.report import figures, wording
from nephoscope.report.blocks import (
    Block,
    Chart,
    Column,
    Heading,
    Item,
    Section,
    Sentence,
    Table,
    items,
)
from nephoscope.report.columns import count, number, spread, table, text
from nephoscope.results.run_settings import warnings_of
from nephoscope.stats.statistics.values import percent

MAX_DOTS = 40
MAX_SHOWN = 20
"""Alternatives that a table shows of many."""
COLUMNS = 8
"""Alternatives up to which each has a column and a chart."""
BEST = 3
CONSISTENCY = "Performance consistency"

Interval = tuple[int, int]
IntervalOf = Callable[[RankedCell], Interval | None]
MarkOf = Callable[[RankedRow, RankedCell], str]

_CAPTION = (
    "Rank 1 is best; '1–3' is the interval of a rank, which holds for all alternatives of a row "
    "together; '?' marks the order of values without intervals."
)


def build(result: RunResult) -> Section | None:
    """Returns the ranking of a run that compares platforms."""
    ranking = result.part(Ranking)
    return None if ranking is None else section(ranking)


def answer(result: RunResult) -> list[str]:
    """Returns the sentence that answers a plan's question."""
    ranking = result.part(Ranking)
    return [] if ranking is None else [lead(ranking)]


def section(ranking: Ranking, every: bool = False) -> Section:
    """Returns the whole ranking; every: all alternatives instead of the best ones of many."""
    blocks: list[Block] = [
        Sentence(lead(ranking), lead=True),
        *_overall(ranking, every),
        *_advice(ranking),
        Heading("Ranks by metric"),
        _value_table(ranking, every),
        *_consistency(ranking),
        *_charts(ranking),
        *_remarks(ranking),
    ]
    return Section("ranking", "Ranking", tuple(blocks))


def ranks_section(ranking: Ranking, every: bool = False) -> Section:
    """Returns the ranks alone, by parameter, as published comparisons print them."""
    names = _best_names(ranking, every)
    rows = table(
        _ranks_rows(ranking, names),
        text("Parameter", lambda row: row[0]),
        text("Metric", lambda row: row[1]),
        *spread(_clean(names), lambda row: row[2]),
        caption=f"{_CAPTION}{_more(ranking, len(names))}",
    )
    return Section("ranks", "Ranks", (rows, *_remarks(ranking)))


def _best_names(ranking: Ranking, every: bool, most: int = MAX_SHOWN) -> list[str]:
    """The alternatives that a page shows: all in their order, or of many the best ones."""
    if len(ranking.alternatives) <= most:
        return list(ranking.alternatives)
    order = [cell.alternative for cell in in_order(ranking)]
    known = set(order)
    order += [name for name in ranking.alternatives if name not in known]
    return order if every else order[:most]


def _more(ranking: Ranking, printed_n: int) -> str:
    rest = len(ranking.alternatives) - printed_n
    return f" {rest:,} more: --all prints them, --json has them." if rest > 0 else ""


def _overall(ranking: Ranking, every: bool) -> Iterator[Block]:
    overall, cells = ranking.overall, in_order(ranking)
    if not cells:
        return
    top, best = overall.top, cells if every else cells[:MAX_SHOWN]
    columns: list[Column[OverallCell]] = [
        text("Alternative", lambda cell: cell.alternative),
        number("Rank", lambda cell: cell.rank),
    ]
    if overall.tested:
        columns.append(number("Interval", lambda cell: _range(cell.rank_low, cell.rank_high)))
    if overall.score == "geometric mean":
        columns.append(number("Ratio", lambda cell: _interval(cell.ratio)))
    if any(cell.first_probability is not None for cell in cells):
        columns += [
            number("P(rank 1)", lambda cell: chance(cell.first_probability, cell, 1)),
            number(f"P(top {top})", lambda cell: chance(cell.top_probability, cell, top)),
        ]
    if len(overall.benchmarks) > 1:
        columns += [
            number(
                "Without one", lambda cell: _range(cell.rank_without_low, cell.rank_without_high)
            ),
            number(
                "First by weights",
                lambda cell: percent(cell.first_of_weightings or 0.0, 2),
                roomy=True,
            ),
        ]
    columns.append(number("Front", lambda cell: cell.on_pareto_front, roomy=True))
    caption = f"{_overall_caption(ranking)}{_more(ranking, len(best))}"
    yield table(best, *columns, caption=caption)
    yield from items(_scope(ranking))
    mean = overall.agreement
    if mean is not None:
        yield Sentence(
            f"Agreement of the {wording.plural(mean.benchmarks, 'benchmark')} about the order: "
            f"Kendall's W {mean.agreement:.2f} (0 none, 1 complete; Friedman p = {mean.p:.2g}). It "
            "is no uncertainty of an alternative, and decides no rank.",
            roomy=True,
        )


def _overall_caption(ranking: Ranking) -> str:
    overall = ranking.overall
    weights = "the given weights" if overall.weights_given else "equal weights"
    parts = []
    if overall.score == "geometric mean":
        parts.append(
            f"Ratio: geometric mean, with {weights}, of costs relative to "
            f"{wording.clean(ranking.reference)}; above 1 is worse."
        )
    level = percent(ranking.confidence)
    parts.append(
        f"Intervals hold for all alternatives together at {level}, by the errors of measurement."
        if overall.tested
        else "No intervals: fewer than 4 values of an alternative and metric."
    )
    if len(overall.benchmarks) > 1:
        parts.append("Without one: range of the rank where any one benchmark is left out.")
    return " ".join(parts)


def _scope(ranking: Ranking) -> Iterator[str]:
    """Who and what has no part in the overall order."""
    overall = ranking.overall
    if overall.left_out:
        count = wording.plural(len(overall.left_out), "alternative")
        yield (
            f"No overall rank: {count} of {len(ranking.alternatives):,} without a value of "
            f"every benchmark of the order: {listed(_clean(overall.left_out), NAMED)}."
        )
    if overall.omitted:
        yield f"Not in the overall order: {listed(_clean(overall.omitted), NAMED)}; too many gaps."


def _advice(ranking: Ranking) -> Iterator[Block]:
    yield Heading("Application domains")
    if all(item.word == "not measured" for item in ranking.domains):
        yield Sentence(
            "No advice: no metric has a resource that all alternatives have (column `resource`)."
        )
    else:
        yield _advice_table(ranking)


def _advice_table(ranking: Ranking) -> Table:
    return table(
        ranking.domains,
        text("Domain", lambda row: row.domain),
        number("Certainty", lambda row: GAP if row.certainty is None else percent(row.certainty)),
        text("Advice", lambda row: row.sentence),
    )


def _value_table(ranking: Ranking, every: bool) -> Table:
    """Rank and value: alternatives as columns, or of many the best ones of each metric."""
    labels = _labels(ranking)
    if len(ranking.alternatives) > COLUMNS:
        return _best_table(ranking, labels)

    def marked(row: RankedRow) -> list[str]:
        return [_marked_value(row, cell) for cell in row.cells]

    return table(
        ranking.rows,
        text("Metric", lambda row: labels[id(row)]),
        *spread(_clean(ranking.alternatives), marked),
        caption=_CAPTION,
    )


def _marked_value(row: RankedRow, cell: RankedCell) -> str:
    mark = _mark(row, cell)
    if cell.estimate is None or row.unit == RANK:
        return mark
    return f"{mark}  {units.format_value(cell.estimate.value, cell.estimate.unit)}"


def _best_table(ranking: Ranking, labels: Mapping[int, str]) -> Table:
    """The best alternatives of each metric, for more alternatives than a table has columns."""

    def known(row: RankedRow) -> list[RankedCell]:
        return [cell for cell in row.cells if cell.rank is not None]

    def best(row: RankedRow) -> list[str]:
        cells = nsmallest(BEST, known(row), key=lambda cell: cell.rank or 0)
        texts = [f"{wording.clean(cell.alternative)}  {_marked_value(row, cell)}" for cell in cells]
        return texts + [GAP] * (BEST - len(texts))

    return table(
        ranking.rows,
        text("Metric", lambda row: labels[id(row)]),
        count("Alternatives", lambda row: len(known(row))),
        *spread(("Best", "Second", "Third"), best, numeric=False),
        caption=_CAPTION,
    )


def _consistency(ranking: Ranking) -> Iterator[Block]:
    def variation(row: RankedRow, cell: RankedCell) -> str:
        cv = cell.consistency.robust_cv if cell.consistency else None
        mark = _consistency_mark(row, cell)
        return mark if cv is None else f"{mark}  {percent(cv, 2)}"

    def varied(row: RankedRow) -> list[str]:
        return [variation(row, cell) for cell in row.cells]

    labels = _labels(ranking)
    rows = [row for row in ranking.rows if any(cell.consistency_rank for cell in row.cells)]
    if rows:
        yield Heading("Consistency by metric")
        yield table(
            rows,
            text("Metric", lambda row: labels[id(row)]),
            *spread(_clean(ranking.alternatives), varied),
            caption="Robust coefficient of variation of the repetitions; rank 1 varies least.",
        )


def _charts(ranking: Ranking) -> Iterator[Block]:
    """One chart an alternative: its ratio to the reference in every metric; of many the overall
    ratio of the best."""
    reference = wording.clean(ranking.reference)
    axis = figures.Axis("cost ratio (above 1 is worse)", "ratio", log=True)
    if len(ranking.alternatives) > COLUMNS:
        best = [
            (wording.clean(cell.alternative), cell.ratio)
            for cell in in_order(ranking)[:MAX_DOTS]
            if cell.ratio is not None
        ]
        if best:
            yield _dots("ranking", f"Best alternatives relative to {reference}", best, axis)
        return
    labels = _labels(ranking)
    for position, name in enumerate(ranking.alternatives):
        own = [
            (labels[id(row)], cell.ratio)
            for row in ranking.rows
            for cell in row.cells
            if cell.alternative == name and cell.ratio is not None and row.kind == "value"
        ][:MAX_DOTS]
        if own:
            title = f"{wording.clean(name)} relative to {reference}"
            yield _dots(f"ranking-{position}", title, own, axis)


def _dots(id: str, title: str, rows: Sequence[tuple[str, Estimate]], axis: figures.Axis) -> Chart:
    data = table(
        rows,
        text("Metric" if "-" in id else "Alternative", lambda row: row[0]),
        number("ratio", lambda row: _interval(row[1])),
    )
    caption = "Time, or the inverse of a rate, relative to the reference; bars are intervals."
    return Chart(id, title, figures.dots(rows, axis), data, caption, repeats=True)


def _remarks(ranking: Ranking) -> Iterator[Block]:
    labels = _labels(ranking)
    notes = [f"{labels[id(row)]}: {row.note}" for row in ranking.rows if row.note]
    yield from items(notes, title="Notes of the source")
    missing = list(_gaps(ranking, labels))
    sentences = [*ranking.warnings, *warnings_of(ranking.hidden_settings)]
    warnings = [Item(wording.clean(sentence), "warning") for sentence in sentences]
    yield from items([*missing, *ranking.excluded, *warnings], title="Gaps and exclusions")


def _gaps(ranking: Ranking, labels: Mapping[int, str]) -> Iterator[str]:
    """The gaps: of few alternatives by alternative, of many the count by metric."""
    absent = [(cell, row) for row in ranking.rows for cell in row.cells if cell.rank is None]
    if len(ranking.alternatives) > COLUMNS:
        for row_id, own in group_by(absent, lambda gap: id(gap[1])).items():
            names = [wording.clean(cell.alternative) for cell, _ in own]
            yield f"{labels[row_id]}: no value of {listed(names, NAMED)}."
        return
    for (name, reason), own in group_by(
        absent, lambda gap: (gap[0].alternative, gap[0].reason)
    ).items():
        more = f" and {len(own) - 1} more" if len(own) > 1 else ""
        yield f"{name} has no {labels[id(own[0][1])]}{more}: {reason.removesuffix('.')}."


def _ranks_rows(ranking: Ranking, names: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    labels = _labels(ranking)
    at = {name: index for index, name in enumerate(ranking.alternatives)}
    positions = [at[name] for name in names]

    def marks(row: RankedRow, mark: MarkOf) -> list[str]:
        return [mark(row, row.cells[index]) for index in positions]

    for parameter in dict.fromkeys(row.parameter for row in ranking.rows):
        own = [row for row in ranking.rows if row.parameter == parameter]
        values = [row for row in own if row.kind == "value"]
        rest = [row for row in own if row.kind != "value"]
        title = wording.clean(parameter)
        kinds = {row.kind for row in own}
        few = len(ranking.alternatives) <= MAX_SHOWN
        lines = [(labels[id(row)], marks(row, _mark)) for row in values]
        if few and len(values) > 1 and "average" not in kinds:
            lines.append(("Average", _over_rows(values, positions, _interval_of)))
        lines += [(labels[id(row)], marks(row, _mark)) for row in rest]
        if few and "consistency" not in kinds:
            lines.append((CONSISTENCY, _over_rows(values, positions, _consistency_interval_of)))
        for label, ranks in lines:
            if any(rank != GAP for rank in ranks):
                yield title, label, ranks
                title = ""


def _over_rows(
    rows: Sequence[RankedRow], positions: Sequence[int], interval: IntervalOf
) -> list[str]:
    """Ranks over several metrics: one is better than another whose interval it lies before in some
    metric, and after in none."""
    whole = {
        index: own
        for index in positions
        if (own := [interval(row.cells[index]) for row in rows]) and None not in own
    }

    def beats(a: int, b: int) -> bool:
        sides = [(x, y) for x, y in zip(whole[a], whole[b], strict=True) if x and y]
        return any(x[1] < y[0] for x, y in sides) and not any(y[1] < x[0] for x, y in sides)

    return [
        GAP
        if index not in whole
        else _range(
            1 + sum(beats(rival, index) for rival in whole),
            len(whole) - sum(beats(index, rival) for rival in whole),
        )
        for index in positions
    ]


def _range(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        return GAP
    return f"{low}" if low == high else f"{low}–{high}"


def _interval_of(cell: RankedCell) -> Interval | None:
    if cell.rank is None:
        return None
    return (cell.rank_low or cell.rank, cell.rank_high or cell.rank)


def _consistency_interval_of(cell: RankedCell) -> Interval | None:
    low, high = cell.consistency_rank_low, cell.consistency_rank_high
    return None if low is None or high is None else (low, high)


def _mark(row: RankedRow, cell: RankedCell) -> str:
    """The interval of a rank; with '?' the rank itself where nothing was tested."""
    interval = _interval_of(cell)
    if interval is None:
        return GAP
    return _range(*interval) if row.tested else f"{cell.rank}?"


def _consistency_mark(row: RankedRow, cell: RankedCell) -> str:
    interval = _consistency_interval_of(cell)
    return GAP if interval is None else _range(*interval)


def _labels(ranking: Ranking) -> dict[int, str]:
    """The name of each row by its id; without the factors that all rows of its benchmark share."""
    common = {
        row.benchmark: common_factors(
            [rival.factors for rival in ranking.rows if rival.benchmark == row.benchmark]
        )
        for row in ranking.rows
    }
    return {id(row): _label(row, common[row.benchmark]) for row in ranking.rows}


def _label(row: RankedRow, common: Mapping[str, object]) -> str:
    setting = wording.factors_text(row.factors, leave_out=common)
    if (
        row.metric.endswith(f"_{row.unit}") and row.benchmark != row.metric
    ):  # a name of the catalogue ends with its unit
        name = wording.full_name(row.benchmark, row.metric)
    else:
        name = wording.clean(row.metric)
        if row.benchmark not in (row.metric, row.parameter):
            name = f"{wording.clean(row.benchmark)}: {name}"
    return f"{name} ({setting})" if setting else name


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return GAP
    if estimate.low is None or estimate.low == estimate.high:
        return units.format_value(estimate.value, "none")
    return units.format_interval(estimate.value, estimate.low, estimate.high, "none", 3)


def _clean(names: Sequence[str]) -> list[str]:
    return [wording.clean(name) for name in names]
