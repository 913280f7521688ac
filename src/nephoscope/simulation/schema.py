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
        "description": "Estimates over replications, by metric.",
        "additionalProperties": full_estimate(),
    }


def _where() -> dict[str, Any]:
    named = {**TEXT, "description": "Name from the scenario; empty if it has none."}
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
            "description": "Active users of a user base, daily mean.",
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
        "objective_ns": {**NUMBER_OR_NULL, "description": "Response-time objective."},
        "compat": {
            **TEXT_OR_NULL,
            "description": "Tool whose known errors are reproduced; null: none.",
        },
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
        "within_ratio": {
            **NUMBER_OR_NULL,
            "description": "Share within the objective with the chosen sites.",
        },
        "met": {
            "type": "boolean",
            "description": "True if the chosen sites still meet the objective.",
        },
        "best": {**TEXTS, "description": "Best choice under the changed assumption."},
        "best_cost_usd_per_h": NUMBER_OR_NULL,
        "same": {"type": "boolean", "description": "True if the best choice is unchanged."},
    }
    truth = {"type": ["boolean", "null"]}
    return {
        **_where(),
        "objective_ns": NUMBER_OR_NULL,
        "front": {
            **list_of(option),
            "description": "Pareto front of cost and share within the objective.",
        },
        "chosen": TEXTS,
        "met": {
            **truth,
            "description": "True if the chosen sites meet the objective by the formula.",
        },
        "confirmed": {**truth, "description": "True if they meet it in the simulation."},
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
        "notes": {**TEXTS, "description": "Unreadable documents, with reasons."},
    }
    return {**nullable(object_of(whole)), "description": "null: nothing was simulated."}
