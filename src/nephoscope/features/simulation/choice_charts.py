"""The figures of choices: sites by cost and users in time, savings by what is on offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nephoscope.core import units
from nephoscope.features.simulation import tables
from nephoscope.features.simulation.records import Placement, SiteChoice, Surface
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Chart, thin
from nephoscope.report.columns import number, spread, table, text


def front(placement: Placement, name: str, position: int) -> list[Chart]:
    """Cost an hour against users within the objective; nothing without options."""
    if not placement.front:
        return []
    best = placement.front
    colour, _, symbol = palette.style(0)
    data = [
        _options(
            "Pareto-optimal choices",
            best,
            mode="lines+markers",
            line={"color": colour, "width": 1.5, "shape": "hv"},
            marker={"color": colour, "symbol": symbol, "size": 9},
        )
    ]
    chosen = [choice for choice in best if choice.chosen]
    if chosen:
        star = {"symbol": "star", "size": 17, "color": palette.COLOURS[1]}
        data.append(_options(f"chosen: {wording.joined(chosen[0].sites)}", chosen, marker=star))
    ends = [choice.cost_usd_per_h for choice in best]
    layout = figures.layout(
        figures.axis_of(figures.Axis("cost per hour, $", "none"), ends),
        figures.axis_of(
            figures.Axis("users within the objective", "ratio"),
            [choice.within_ratio for choice in best],
        ),
        height=380,
    )

    def cells(choice: SiteChoice) -> str:
        return wording.joined(wording.clean(site) for site in choice.sites)

    choices = table(
        best,
        text("sites", cells),
        number("cost per hour", lambda row: tables.money(row.cost_usd_per_h)),
        number("within the objective", lambda row: wording.percent(row.within_ratio, 4)),
        number("mean response", lambda row: row.mean_ns, "ns"),
        text("", lambda row: "chosen" if row.chosen else ""),
    )
    chart = Chart(
        f"front-{position}",
        f"Cost and service level of site choices: {name}",
        {"data": data, "layout": layout},
        choices,
        "Each point is a Pareto-optimal choice of sites: no other choice is both cheaper "
        "and serves more users within the objective.",
    )
    return [chart]


def _options(name: str, options: Sequence[SiteChoice], **style: Any) -> dict[str, Any]:
    hover = [
        f"{wording.joined(choice.sites)}: {tables.money(choice.cost_usd_per_h)} per hour, "
        f"{wording.percent(choice.within_ratio, 4)} within the objective"
        for choice in options
    ]
    x, y = (
        [choice.cost_usd_per_h for choice in options],
        [choice.within_ratio for choice in options],
    )
    return figures.trace(name, x, y, hover, **style)


def surface(saving: Surface, name: str, position: int) -> Chart:
    """The saving over share and factor of fast instances, as contours."""
    known = [saved for row in saving.saving for saved in row if saved is not None]
    data = [
        {
            "type": "contour",
            "x": list(saving.x),
            "y": list(saving.p),
            "z": [list(row) for row in saving.saving],
            "colorscale": [
                [0.0, palette.translucent(palette.COLOURS[0], 0.05)],
                [1.0, palette.translucent(palette.COLOURS[0], 0.85)],
            ],
            "contours": {"coloring": "heatmap", "showlabels": True, "start": 0.1, "end": 0.9,
                         "size": 0.1, "labelfont": {"size": 11}, "labelformat": ".0%"},
            "zmin": min(0.0, *known),
            "zmax": max(known),
            "line": {"width": 1, "color": palette.NEUTRAL},
            "hovertemplate": "factor %{x:.3g}, share of fast instances %{y:.3g}: "
            "saving %{z:.1%}<extra></extra>",
            "colorbar": {"thickness": 12, "len": 0.8, "outlinewidth": 0, "tickformat": ".0%"},
        }
    ]  # fmt: skip
    layout = figures.layout(
        figures.axis_of(
            figures.Axis("speed of fast instances relative to slow ones", "none"), saving.x
        ),
        figures.axis_of(figures.Axis("share of fast instances", "ratio"), saving.p),
        height=420,
    )
    layout["xaxis"]["range"] = [min(saving.x), max(saving.x)]
    layout["yaxis"]["range"] = [min(saving.p), max(saving.p)]
    layout["showlegend"] = False
    columns = thin(range(len(saving.x)), 6)
    listing = table(
        zip(saving.p, saving.saving, strict=True),
        text("share of fast", lambda row: units.format_value(row[0], "ratio")),
        *spread(
            (f"{saving.x[i]:.3g} times" for i in columns),
            lambda row: [_saving(row[1][i]) for i in columns],
        ),
    )
    return Chart(
        f"surface-{position}",
        f"Savings from instance selection: {name}",
        {"data": data, "layout": layout},
        listing,
        "Savings if only fast instances are kept, without the cost of the search; lines "
        "join equal savings.",
    )


def _saving(ratio: float | None) -> str:
    """Without the last digits of a difference that is nothing."""
    return "–" if ratio is None else wording.percent(round(ratio, 9), 3)
