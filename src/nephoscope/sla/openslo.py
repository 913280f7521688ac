"""OpenSLO v1 documents: an SLO to an agreement, an agreement to SLOs.

Specification: https://github.com/OpenSLO/OpenSLO (version openslo/v1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from nephoscope import units
from nephoscope.errors import PlanError, UsageError
from nephoscope.sla.terms import CALENDAR, VERSION, Agreement, Objective, nanoseconds

API = "openslo/v1"
_CALENDAR = {"1d": "day", "1w": "week", "1M": "month", "1Q": "quarter", "1Y": "year"}


def is_document(values: Mapping[str, Any]) -> bool:
    """Returns whether these values claim to be an OpenSLO document."""
    return str(values.get("apiVersion", "")).startswith("openslo/")


def agreement_values(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns the values of an agreement for those of an SLO document.

    Raises PlanError for another version or kind, and for what has no counterpart.
    """
    if values.get("apiVersion") != API or values.get("kind") != "SLO":
        version, kind = (str(values.get(key))[:40] for key in ("apiVersion", "kind"))
        raise PlanError(
            f"{name}: this is an OpenSLO document of version {version} and kind {kind}.",
            f"Only apiVersion {API} and kind SLO are judged.",
        )
    try:
        spec = values["spec"]
        metadata = values["metadata"]
        period, zone = _period(spec["timeWindow"][0], name)
        indicator = (spec.get("indicator") or {}).get("spec") or {}
        threshold = "thresholdMetric" in indicator
        objectives = [
            _objective(entry, str(spec["budgetingMethod"]), threshold, name)
            for entry in spec["objectives"]
        ]
        slug = re.sub(r"[^a-z0-9_-]+", "-", str(metadata["name"]).lower())[:40].strip("-_")
        return {
            "sla": VERSION,
            "name": slug or "slo",
            "title": str(metadata.get("displayName") or metadata["name"]),
            "source": name,
            "scope": str(spec.get("description") or ""),
            "period": period,
            "time_zone": zone,
            "objectives": objectives,
        }
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        what = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else "its form"
        raise PlanError(
            f"{name}: this is no complete OpenSLO SLO: {what}.",
            "It needs metadata.name, spec.timeWindow, spec.budgetingMethod and spec.objectives.",
        ) from error


def _period(window: Mapping[str, Any], name: str) -> tuple[str, str]:
    duration = str(window["duration"])
    if not window.get("isRolling", "calendar" not in window):
        zone = str((window.get("calendar") or {}).get("timeZone", "UTC"))
        if duration not in _CALENDAR:
            raise PlanError(
                f"{name}: a calendar window of {duration[:20]} cannot be judged.",
                f"Use one of {', '.join(_CALENDAR)}.",
            )
        return _CALENDAR[duration], zone
    if duration.endswith("w") and duration[:-1].isdecimal() and len(duration) <= 6:
        duration = f"{7 * int(duration[:-1])}d"
    return duration, "UTC"


def _objective(entry: Mapping[str, Any], method: str, threshold: bool, name: str) -> dict[str, Any]:
    if "target" in entry:
        target = Decimal(str(entry["target"]))
    else:
        target = Decimal(str(entry["targetPercent"])) / 100
    if method == "Timeslices":
        bad_from = 1 - Decimal(str(entry["timeSliceTarget"]))
        window = entry["timeSliceWindow"]
        # A number counts minutes, and OpenSLO's unit of them is 'm'.
        slot = f"{window}m" if isinstance(window, int | float) else str(window)
        return {
            "measure": "availability",
            "target": str(target),
            "slot": f"{slot[:-1]}min" if slot.endswith("m") else slot,
            "failed_above": str(bad_from),
        }
    if method != "Occurrences":
        raise PlanError(
            f"{name}: the budgeting method {method[:40]} cannot be judged.",
            "Use Occurrences or Timeslices.",
        )
    if threshold:
        if entry.get("op") not in ("lt", "lte"):
            raise PlanError(
                f"{name}: a threshold with the operator {entry.get('op')!r:.20} cannot be judged.",
                "Use lt or lte and a time in seconds.",
            )
        return {"measure": "response_time", "target": str(target), "under": float(entry["value"])}
    return {"measure": "loss", "at_most": str(1 - target), "basis": "census"}


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
    if objective.measure == "response_time":
        metric = {"thresholdMetric": _source("nephoscope_sla_response_time_seconds")}
    return {
        "apiVersion": API,
        "kind": "SLO",
        "metadata": {
            "name": f"{agreement.name}-{number}" if several else agreement.name,
            "displayName": agreement.title,
        },
        "spec": {
            "description": f"Source: {agreement.source}"[:1050],
            "service": agreement.name,
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
    if objective.measure == "availability" and objective.min_outage is None:
        share = Decimal(1)
        if objective.failed_above is not None:
            share = 1 - objective.failed_above
        elif objective.failed_at_least not in (None, Decimal(1)):
            raise UsageError("OpenSLO has no form for 'failed_at_least'.", "Use 'failed_above'.")
        else:
            # A slice is bad where every event failed: any share of good ones is enough.
            share = Decimal("1e-9")
        slot = units.written(nanoseconds(objective.slot), "ns").replace("min", "m")
        return "Timeslices", {
            "target": float(objective.target or 0),
            "timeSliceTarget": float(share),
            "timeSliceWindow": slot,
        }
    if objective.measure == "loss":
        return "Occurrences", {"target": float(1 - (objective.at_most or 0))}
    if objective.measure == "response_time" and objective.under is not None:
        return "Occurrences", {
            "target": float(objective.target or 0),
            "op": "lt",
            "value": objective.under,
        }
    what = "outages of a minimum length" if objective.min_outage else objective.measure
    raise UsageError(f"OpenSLO has no form for {what}.", "Leave this objective out.")


def _window(agreement: Agreement) -> dict[str, Any]:
    names = {name: duration for duration, name in _CALENDAR.items()}
    if agreement.period in CALENDAR:
        calendar = {"startTime": "2020-01-01 00:00:00", "timeZone": agreement.time_zone}
        return {"duration": names[agreement.period], "calendar": calendar, "isRolling": False}
    return {"duration": agreement.period, "isRolling": True}
