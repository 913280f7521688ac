"""Schema of the verdicts on schedulers (analysis/scheduler/verdict.py)."""

from __future__ import annotations

from typing import Any

from nephoscope.results.schema_parts import (
    COUNT,
    TEXT,
    TEXTS,
    factors,
    full_estimate,
    list_of,
    object_of,
)
from nephoscope.scheduler.inference import Word


def schedulers() -> dict[str, Any]:
    """What takes the CPU away, for each target and condition."""
    ratio = {"type": "number", "minimum": 0}
    obtained = {
        "look": {"enum": ["one", "all", "several", "sleeping"]},
        "cpu": {"type": ["integer", "null"]},
        "processes": COUNT,
        "share": {"type": "array", "items": ratio},
        "total": full_estimate(),
    }
    found = list_of(
        {
            "target": TEXT,
            "conditions": {
                **factors(),
                "description": "Factor levels of the plan.",
            },
            "word": {"enum": [word.value for word in Word]},
            "sentence": TEXT,
            "per_cpu": list_of(obtained),
            "fit": object_of(dict.fromkeys(("share", "slice_ns", "period_ns"), full_estimate())),
            "evidence": TEXTS,
            "contradictions": {**TEXTS, "description": "Evidence against the classification."},
            "missing": {**TEXTS, "description": "Missing observations that would add evidence."},
            "next_step": TEXT,
        }
    )
    return {
        **found,
        "description": "Inferred scheduling policy of each observed target.",
    }
