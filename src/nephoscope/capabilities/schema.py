"""JSON Schemas of what `--json` prints; contracts/ holds them, tests hold the output to them."""

from __future__ import annotations

from typing import Any, get_args

from nephoscope.analysis.compare import Comparison
from nephoscope.analysis.verdicts import Word
from nephoscope.comparison.result import DESIGNS
from nephoscope.experiments import nested
from nephoscope.isolation.schema import isolation as _isolation
from nephoscope.model import Better, Severity, TrialStatus
from nephoscope.results.execution import PHASES
from nephoscope.results.schema_parts import COUNT as _COUNT
from nephoscope.results.schema_parts import NUMBER_OR_NULL as _NUMBER_OR_NULL
from nephoscope.results.schema_parts import RATIO as _RATIO
from nephoscope.results.schema_parts import TEXT as _TEXT
from nephoscope.results.schema_parts import TEXT_OR_NULL as _TEXT_OR_NULL
from nephoscope.results.schema_parts import TEXTS as _TEXTS
from nephoscope.results.schema_parts import estimate as _estimate
from nephoscope.results.schema_parts import factors as _factors
from nephoscope.results.schema_parts import full_estimate as _full_estimate
from nephoscope.results.schema_parts import list_of as _list_of
from nephoscope.results.schema_parts import nullable as _nullable
from nephoscope.results.schema_parts import object_of as _object
from nephoscope.scheduler.schema import schedulers as _schedulers
from nephoscope.simulation.schema import simulation as _simulation
from nephoscope.store import STATES

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def _counters() -> dict[str, Any]:
    line = {
        "target": _TEXT,
        "counter": {**_TEXT, "description": "Key in the counters of a trial."},
        "unit": _TEXT,
        "median": _NUMBER_OR_NULL,
        "most": _NUMBER_OR_NULL,
        "n": {**_COUNT, "description": "Number of trials that report it, out of `trials`."},
        "trials": _COUNT,
        "why_missing": _TEXT_OR_NULL,
    }
    return {**_list_of(line), "description": "System counters during trials."}


def _consistency() -> dict[str, Any]:
    return _object(
        {
            "robust_cv": {**_NUMBER_OR_NULL, "description": "1.4826 MAD / median; a ratio."},
            "low": _NUMBER_OR_NULL,
            "high": _NUMBER_OR_NULL,
            "cv": _NUMBER_OR_NULL,
            "quartile_dispersion": _NUMBER_OR_NULL,
            "word": {"enum": ["steady", "variable", "erratic", "unknown"]},
        }
    )


def _metric() -> dict[str, Any]:
    return _object(
        {
            "benchmark": _TEXT,
            "metric": _TEXT,
            "target": _TEXT,
            "factors": _factors(),
            "better": {"enum": [word.value for word in Better]},
            **_estimate(),
            "consistency": _consistency(),
            "headline": {"type": "boolean"},
            "warnings": _TEXTS,
        }
    )


def _finding() -> dict[str, Any]:
    return _object(
        {
            "id": _TEXT,
            "severity": {"enum": [word.value for word in Severity]},
            "sentence": _TEXT,
            "evidence": _TEXTS,
            "next_step": _TEXT,
        }
    )


def _invalid() -> dict[str, Any]:
    return _object(
        {
            "trial": _TEXT,
            "benchmark": _TEXT,
            "target": _TEXT,
            "factors": _factors(),
            "status": {"enum": [TrialStatus.INVALID.value, TrialStatus.FAILED.value]},
            "reasons": {**_TEXTS, "minItems": 1},
        }
    )


