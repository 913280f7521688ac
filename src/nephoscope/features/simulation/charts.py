"""The figures of simulated deployments: the map, curves by hour, response times by region."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.catalog import instruments
from nephoscope.core import units
from nephoscope.core.model import RunResult
from nephoscope.features.simulation import tables
from nephoscope.features.simulation import world_map as world
from nephoscope.features.simulation.records import CACHE, USER_BASE, Deployment, HourCurve, Place
from nephoscope.report import charts, figures, selection, wording
from nephoscope.report.blocks import Chart, Spark, Table
from nephoscope.report.columns import estimate, number, table, text

MAX_CURVES = selection.MAX_CURVES
_RESPONSE = "response_time_ns"


def world_map(deployment: Deployment, name: str, number: int) -> list[Chart]:
    """Users coloured by their mean response time, and the sites; nothing without coordinates."""
    known = [place for place in deployment.places if place.latitude is not None]
    bases = [place for place in known if place.kind == USER_BASE]
    if not bases:
        return []
    at = world.apart({place.name: _position(place) for place in bases})
    dots = [
        world.Dot(
            place.name,
            *at[place.name],
            place.users,
            _mean_of(deployment, place),
            _place_text(deployment, place),
        )
        for place in bases
    ]
    marks = []
    for place in (place for place in known if place.kind != USER_BASE):
        hover = f"{place.kind} {place.name}" + (f", {place.region}" if place.region else "")
        minor = place.kind == CACHE
        label = "" if minor else wording.clean(place.name)
        marks.append(world.MapMarker(label, *_position(place), hover, minor))
    colour_note = ""
    if deployment.objective_ns is not None:
        colour_note = f" The palest colour is the objective of {_time(deployment)}."
    left_out = len(deployment.places) - len(known)
    if left_out:
        colour_note += f" {wording.plural(left_out, 'location')} without coordinates: table only."
    chart = Chart(
        f"map-{number}",
        f"Users and sites: {name}",
        world.figure(dots, marks, middle=deployment.objective_ns),
        _places_table(deployment),
        "Circle area shows the number of users, colour their mean response time. Diamonds "
        f"are sites.{colour_note}",
    )
    return [chart]


def _position(place: Place) -> tuple[float, float]:
    return place.latitude or 0.0, place.longitude or 0.0


def _time(deployment: Deployment) -> str:
    return units.format_value(deployment.objective_ns or 0.0, "ns")


def _mean_of(deployment: Deployment, place: Place) -> float | None:
    """Of the user base itself, else of its region."""
    for shares, name in ((deployment.user_bases, place.name), (deployment.regions, place.region)):
        for share in shares:
            if share.name == name and tables.MEAN in share.figures:
                return share.figures[tables.MEAN].value
    return None


def _place_text(deployment: Deployment, place: Place) -> str:
    mean = _mean_of(deployment, place)
    users = "" if place.users is None else f", {place.users:,.0f} users"
    waits = "no answer" if mean is None else f"mean {units.format_value(mean, 'ns')}"
    return f"{place.name}{users}: {waits}"


def _places_table(deployment: Deployment) -> Table:
    def where(place: Place) -> str:
        if place.latitude is None:
            return "not known"
        return f"{_degrees(place.latitude, 'NS')} {_degrees(place.longitude or 0.0, 'EW')}"

    def mean(place: Place) -> float | str | None:
        return _mean_of(deployment, place) if place.kind == USER_BASE else ""

    return table(
        deployment.places,
        text("location", lambda place: place.name),
        text("kind", lambda place: "users" if place.kind == USER_BASE else place.kind),
        text("region", lambda place: place.region),
        number("users", lambda place: None if place.users is None else f"{place.users:,.0f}"),
        number("mean response", mean, "ns"),
        number("where", where, roomy=True),
    )


def _degrees(value: float, letters: str) -> str:
    return f"{abs(value):.1f}° {letters[value < 0]}"


HOURLY = {
    tables.REQUESTS: ("Requests by hour", "requests in the hour", "count"),
    tables.MEAN: ("Response time by hour", "mean response time", "ns"),
    "instances": ("Instances by hour", "instances, mean of the hour", "count"),
    "utilisation_ratio": ("Utilisation by hour", "utilisation", "ratio"),
}
"""Metrics by hour that have a figure: title, axis, unit."""


def hourly(deployment: Deployment, name: str, number: int) -> list[Chart]:
    """A figure for each metric that is known by the hour."""
    out = []
    for metric, (title, axis, unit) in HOURLY.items():
        own = [
            curve for curve in deployment.curves if curve.metric == metric and len(curve.hours) > 1
        ]
        # What never changes, such as instances without scaling, is no curve.
        if any(len({estimate.value for estimate in curve.estimates}) > 1 for curve in own):
            id = f"hourly-{wording.slug(metric)}-{number}"
            out.append(_hourly(own, f"{title}: {name}", axis, unit, id))
    return out


def _hourly(own: Sequence[HourCurve], title: str, axis: str, unit: str, id: str) -> Chart:
    drawn = sorted(own, key=lambda result: -max(e.value for e in result.estimates))[:MAX_CURVES]
    drawn = [result for result in own if result in drawn]
    curves, rows, sparks = [], [], []
    for result in drawn:
        label = wording.clean(result.of) or "all users"
        hover = [
            f"{label}, {hour:02d} to {hour + 1:02d} h: {wording.estimate_text(estimate)}"
            for hour, estimate in zip(result.hours, result.estimates, strict=True)
        ]
        middles = [hour + 0.5 for hour in result.hours]
        curves.append(figures.curve_of(label, middles, result.estimates, hover))
        rows += [
            (label, hour, estimate)
            for hour, estimate in zip(result.hours, result.estimates, strict=True)
        ]
        ends = (f"{result.hours[0]:02d} h", f"{result.hours[-1] + 1:02d} h")
        sparks.append(Spark(label, curves[-1].y, *ends))
    figure = figures.lines(
        curves,
        figures.Axis("hour of the day, UTC", "none"),
        figures.Axis(axis, unit, from_zero=True),
        bands=True,
        height=340,
    )
    last = max(hour for result in drawn for hour in result.hours) + 1
    ticks = list(range(0, last + 1, 3 if last <= 24 else 12))
    figure["layout"]["xaxis"] |= {
        "tickvals": ticks,
        "ticktext": [f"{tick:02d}" for tick in ticks],
        "range": [0, last],
    }
    figure["layout"]["showlegend"] = True
    more = f" Shows the {len(drawn)} largest of {len(own)}." if len(drawn) < len(own) else ""
    return Chart(
        id,
        title,
        figure,
        table(
            rows,
            text("curve", lambda row: row[0]),
            text("hour", lambda row: f"{row[1]:02d} h"),
            *estimate("value", lambda row: row[2]),
        ),
        f"One point per hour; bands show intervals over replications.{more}",
        sparks=tuple(sparks),
    )


def distribution(result: RunResult, deployment: Deployment, name: str, number: int) -> list[Chart]:
    """The CDF of response times by region, with the objective as an upright line."""
    every = tables.keys_of(result, instruments.SIM_GEO, deployment, ("region",), _RESPONSE)
    keys = [key for key in every if "region" in selection.key_factors(key)] or every
    drawn = charts.cdf(
        result,
        keys,
        id=f"response-{number}",
        title=f"Response times by region: {name}",
        axis="response time",
        unit="ns",
        caption="Cumulative distribution of response times"
        + ("." if deployment.objective_ns is None else "; the vertical line marks the objective."),
        reach=() if deployment.objective_ns is None else (deployment.objective_ns,),
    )
    if drawn and deployment.objective_ns is not None:
        label = f"objective {_time(deployment)}"
        layout = drawn[0].figure["layout"]
        figures.vertical(layout, deployment.objective_ns, label, log=True)
        # The label stands between the legend and the plot, wherever the objective lies.
        layout["legend"] |= {"y": 1.08}
        layout["margin"] |= {"t": 56}
        # Below, a line of the grid at the same place would hide it.
        layout["shapes"][-1] |= {"layer": "above"}
        layout["shapes"][-1]["line"] |= {"width": 2}
    return drawn
