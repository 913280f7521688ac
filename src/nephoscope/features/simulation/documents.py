"""The documents that simulations leave in their trials, read with care: a wrong one is a note.

locations    {"objective_ms": …, "compat": …, "user_bases": [{name, region, latitude, longitude,
             users}], "sites": [{name, region, latitude, longitude}], "caches": [as sites]}
front        [{sites, cost_usd_per_h, within_ratio, response_time_mean_ns}]
chosen       {sites, met, confirmed, tried}
sensitivity  [{latency_factor, growth_factor, chosen: {within_ratio}, met, best: {sites,
             cost_usd_per_h}, same}]
timeline     {"vcpus": [{vm, vcpu, intervals: [[start_ns, end_ns, processor], …]}]}
surface      {"share_of_fast": [p], "factor": [x], "saving_ratio": [[…]]}, a row for each p
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from nephoscope.core.naming import as_number
from nephoscope.features.simulation.records import (
    CACHE,
    SITE,
    USER_BASE,
    Place,
    Sensitivity,
    SiteChoice,
    Surface,
    Track,
)

Content = TypeVar("Content")


EARLIER_NAMES = {"locations": "places"}
"""Names that documents have in runs of earlier versions."""


def find(documents: Mapping[str, Any], name: str) -> Any:
    """Returns a document by its name or by its earlier name; None where it is missing."""
    return documents.get(name, documents.get(EARLIER_NAMES.get(name, "")))


def read(
    documents: Mapping[str, Any], name: str, reader: Callable[[Any], Content], notes: list[str]
) -> Content | None:
    """Returns what a document says; None where it is missing, or is none of its kind (noted)."""
    document = find(documents, name)
    if document is None:
        return None
    try:
        return reader(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        notes.append(f"The document '{name}' cannot be read ({type(error).__name__}: {error}).")
        return None


def places(document: Any) -> tuple[Place, ...]:
    """User bases, then sites, then caches."""
    out = []
    for kind, names in ((USER_BASE, "user_bases"), (SITE, "sites"), (CACHE, "caches")):
        for place in document.get(names) or ():
            latitude, longitude = _number(place["latitude"]), _number(place["longitude"])
            if latitude is not None and not -90 <= latitude <= 90:
                raise ValueError(f"{place['name']}: latitude {latitude:g}")
            known = latitude is not None and longitude is not None
            out.append(
                Place(
                    str(place["name"]),
                    kind,
                    "" if place.get("region") is None else str(place["region"]),
                    latitude if known else None,
                    (longitude + 180) % 360 - 180 if known and longitude is not None else None,
                    _number(place.get("users")),
                )
            )
    return tuple(out)


def chosen(document: Any) -> tuple[tuple[str, ...], bool | None, bool | None]:
    """Names of the chosen sites; whether they meet the demand in closed form, and simulated."""
    flags = (document.get(name) for name in ("met", "confirmed"))
    met, confirmed = (value if isinstance(value, bool) else None for value in flags)
    return _names(document["sites"]), met, confirmed


def front(document: Any, chosen_sites: tuple[str, ...]) -> tuple[SiteChoice, ...]:
    """Choices of sites, cheapest first. chosen_sites: those of the one that answers."""
    options = [
        SiteChoice(
            _names(site["sites"]),
            float(site["cost_usd_per_h"]),
            float(site["within_ratio"]),
            _number(site.get("response_time_mean_ns")),
            bool(chosen_sites) and sorted(_names(site["sites"])) == sorted(chosen_sites),
        )
        for site in document
    ]
    return tuple(sorted(options, key=lambda choice: (choice.cost_usd_per_h, choice.within_ratio)))


def sensitivity(document: Any) -> tuple[Sensitivity, ...]:
    """Returns what becomes of the choice if latency or growth are other than assumed."""
    return tuple(
        Sensitivity(
            float(change["latency_factor"]),
            float(change["growth_factor"]),
            _number(change["chosen"].get("within_ratio")),
            bool(change["met"]),
            _names(change["best"]["sites"]),
            _number(change["best"].get("cost_usd_per_h")),
            bool(change["same"]),
        )
        for change in document
    )


def tracks(document: Any) -> tuple[float, tuple[Track, ...]]:
    """Until when it is told which virtual CPU ran, and when each did, in nanoseconds."""
    result = tuple(
        Track(str(vcpu["vm"]), int(vcpu["vcpu"]), _spans(vcpu["intervals"]))
        for vcpu in document["vcpus"]
    )
    last = max((track.runs[-1][1] for track in result if track.runs), default=0.0)
    return last, result


def _spans(runs: Any) -> tuple[tuple[float, float], ...]:
    """Ascending; two on different processors that touch are one."""
    spans: list[tuple[float, float]] = []
    for start, end in sorted((float(run[0]), float(run[1])) for run in runs):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return tuple(spans)


def surface(document: Any) -> Surface:
    """The saving over share and factor of fast instances."""
    p = tuple(float(share) for share in document["share_of_fast"])
    x = tuple(float(factor) for factor in document["factor"])
    rows = tuple(tuple(_number(cell) for cell in row) for row in document["saving_ratio"])
    if len(rows) != len(p) or any(len(row) != len(x) for row in rows):
        raise ValueError(f"{len(p)} by {len(x)} axes, but {len(rows)} rows")
    return Surface(p, x, rows)


def _names(value: Any) -> tuple[str, ...]:
    return tuple(str(text) for text in value)


def _number(value: Any) -> float | None:
    number = as_number(value)
    return number if number is not None and math.isfinite(number) else None
