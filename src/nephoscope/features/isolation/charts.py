"""The figures of what neighbours take: the map, curves over the dose, before-during-after."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Better
from nephoscope.features.isolation import tables
from nephoscope.features.isolation.records import Cell, DosePoint, DoseResponse
from nephoscope.report import figures, heat_maps, palette, selection, wording
from nephoscope.report import violins as shapes
from nephoscope.report.blocks import Chart, Table
from nephoscope.report.columns import number, ratio, table, text
from nephoscope.report.heat_maps import Square

MAX_CHARTS = 6
"""Victims with a figure of their own; the tables hold all."""

BASELINE = "baseline"
BEFORE, DURING, AFTER = "baseline before", "loaded", "recovery"


def heat_map(cells: Sequence[Cell]) -> Chart:
    """Victims by loads at the highest intensity, each with factor, interval and n."""
    top = _highest(cells)
    names = tables.victim_names([cell.victim for cell in cells])
    several = len({cell.neighbours for cell in top if not tables.is_idle(cell)}) > 1

    def row_of(cell: Cell) -> str:
        many = f", {wording.plural(cell.neighbours, 'neighbour')}" if several else ""
        return names[id(cell.victim)] + many

    rows = list(dict.fromkeys(row_of(cell) for cell in top))
    columns = list(dict.fromkeys(tables.resource_name(cell.resource) for cell in top))
    squares = {}
    for cell in top:
        row, column = row_of(cell), tables.resource_name(cell.resource)
        squares[rows.index(row), columns.index(column)] = _square(cell, row)

    def listed(some: Sequence[Cell]) -> Table:
        return table(
            some,
            text("victim", lambda cell: names[id(cell.victim)]),
            text("load", tables.load_name),
            *ratio("factor", lambda cell: cell.factor, lambda cell: cell.comparison.n_a),
            text("verdict", lambda cell: cell.comparison.verdict.word),
        )

    caption = (
        "Slowdown of each victim under load, relative to its baseline; above 1 is worse "
        "for times and rates alike. Squares are coloured where the interval excludes 1; "
        "hatched squares were not measured. n counts rounds. Intervals are unadjusted; "
        "verdicts are adjusted for all pairs (Holm). Equivalence is decided by the 90 % interval "
        "where the interval shown is at 95 %."
    )
    return Chart(
        "isolation-map",
        "Slowdown under full load",
        heat_maps.grid(rows, columns, squares),
        listed(cells),
        caption,
        brief=listed([cell for cell in cells if cell in top][: tables.MAX_ROWS]),
    )


def _highest(cells: Sequence[Cell]) -> list[Cell]:
    """Of each victim, resource and number of neighbours the cell of the highest intensity."""
    groups = group_by(cells, lambda cell: (id(cell.victim), cell.resource, cell.neighbours))
    return [max(own, key=lambda cell: cell.intensity) for own in groups.values()]


def _square(cell: Cell, row: str) -> Square:
    value, interval, n = wording.ratio_cells(cell.factor, cell.comparison.n_a)
    lines = (value, interval if cell.has_interval else "no interval", f"n {n}")
    words = [
        f"{row} with {tables.load_name(cell)}: {value} {interval} (n = {n})",
        cell.comparison.verdict.word,
    ]
    if cell.attribution is not None and cell.excludes_one:
        words.append(f"attributed to: {cell.attribution.word.value}")
    factor = cell.factor.value if cell.factor and cell.excludes_one else None
    return Square(lines, "; ".join(words), factor)


def responses(heat: Sequence[DoseResponse]) -> list[Chart]:
    """A figure for each victim that responds at all: factor over what the load reached."""
    groups = group_by(heat, lambda response: id(response.victim))
    names = tables.victim_names([response.victim for response in heat])
    charts = []
    for position, own in enumerate(groups.values()):
        if all(response.response.word == "flat" for response in own):
            continue
        drawn = sorted(own, key=_reach, reverse=True)[: selection.MAX_CURVES]
        charts.append(_responses(names[id(own[0].victim)], drawn, len(own), position))
    return charts[:MAX_CHARTS]


def _reach(response: DoseResponse) -> float:
    return max((point.factor.value for point in response.points if point.factor), default=0.0)


def _responses(name: str, drawn: Sequence[DoseResponse], of: int, position: int) -> Chart:
    curves: list[figures.Curve] = []
    rows: list[tuple[str, DosePoint]] = []
    for item in drawn:
        label = tables.resource_name(item.resource) + tables.concurrent(item.neighbours)
        points = [point for point in item.points if point.factor is not None]
        at = [point.achieved.value if point.achieved else point.requested for point in points]
        point_factors = [wording.plain(point.factor) for point in points if point.factor]
        hover = [
            (
                f"{label}, requested {100 * point.requested:g} %, achieved {100 * x:.3g} %: "
                f"{wording.estimate_text(factor)}"
            )
            for point, x, factor in zip(points, at, point_factors, strict=True)
        ]
        curves.append(
            figures.Curve(
                label,
                (0.0, *at),
                (1.0, *(factor.value for factor in point_factors)),
                (None, *(factor.low for factor in point_factors)),
                (None, *(factor.high for factor in point_factors)),
                ("baseline: 1 by definition", *hover),
            )
        )
        rows += [(label, point) for point in points]
    x = figures.Axis("achieved load intensity", "ratio", from_zero=True)
    figure = figures.lines(curves, x, figures.Axis("slowdown", "none"), height=380)
    figure["layout"].setdefault("shapes", []).append(
        figures.horizontal(1.0) | {"line": {"color": palette.NEUTRAL, "width": 1, "dash": "dot"}}
    )
    figure["layout"]["showlegend"] = True
    data = table(
        rows,
        text("load", lambda row: row[0]),
        number("requested", lambda row: f"{100 * row[1].requested:g} %"),
        number("achieved", lambda row: row[1].achieved and wording.estimate_text(row[1].achieved)),
        *ratio("factor", lambda row: row[1].factor),
    )
    more = f" Shows the {len(drawn)} largest of {of} factors." if len(drawn) < of else ""
    return Chart(
        f"isolation-dose-{position}",
        f"{name} by load intensity",
        figure,
        data,
        f"Slowdown relative to the baseline (1) with its interval; above 1 is worse.{more}",
        repeats=True,
    )


def violins(cells: Sequence[Cell]) -> list[Chart]:
    """For each victim that loses something: its values before, during and after each load."""
    groups = group_by(_highest(cells), lambda cell: id(cell.victim))
    names = tables.victim_names([cell.victim for cell in cells])
    hurt = [own for own in groups.values() if any(cell.excludes_one for cell in own)]
    hurt.sort(key=lambda own: -max(cell.factor.value if cell.factor else 0 for cell in own))
    return [
        _violins(names[id(own[0].victim)], own, position)
        for position, own in enumerate(hurt[:MAX_CHARTS])
    ]


def _violins(name: str, cells: Sequence[Cell], position: int) -> Chart:
    victim = cells[0].victim
    groups = [
        shapes.ViolinGroup(tables.load_name(cell), phase, tuple(values))
        for cell in cells
        for phase, values in _phases(cell).items()
        if values
    ]
    phases_there = [
        p for p in (BASELINE, BEFORE, DURING, AFTER) if any(g.phase == p for g in groups)
    ]
    axis = figures.Axis(wording.metric_name(victim.metric), victim.unit)
    better = "higher" if victim.better is Better.HIGHER else "lower"
    data = table(
        groups,
        text("load", lambda row: row.place),
        text("phase", lambda row: row.phase),
        number("minimum", lambda row: min(row.values), victim.unit),
        number("median", lambda row: median(row.values), victim.unit),
        number("maximum", lambda row: max(row.values), victim.unit),
        number("n", lambda row: len(row.values)),
    )
    return Chart(
        f"isolation-around-{position}",
        f"{name}: baseline, loaded, recovery",
        shapes.violins(list(map(tables.load_name, cells)), phases_there, groups, axis),
        data,
        f"Each point is one trial; {better} is better. Boxes span the quartiles with a "
        "line at the median. Outlines show the density and end at the extreme values.",
        repeats=True,
    )


def _phases(cell: Cell) -> dict[str, list[float]]:
    sides = {
        BEFORE: [triple.before for triple in cell.rounds if triple.before is not None],
        DURING: [triple.loaded for triple in cell.rounds],
        AFTER: [triple.after for triple in cell.rounds if triple.after is not None],
    }
    if sides[BEFORE] or sides[AFTER]:
        return sides
    return {BASELINE: [triple.baseline for triple in cell.rounds], DURING: sides[DURING]}
