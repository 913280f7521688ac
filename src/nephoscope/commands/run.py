"""`nephoscope run PLAN`: runs a plan, or goes on with a run of it that was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nephoscope.commands import measuring, options


def run(
    plan: Path,
    *,
    sets: Sequence[str],
    seed: int | None,
    store: Path | None,
    as_json: bool,
    fresh: bool,
) -> int:
    """Measures what the plan says and prints the result; returns the exit code."""
    values = options.sets(sets)
    if seed is not None:
        values["seed"] = str(seed)
    from nephoscope import plans

    loaded = plans.load(plan, values)
    return measuring.measure(loaded, store=store, as_json=as_json, fresh=fresh)
