"""The schema of what neighbours take (results/isolation_records.py)."""

from __future__ import annotations

from typing import Any, get_args

from nephoscope.analysis.attribution import Word as Attributed
from nephoscope.analysis.verdicts import Word
from nephoscope.isolation.dose_response import WORDS
from nephoscope.isolation.records import PAIRINGS
from nephoscope.isolation.recovery import DRIFT_WORDS, RECOVERY_WORDS
from nephoscope.results.schema_parts import (
    COUNT,
    NUMBER_OR_NULL,
    TEXT,
    TEXTS,
    factors,
    full_estimate,
    list_of,
    nullable,
    object_of,
)


def isolation() -> dict[str, Any]:
    """The object of a result, or null."""
    found = object_of(
        {
            "cells": list_of(_cell()),
            "dose_responses": list_of(_response()),
            "indices": list_of(_index()),
            "a_a": nullable(object_of(_control())),
            "drifts": list_of(_drift()),
            "named": {"type": "array", "items": {"type": "object"}},
            "notes": {**TEXTS, "description": "What was not given, and why."},
        }
    )
    return {**nullable(found), "description": "null: the plan sets no loads beside victims."}


def _victim() -> dict[str, Any]:
    return {"benchmark": TEXT, "metric": TEXT, "target": TEXT, "factors": factors()}


def _cell() -> dict[str, Any]:
    worse = "Interference factor; above 1 is worse for every metric."
    round_ = {
        "round": COUNT,
        "quiet": {"type": "number", "description": "What the loaded trial was held against."},
        "before": NUMBER_OR_NULL,
        "during": {"type": "number"},
        "after": NUMBER_OR_NULL,
    }
    back = {
        "word": {"enum": list(RECOVERY_WORDS)},
        "sentence": TEXT,
        "ratio": full_estimate("Quiet after over quiet before; above 1 is worse."),
    }
    blamed = {
        "word": {"enum": [word.value for word in Attributed]},
        "sentence": TEXT,
        "evidence": TEXTS,
    }
    return {
        **_victim(),
        "resource": TEXT,
        "intensity": {"type": "number", "description": "Asked, 0 to 1."},
        "neighbours": COUNT,
        "n": {**COUNT, "description": "Rounds."},
        "pairing": {"enum": list(PAIRINGS)},
        "factor": full_estimate(worse),
        "factor_mean": full_estimate("Of means (Fieller)."),
        "factor_p99": full_estimate("Of the 99th percentiles of merged histograms."),
        "p99_metric": {**TEXT, "description": "The metric whose histograms these are."},
        "variation_cv": full_estimate("Loaded over quiet, of coefficients of variation."),
        "variation_robust": full_estimate("The same of robust ones."),
        "recovery": object_of(back),
        "achieved_intensity": full_estimate("What the load reached of full load."),
        "attribution": nullable(object_of(blamed)),
        "p": NUMBER_OR_NULL,
        "p_holm": {**NUMBER_OR_NULL, "description": "Corrected over all cells."},
        "verdict": object_of({"word": {"enum": list(get_args(Word))}, "sentence": TEXT}),
        "rounds": list_of(round_),
        "rounds_left_out": COUNT,
        "warnings": TEXTS,
        "notes": TEXTS,
    }


def _response() -> dict[str, Any]:
    point = {
        "asked": {"type": "number"},
        "achieved": full_estimate(),
        "factor": full_estimate(),
    }
    return {
        **_victim(),
        "resource": TEXT,
        "neighbours": COUNT,
        "word": {"enum": list(WORDS)},
        "sentence": TEXT,
        "slope": full_estimate("Change of the factor for a full load."),
        "slope_by": {"enum": ["achieved", "asked"]},
        "p": {**NUMBER_OR_NULL, "description": "Page's test, two-sided."},
        "page_l": NUMBER_OR_NULL,
        "i_qos": full_estimate("Krebs' metric; 0 is isolated."),
        "points": list_of(point),
    }


def _index() -> dict[str, Any]:
    return {
        **_victim(),
        "resource": TEXT,
        "neighbours": COUNT,
        "index": full_estimate("1: nothing is taken; 0: as much as fair sharing would take."),
        "jain": full_estimate("Fairness between the victim and its neighbours."),
        "own": {"type": "boolean", "description": "The victim is the resource's own."},
        "chosen": {"type": "boolean", "description": "It stands for the resource."},
    }


def _control() -> dict[str, Any]:
    return {
        "cells": {**COUNT, "description": "Cells of an idle neighbour with an interval."},
        "outside": {**COUNT, "description": "Those whose interval excludes 1."},
        "share": full_estimate("Wilson's interval."),
        "sentence": TEXT,
    }


def _drift() -> dict[str, Any]:
    return {
        **_victim(),
        "word": {"enum": list(DRIFT_WORDS)},
        "ratio": full_estimate("Quiet at the end of the run over its beginning; above 1 worse."),
        "p": NUMBER_OR_NULL,
    }
