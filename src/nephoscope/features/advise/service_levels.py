"""Service levels to ask for: published limits of a kind of application, and declared ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from nephoscope.core import units
from nephoscope.core.reading import yamltext
from nephoscope.core.records import dataclass
from nephoscope.features.advise.answers import Application

FILE = "service_levels.yaml"
DECLARED = "your answers"

_UNITS: Mapping[str, str] = {
    "delay": "ns",
    "delay variation": "ns",
    "response time": "ns",
    "packet loss": "ratio",
    "bandwidth": "bits_per_s",
    "availability": "ratio",
}
_PARSE = {
    "ns": units.parse_duration_ns,
    "ratio": units.parse_ratio,
    "bits_per_s": units.parse_bits_per_s,
}
MINIMA = frozenset({"bandwidth", "availability"})
"""Quantities of which more is better."""


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """A limit of one quantity from one source.

    target: preferred. maximum: still acceptable (of bandwidth and availability both are minima);
    null where the source has one value. reference: title and address of the source. strictest:
    your own answer, else the strictest of the same quantity and note.
    """

    quantity: str
    target: float
    maximum: float | None
    unit: str
    source: str
    reference: str = ""
    statistic: str = ""
    note: str = ""
    strictest: bool = False


@cache
def _document() -> Mapping[str, Any]:
    text = resources.files("nephoscope.features.advise").joinpath(FILE).read_text(encoding="utf-8")
    document: Mapping[str, Any] = yamltext.parse(text, FILE)
    return document


def _published(row: Mapping[str, Any]) -> ServiceLevel:
    unit = _UNITS[row["quantity"]]
    source = _document()["sources"][row["source"]]
    maximum = row.get("maximum")
    return ServiceLevel(
        row["quantity"],
        float(_PARSE[unit](row["target"])),
        None if maximum is None else float(_PARSE[unit](maximum)),
        unit,
        source["name"],
        f"{source['title']} {source['url']}".strip(),
        row.get("statistic", ""),
        row.get("note", ""),
    )


def declared(application: Application) -> list[ServiceLevel]:
    """Returns the limits that follow from the answers."""
    rate = None
    if application.data is not None and application.turnaround is not None:
        rate = 8 * application.data / application.turnaround
    return [
        ServiceLevel(quantity, factor * value, None, _UNITS[quantity], DECLARED, note=note)
        for quantity, value, factor, note in (
            ("response time", application.response, 1e9, ""),
            ("delay variation", application.jitter, 1e9, ""),
            ("bandwidth", rate, 1, "to upload the data in time"),
            ("availability", application.availability, 1, ""),
        )
        if value is not None
    ]


def to_ask_for(application: Application) -> tuple[ServiceLevel, ...]:
    """Returns all limits that concern an application, the strictest of each quantity marked."""
    levels = declared(application)
    if application.kind is not None:
        levels += map(_published, _document()["kinds"][application.kind]["levels"])
    return tuple(_marked(levels))


def _marked(levels: Sequence[ServiceLevel]) -> Iterable[ServiceLevel]:
    """Yields the limits with `strictest` set: the declared one, else the strictest published."""
    for level in levels:
        rivals = [rival for rival in levels if rival.quantity == level.quantity]
        own = [rival for rival in rivals if rival.source == DECLARED]
        own = own or [rival for rival in rivals if rival.note == level.note]
        best = max if level.quantity in MINIMA else min
        limit = best(rival.target for rival in own)
        yield replace(level, strictest=level in own and level.target == limit)
