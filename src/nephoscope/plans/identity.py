"""When two plans are the same: the rule by which a repeated command resumes its run."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from nephoscope.plans.model import Plan


def plan_values(plan: Plan) -> dict[str, Any]:
    """The plan as plain values, as a manifest keeps it; `Plan.model_validate` reads it back."""
    values: dict[str, Any] = plan.model_dump(mode="json", by_alias=True, exclude_none=True)
    return values


def plan_hash(plan: Plan) -> str:
    """16 hex digits of the plan's content; a seed counts only where the plan gives one."""
    text = json.dumps(plan_values(plan), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
