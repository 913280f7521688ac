"""A ranking as a section of the report and of the terminal: ranks, dots, overall order, advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from operator import attrgetter
from statistics import fmean

from nephoscope import units
from nephoscope.analysis.statistics.dominance import dominates
from nephoscope.analysis.statistics.values import percent
from nephoscope.grouping import group_by
from nephoscope.model import Estimate, RunResult
from nephoscope.naming import common_factors
from nephoscope.rank.pairs import places
from nephoscope.rank.records import RankedCell, RankedRow, Ranking
from nephoscope.rank.rows import RANK
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

MAX_DOTS = 40
GAP = "–"
CONSISTENCY = "Performance consistency"

RankOf = Callable[[RankedCell], int | None]
_rank: RankOf = attrgetter("rank")
_consistency_rank: RankOf = attrgetter("consistency_rank")

_CAPTION = (
    "Rank 1 is best; '=' marks a rank that is shared, because the values cannot be told apart; "
    "'?' an order of values without intervals."
)


def build(result: RunResult) -> Section | None:
    """Returns the ranking of a run that compares platforms."""
    ranking = result.part(Ranking)
    return None if ranking is None else section(ranking)


def answer(result: RunResult) -> list[str]:
    """Returns the sentence that answers a plan's question."""
    ranking = result.part(Ranking)
    return [] if ranking is None else [lead(ranking)]


def section(ranking: Ranking) -> Section:
    """Returns the whole ranking."""
    blocks: list[Block] = [
        Sentence(lead(ranking), lead=True),
        *_overall(ranking),
        Heading("Application domains"),
        _advice_table(ranking),
        Heading("Ranks by metric"),
        _value_table(ranking),
        *_consistency(ranking),
        *_dots(ranking),
        *_remarks(ranking),
    ]
    return Section("ranking", "Ranking", tuple(blocks))


def ranks_section(ranking: Ranking) -> Section:
    """Returns the ranks alone, by parameter, as published comparisons print them."""
    columns = (*Column.texts("Parameter", "Metric"), *Column.numbers(*_clean(ranking.alternatives)))
    rows = tuple(_ranks_rows(ranking))
    return Section("ranks", "Ranks", (Table(columns, rows, _CAPTION), *_remarks(ranking)))


def lead(ranking: Ranking) -> str:
    """Returns the overall order in one sentence."""
    mean = ranking.overall.performance
    if mean is None:
        count = len(ranking.overall.benchmarks)
        return (
            f"No overall order: it needs 2 benchmarks that every alternative has; there is {count}."
        )
    test = f"(Friedman p = {mean.p:.2g}, {wording.plural(mean.benchmarks, 'benchmark')})"
    order = sorted(ranking.alternatives, key=lambda name: (mean.ranks[name], mean.mean_ranks[name]))
    groups = group_by(order, lambda name: mean.ranks[name])
    text = ", then ".join(" = ".join(_clean(group)) for group in groups.values())
    if len(groups) > 1:
        return f"Overall order: {text} {test}."
    apart = [pair for pair, p in mean.pairs.items() if p <= 1 - ranking.confidence]
    if apart:
        pairs = "; ".join(wording.clean(pair).replace(", ", " and ") for pair in apart)
        return f"Overall {text} share a rank; only these pairs are told apart: {pairs} {test}."
    return f"Overall no alternative can be told apart: {text} {test}."


def _overall(ranking: Ranking) -> Iterator[Block]:
    mean, varied = ranking.overall.performance, ranking.overall.consistency
    rows = [
        (
            wording.clean(cell.alternative),
            GAP if mean is None else f"{mean.ranks[cell.alternative]}",
            GAP if mean is None else f"{mean.mean_ranks[cell.alternative]:.2f}",
            _interval(cell.ratio),
            _interval(cell.weighted_ratio),
            percent(cell.rank_probabilities[0]) if cell.rank_probabilities else GAP,
            "yes" if cell.on_pareto_front else "no",
            GAP if varied is None else f"{varied.ranks[cell.alternative]}",
        )
        for cell in ranking.overall.cells
    ]
    heads = ("Rank", "Mean rank", "Ratio", "Weighted ratio", "P(rank 1)", "Front", "Consistency")
    roomy = {"Weighted ratio", "Consistency"}
    columns = (Column("Alternative"), *(Column(head, True, head in roomy) for head in heads))
    weights = "the given weights" if ranking.overall.weights_given else "all weights equally likely"
    caption = (
        f"Ratio: geometric mean of costs relative to {wording.clean(ranking.reference)}; above 1 "
        f"is worse. P(rank 1): with {weights}."
    )
    yield Table(columns, tuple(rows), caption)
    if mean is not None:
        yield Sentence(
            f"Mean ranks that differ by less than {mean.critical_difference:.3g} (Nemenyi) are not "
            f"told apart at {percent(ranking.confidence)}.",
            roomy=True,
        )


def _advice_table(ranking: Ranking) -> Table:
    rows = tuple(
        (item.domain, GAP if item.certainty is None else percent(item.certainty), item.sentence)
        for item in ranking.domains
    )
    return Table((Column("Domain"), Column("Certainty", True), Column("Advice")), rows)