def _run() -> dict[str, Any]:
    return _object(
        {
            "id": _TEXT,
            "plan": _TEXT,
            "question": _TEXT,
            "seed": {"type": ["integer", "null"]},
            "state": {"enum": list(STATES)},
            "started_at": _TEXT_OR_NULL,
            "finished_at": _TEXT_OR_NULL,
            "nephoscope": _TEXT_OR_NULL,
            "probe": _TEXT_OR_NULL,
            "targets": _TEXTS,
            "store": _TEXT,
            "path": _TEXT,
            "report": _TEXT_OR_NULL,
            "rounds": _COUNT,
            "trials": _object(
                {"valid": _COUNT, "invalid": _COUNT, "failed": _COUNT, "warmup": _COUNT}
            ),
            "budget_s": _NUMBER_OR_NULL,
            "spent_s": _NUMBER_OR_NULL,
            "converged": {"type": "boolean"},
            "not_converged": _TEXTS,
            "confidence": _RATIO,
            "margin": {"type": "number"},
        }
    )


def _line() -> dict[str, Any]:
    return {"benchmark": _TEXT, "metric": _TEXT, "headline": {"type": "boolean"}, "target": _TEXT}


def _reported() -> dict[str, Any]:
    """What an experiment tells of a comparison."""
    return {
        "better": {"enum": [word.value for word in Better]},
        "margin": {"type": "number"},
        "n": {**_COUNT, "description": "Number of rounds present on both sides."},
        "ratio": _full_estimate(),
        "difference": _full_estimate(),
        "p": _NUMBER_OR_NULL,
        "p_holm": _NUMBER_OR_NULL,
        "verdict": _object({"word": {"enum": list(get_args(Word))}, "sentence": _TEXT}),
        "warnings": _TEXTS,
    }


def _against() -> dict[str, Any]:
    return {
        **_line(),
        "factors": _factors(),
        "baseline_target": _TEXT,
        "baseline_factors": _factors(),
        "interference": {
            **_full_estimate(),
            "description": "Slowdown relative to the baseline; above 1 is worse for every metric.",
        },
        **_reported(),
    }


def _experiment() -> dict[str, Any]:
    level = {"type": ["string", "number", "boolean", "null"]}
    design = {
        "entry": _COUNT,
        "benchmark": _TEXT,
        "kind": {"enum": ["full", "regular", "balanced", "partial"]},
        "levels": {"type": "object", "additionalProperties": {"type": "array", "items": level}},
        "settings": _COUNT,
        "resolution": {"type": ["integer", "null"]},
        "confounded": _TEXTS,
    }
    controls = {
        "cells": {
            **_COUNT,
            "description": "Number of comparisons between identical arms with an interval.",
        },
        "outside": {**_COUNT, "description": "Number of comparisons whose interval excludes 1."},
        "expected": {"type": "number", "description": "Number expected by chance."},
        "chance": {
            "type": "number",
            "description": "Probability of at least this number by chance.",
        },
        "sentence": _TEXT,
        "arms": _list_of(_against()),
    }
    effect = {
        **_line(),
        "fixed": _factors(),
        "factor": _TEXT,
        "level": level,
        "reference": level,
        "cells": {**_COUNT, "description": "Number of combinations on each side."},
        "rounds_left_out": _COUNT,
        **_reported(),
    }
    component = {
        "level": {"enum": list(nested.LEVELS)},
        "variance": {"type": "number", "minimum": 0},
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "mean_square": {"type": "number", "minimum": 0},
        "df": _COUNT,
        "negative": {
            "type": "boolean",
            "description": "True if the estimate was negative and set to 0.",
        },
    }
    components = {
        **_line(),
        "factors": _factors(),
        "mean": _full_estimate(),
        "components": _list_of(component),
    }
    found = _object(
        {
            "designs": _list_of(design),
            "comparisons": _list_of(_against()),
            "a_a": _nullable(_object(controls)),
            "effects": _list_of(effect),
            "components": _list_of(components),
            "notes": {**_TEXTS, "description": "Unavailable statistics, with reasons."},
        }
    )
    return {**_nullable(found), "description": "null: the plan has no design of an experiment."}


