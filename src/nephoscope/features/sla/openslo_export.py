"""Agreements as OpenSLO v1 documents."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.features.sla.openslo import API, CALENDAR_UNITS
from nephoscope.features.sla.openslo_records import MEASURE, UNIT
from nephoscope.features.sla.terms import TIMED, Agreement, Objective, calendar_unit, nanoseconds

_FIRST_PERIOD = "2018-01-01 00:00:00"
"""A Monday on which a month, a quarter and a year begin, so that every calendar does."""


def documents_of(agreement: Agreement) -> list[dict[str, Any]]:
    """Returns one SLO document for each objective.

    Raises UsageError for an objective that OpenSLO has no form for.
    """
    return [
        _document(agreement, objective, number)
        for number, objective in enumerate(agreement.objectives, start=1)
    ]


def _document(agreement: Agreement, objective: Objective, number: int) -> dict[str, Any]:
    several = len(agreement.objectives) > 1
    method, entry = _entry(objective)
    metric: dict[str, Any] = {"ratioMetric": _RATIO}
    unit: dict[str, Any] = {}
    if objective.measure in TIMED:
        metric = {"thresholdMetric": _source(f"nephoscope_sla_{objective.measure}_seconds")}
        unit = {"annotations": {UNIT: "s"}}
    if objective.measure == "scaling_time":
        unit["annotations"][MEASURE] = objective.measure
    return {
        "apiVersion": API,
        "kind": "SLO",
        "metadata": {
            "name": f"{agreement.name}-{number}" if several else agreement.name,
            "displayName": agreement.title,
            **unit,
        },
        "spec": {
            "description": f"Source: {agreement.source}"[:1050],
            "service": agreement.service or agreement.name,
            "indicator": {"metadata": {"name": f"{agreement.name}-{number}"}, "spec": metric},
            "timeWindow": [_window(agreement)],
            "budgetingMethod": method,
            "objectives": [entry],
        },
    }


def _source(query: str) -> dict[str, Any]:
    return {"metricSource": {"type": "Prometheus", "spec": {"query": query}}}


_RATIO = {
    "counter": True,
    "bad": _source("nephoscope_sla_failed_total"),
    "total": _source("nephoscope_sla_events_total"),
}


def _entry(objective: Objective) -> tuple[str, dict[str, Any]]:
    """Budgeting method and objective."""
    is_timed = objective.under is not None or objective.within is not None
    if objective.measure == "availability" and objective.min_outage is None and not is_timed:
        share = Decimal(1)
        if objective.failed_above is not None:
            share = 1 - objective.failed_above
        elif objective.failed_at_least not in (None, Decimal(1)):
            raise UsageError("OpenSLO has no form for 'failed_at_least'.", "Use 'failed_above'.")
        else:
            # A slice is bad where every event failed: any share of good ones is enough.
            share = Decimal("1e-9")
        return "Timeslices", {
            "target": float(objective.target or 0),
            "timeSliceTarget": float(share),
            "timeSliceWindow": _duration(nanoseconds(objective.slot)),
        }
    if objective.measure == "loss":
        return "Occurrences", {"target": float(1 - (objective.at_most or 0))}
    if objective.measure in TIMED and is_timed:
        return "Occurrences", {
            "target": float(objective.target or 0),
            "op": "lt" if objective.within is None else "lte",
            "value": objective.under if objective.within is None else objective.within,
        }
    what: str = objective.measure
    if objective.min_outage:
        what = "outages of a minimum length"
    elif is_timed:
        what = "availability with a limit of the response time"
    raise UsageError(f"OpenSLO has no form for {what}.", "Leave this objective out.")


def _duration(length_ns: float) -> str:
    """Returns a length in the largest unit of OpenSLO of which it is a whole number."""
    for unit, seconds in (("d", 86_400), ("h", 3600), ("m", 60)):
        if length_ns % (seconds * 10**9) == 0:
            return f"{round(length_ns / (seconds * 10**9))}{unit}"
    raise UsageError(
        f"OpenSLO has no form for {units.written(length_ns, 'ns')}.", "Use whole minutes."
    )


def _window(agreement: Agreement) -> dict[str, Any]:
    letters = {name: letter for letter, name in CALENDAR_UNITS.items()}
    unit = calendar_unit(agreement.period)
    if unit is None:
        duration = _duration(units.parse_duration_ns(agreement.period))
        if agreement.first_period is None:
            return {"duration": duration, "isRolling": True}
    else:
        duration = f"{unit[0]}{letters[unit[1]]}"
    start = (agreement.first_period or _FIRST_PERIOD).replace("T", " ")
    calendar = {"startTime": start, "timeZone": agreement.time_zone}
    return {"duration": duration, "calendar": calendar, "isRolling": False}