def _value_table(ranking: Ranking) -> Table:
    rows, labels = [], _labels(ranking)
    for row in ranking.rows:
        texts = [
            f"{mark}  {units.format_value(cell.estimate.value, cell.estimate.unit)}"
            if cell.estimate is not None and row.unit != RANK
            else mark
            for mark, cell in zip(_marks(row, _rank), row.cells, strict=True)
        ]
        rows.append((labels[id(row)], *texts))
    columns = (Column("Metric"), *Column.numbers(*_clean(ranking.alternatives)))
    return Table(columns, tuple(rows), _CAPTION)


def _consistency(ranking: Ranking) -> Iterator[Block]:
    rows, labels = [], _labels(ranking)
    for row in ranking.rows:
        if any(cell.consistency_rank for cell in row.cells):
            texts = []
            for mark, cell in zip(_marks(row, _consistency_rank), row.cells, strict=True):
                varied = cell.consistency.robust_cv if cell.consistency else None
                texts.append(mark if varied is None else f"{mark}  {percent(varied, 2)}")
            rows.append((labels[id(row)], *texts))
    if rows:
        yield Heading("Consistency by metric")
        columns = (Column("Metric"), *Column.numbers(*_clean(ranking.alternatives)))
        caption = "Robust coefficient of variation of the repetitions; rank 1 varies least."
        yield Table(columns, tuple(rows), caption)


def _dots(ranking: Ranking) -> Iterator[Block]:
    """One chart an alternative: its ratio to the reference in every metric, with intervals."""
    labels = _labels(ranking)
    for number, name in enumerate(ranking.alternatives):
        own = [
            (labels[id(row)], cell.ratio)
            for row in ranking.rows
            for cell in row.cells
            if cell.alternative == name and cell.ratio is not None and row.kind == "value"
        ][:MAX_DOTS]
        if not own:
            continue
        reference = wording.clean(ranking.reference)
        title = f"{wording.clean(name)} relative to {reference}"
        axis = figures.Axis("cost ratio (above 1 is worse)", "ratio", log=True)
        rows = tuple((label, _interval(ratio)) for label, ratio in own)
        table = Table(Column.head(("Metric",), ("ratio",)), rows)
        caption = "Time, or the inverse of a rate, relative to the reference; bars are intervals."
        yield Chart(
            f"ranking-{number}", title, figures.dots(own, axis), table, caption, repeats=True
        )


def _remarks(ranking: Ranking) -> Iterator[Block]:
    labels = _labels(ranking)
    notes = [f"{labels[id(row)]}: {row.note}" for row in ranking.rows if row.note]
    yield from items(notes, title="Notes of the source")
    absent = ((cell, row) for row in ranking.rows for cell in row.cells if cell.rank is None)
    gaps = group_by(absent, lambda gap: (gap[0].alternative, gap[0].reason))
    missing = [
        f"{name} has no {labels[id(own[0][1])]}"
        + (f" and {len(own) - 1} more" if len(own) > 1 else "")
        + f": {reason.removesuffix('.')}."
        for (name, reason), own in gaps.items()
    ]
    warnings = [Item(wording.clean(text), "warning") for text in ranking.warnings]
    yield from items([*missing, *ranking.excluded, *warnings], title="Gaps and exclusions")


def _ranks_rows(ranking: Ranking) -> Iterator[tuple[str, ...]]:
    labels = _labels(ranking)
    for parameter in dict.fromkeys(row.parameter for row in ranking.rows):
        own = [row for row in ranking.rows if row.parameter == parameter]
        values = [row for row in own if row.kind == "value"]
        rest = [row for row in own if row.kind != "value"]
        title = wording.clean(parameter)
        kinds = {row.kind for row in own}
        lines = [(labels[id(row)], _marks(row, _rank)) for row in values]
        if len(values) > 1 and "average" not in kinds:
            lines.append(("Average", _over_rows(values, ranking, _rank)))
        lines += [(labels[id(row)], _marks(row, _rank)) for row in rest]
        if "consistency" not in kinds:
            lines.append((CONSISTENCY, _over_rows(values, ranking, _consistency_rank)))
        for label, ranks in lines:
            if any(rank != GAP for rank in ranks):
                yield title, label, *ranks
                title = ""


def _over_rows(rows: Sequence[RankedRow], ranking: Ranking, rank: RankOf) -> list[str]:
    """Ranks over several metrics: two are told apart where one is better in some, worse in none."""
    ranks = {
        name: [rank(cell) for row in rows for cell in row.cells if cell.alternative == name]
        for name in ranking.alternatives
    }
    whole = {
        name: [value for value in values if value is not None]
        for name, values in ranks.items()
        if values and None not in values
    }
    order = places(
        {name: fmean(values) for name, values in whole.items()},
        [(a, b) for a, b in permutations(whole, 2) if dominates(whole[a], whole[b])],
    )
    shared = [place.rank for place in order.values()]
    return [
        GAP
        if name not in order
        else f"{order[name].rank}{'=' * (shared.count(order[name].rank) > 1)}"
        for name in ranking.alternatives
    ]


def _marks(row: RankedRow, rank: RankOf) -> list[str]:
    """The rank of each cell, with '=' where it is shared and '?' where it was not tested."""
    ranks = [rank(cell) for cell in row.cells]
    return [
        GAP
        if own is None
        else f"{own}{'=' * (ranks.count(own) > 1)}"
        f"{'?' * (not row.tested and cell.consistency_rank is None)}"
        for own, cell in zip(ranks, row.cells, strict=True)
    ]


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
    if row.metric.endswith(f"_{row.unit}"):  # a name of the catalogue ends with its unit
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