def _execution() -> dict[str, Any]:
    """How the run was executed (results/execution.py); null where nothing tells it."""
    phase = {
        "benchmark": _TEXT,
        "phase": {"enum": list(PHASES)},
        "n": _COUNT,
        "total_ns": _COUNT,
        "median_ns": {"type": "number"},
        "longest_ns": _COUNT,
        "failed": {**_COUNT, "description": "Number of trials that failed in this phase."},
    }
    skew = {
        "n": _COUNT,
        "median_ns": {"type": "number"},
        "largest_ns": _COUNT,
        "over": {
            **_COUNT,
            "description": "Number of synchronised starts with more than 1 ms of skew.",
        },
        "values_ns": {"type": "array", "items": _COUNT},
    }
    load = {
        "name": _TEXT,
        "benchmark": _TEXT,
        "target": _TEXT,
        "n": _COUNT,
        "died": {**_COUNT, "description": "Number of trials in which the load stopped early."},
        "covered_least": {
            **_NUMBER_OR_NULL,
            "description": "Minimum share of the measured time during which the load ran.",
        },
    }
    lost = {"target": _TEXT, "given_up": {"type": "boolean"}, "trials": _COUNT, "sentence": _TEXT}
    whole = {
        "phases": {"type": "array", "items": _object(phase)},
        "skew": {**_object(skew), "type": ["object", "null"]},
        "loads": {"type": "array", "items": _object(load)},
        "lost": {"type": "array", "items": _object(lost)},
        "tried_again": _COUNT,
        "warnings": _TEXTS,
    }
    return {**_object(whole), "type": ["object", "null"]}


def result_schema() -> dict[str, Any]:
    """Schema of what `survey`, `run`, `bench` and `show` print with --json."""
    return {
        "$schema": _DRAFT,
        "title": "Result of a Nephoscope run",
        **_object(
            {
                "run": _run(),
                "metrics": {"type": "array", "items": _metric()},
                "findings": {"type": "array", "items": _finding()},
                "invalid": {"type": "array", "items": _invalid()},
                "refused": {
                    **_TEXTS,
                    "description": "Unavailable statistics and their requirements.",
                },
                "execution": _execution(),
                "experiment": _experiment(),
                "isolation": _isolation(),
                "schedulers": _schedulers(),
                "simulation": _simulation(),
                "beside": _counters(),
            }
        ),
    }


def compare_schema() -> dict[str, Any]:
    """Schema of what `compare` prints with --json."""
    p_values = [
        name for name in Comparison.__dataclass_fields__ if name == "tost_p" or name[:2] == "p_"
    ]
    line = {
        "benchmark": {**_TEXT, "description": "Empty for plain numbers."},
        "metric": _TEXT,
        "factors": _factors(),
        "a": _TEXT,
        "b": _TEXT,
        "design": {"enum": list(DESIGNS)},
        "paired": {"type": "boolean"},
        "better": {"enum": [word.value for word in Better]},
        "margin": {"type": "number"},
        "n_a": _COUNT,
        "n_b": _COUNT,
        "ratio": {**_full_estimate(), "description": "B / A (Hodges-Lehmann on logarithms)."},
        "equivalence": {**_full_estimate(), "description": "Interval of the equivalence test."},
        "difference": {**_full_estimate(), "description": "B - A (Hodges-Lehmann shift)."},
        "ratio_of_means": {**_full_estimate(), "description": "Fieller."},
        "ratio_t": _full_estimate(),
        "ratio_of_medians": _NUMBER_OR_NULL,
        "cliffs_delta": _NUMBER_OR_NULL,
        "a12": _NUMBER_OR_NULL,
        "p": {**_NUMBER_OR_NULL, "description": "The p that belongs to the ratio's interval."},
        **dict.fromkeys(p_values, _NUMBER_OR_NULL),
        "verdict": _object({"word": {"enum": list(get_args(Word))}, "sentence": _TEXT}),
        "warnings": _TEXTS,
    }
    return {
        "$schema": _DRAFT,
        "title": "Comparison by Nephoscope",
        **_object({"comparisons": {"type": "array", "items": _object(line)}, "warnings": _TEXTS}),
    }


DRAFT, object_of, list_of, full_estimate = _DRAFT, _object, _list_of, _full_estimate
"""For the schemas of this room that stand in files of their own."""
