"""Schema of what was simulated (results/simulation_records.py)."""

from __future__ import annotations

from typing import Any

from nephoscope.results.schema_parts import (
    COUNT,
    NUMBER_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    factors,
    full_estimate,
    list_of,
    nullable,
    object_of,
)

_NUMBER = {"type": "number"}
_NUMBERS = {"type": "array", "items": _NUMBER}


def _figures() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "Metric to its estimate over replications.",
        "additionalProperties": full_estimate(),
    }


def _where() -> dict[str, Any]:
    named = {**TEXT, "description": "The name that it gives itself; empty where it gives none."}
    return {"target": TEXT, "scenario": named, "conditions": factors()}


def _shares() -> dict[str, Any]:
    return list_of({"name": TEXT, "figures": _figures()})


def _deployment() -> dict[str, Any]:
    place = {
        "name": TEXT,
        "kind": {"enum": ["user_base", "site", "cache"]},
        "region": TEXT,
        "latitude": NUMBER_OR_NULL,
        "longitude": NUMBER_OR_NULL,
        "users": {
            **NUMBER_OR_NULL,
            "description": "Of a user base: at work, mean of the day.",
        },
    }
    curve = {
        "metric": TEXT,
        "kind": {"enum": ["", "region", "user_base", "site"]},
        "of": TEXT,
        "hours": {"type": "array", "items": COUNT, "description": "Hours of the day, UTC."},
        "estimates": {"type": "array", "items": full_estimate()},
    }
    return {
        **_where(),
        "objective_ns": {**NUMBER_OR_NULL, "description": "The time that users accept."},
        "compat": {**TEXT_OR_NULL, "description": "Whose quirks are kept; null: nobody's."},
        "places": list_of(place),
        "overall": object_of({"name": TEXT, "figures": _figures()}),
        "regions": _shares(),
        "user_bases": _shares(),
        "sites": _shares(),
        "curves": list_of(curve),
        "costs": list_of({"site": TEXT, "part": TEXT, "cost_usd": full_estimate()}),
    }


def _placement() -> dict[str, Any]:
    option = {
        "sites": TEXTS,
        "cost_usd_per_h": _NUMBER,
        "within_ratio": _NUMBER,
        "response_time_mean_ns": NUMBER_OR_NULL,
        "chosen": {"type": "boolean"},
    }
    moved = {
        "latency_factor": _NUMBER,
        "growth_factor": _NUMBER,
        "within_ratio": {**NUMBER_OR_NULL, "description": "Of the chosen sites then."},
        "met": {"type": "boolean", "description": "They still do what was asked for."},
        "best": {**TEXTS, "description": "What would be chosen then."},
        "best_cost_usd_per_h": NUMBER_OR_NULL,
        "same": {"type": "boolean", "description": "That is what was chosen."},
    }
    truth = {"type": ["boolean", "null"]}
    return {
        **_where(),
        "objective_ns": NUMBER_OR_NULL,
        "front": {**list_of(option), "description": "Cost against users within the objective."},
        "chosen": TEXTS,
        "met": {**truth, "description": "They do what was asked for, by formula."},
        "confirmed": {**truth, "description": "They did so in the simulation."},
        "figures": _figures(),
        "sensitivity": list_of(moved),
    }


def simulation() -> dict[str, Any]:
    """What was simulated; null where nothing was."""
    guest = {"vm": TEXT, "vcpu": {"type": ["integer", "null"]}, "figures": _figures()}
    surface = {
        "share_of_fast": _NUMBERS,
        "factor": _NUMBERS,
        "saving_ratio": {"type": "array", "items": {"type": "array", "items": NUMBER_OR_NULL}},
    }
    selection = {**_where(), "figures": _figures(), "surface": nullable(object_of(surface))}
    whole = {
        "deployments": list_of(_deployment()),
        "placements": list_of(_placement()),
        "schedulers": list_of({**_where(), "guests": list_of(guest)}),
        "selections": list_of(selection),
        "notes": {**TEXTS, "description": "What could not be read, and why."},
    }
    return {**nullable(object_of(whole)), "description": "null: nothing was simulated."}
