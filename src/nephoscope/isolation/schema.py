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
            "notes": {**TEXTS, "description": "Unavailable statistics, with reasons."},
        }
    )
    return {**nullable(found), "description": "null: the plan sets no loads beside victims."}


def _victim() -> dict[str, Any]:
    return {"benchmark": TEXT, "metric": TEXT, "target": TEXT, "factors": factors()}


def _cell() -> dict[str, Any]:
    worse = "Interference factor; above 1 is worse for every metric."
    round_ = {
        "round": COUNT,
        "quiet": {"type": "number", "description": "Reference of the loaded trial."},
        "before": NUMBER_OR_NULL,
        "during": {"type": "number"},
        "after": NUMBER_OR_NULL,
    }
    back = {
        "word": {"enum": list(RECOVERY_WORDS)},
        "sentence": TEXT,
        "ratio": full_estimate(
            "Baseline after the load over baseline before it; above 1 is worse."
        ),
    }
    blamed = {
        "word": {"enum": [word.value for word in Attributed]},
        "sentence": TEXT,
        "evidence": TEXTS,
    }
    return {
        **_victim(),
        "resource": TEXT,
        "intensity": {"type": "number", "description": "Requested intensity, 0 to 1."},
        "neighbours": COUNT,
        "n": {**COUNT, "description": "Rounds."},
        "pairing": {"enum": list(PAIRINGS)},
        "factor": full_estimate(worse),
        "factor_mean": full_estimate("Ratio of means (Fieller)."),
        "factor_p99": full_estimate("Ratio of 99th percentiles of merged histograms."),
        "p99_metric": {**TEXT, "description": "Metric of these histograms."},
        "variation_cv": full_estimate("Ratio of coefficients of variation, loaded over baseline."),
        "variation_robust": full_estimate("Ratio of robust coefficients of variation."),
        "recovery": object_of(back),
        "achieved_intensity": full_estimate("Achieved load as a fraction of full load."),
        "attribution": nullable(object_of(blamed)),
        "p": NUMBER_OR_NULL,
        "p_holm": {**NUMBER_OR_NULL, "description": "p-value adjusted over all cells (Holm)."},
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
        "slope": full_estimate("Change of the factor from no load to full load."),
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
        "index": full_estimate("1: no slowdown; 0: the slowdown of fair sharing."),
        "jain": full_estimate("Fairness between the victim and its neighbours."),
        "own": {
            "type": "boolean",
            "description": "True if the victim measures the loaded resource.",
        },
        "chosen": {"type": "boolean", "description": "True if this row represents the resource."},
    }


def _control() -> dict[str, Any]:
    return {
        "cells": {**COUNT, "description": "Number of idle-neighbour cells with an interval."},
        "outside": {**COUNT, "description": "Number of cells whose interval excludes 1."},
        "share": full_estimate("Share with Wilson interval."),
        "sentence": TEXT,
    }


def _drift() -> dict[str, Any]:
    return {
        **_victim(),
        "word": {"enum": list(DRIFT_WORDS)},
        "ratio": full_estimate(
            "Baseline at the end of the run over its beginning; above 1 is worse."
        ),
        "p": NUMBER_OR_NULL,
    }
