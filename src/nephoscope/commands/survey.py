"""`nephoscope survey`: what did I really get? A built-in plan sent down the road of every plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nephoscope.commands import measuring, options
from nephoscope.errors import UsageError


def run(
    *,
    quick: bool,
    full: bool,
    targets: Sequence[str],
    budget: str | None,
    seed: int | None,
    store: Path | None,
    as_json: bool,
    fresh: bool,
) -> int:
    """Measures this machine, or those of `targets`; prints what they deliver.

    Returns the exit code.
    """
    if quick and full:
        raise UsageError("--quick and --full exclude each other.", "Use only one of them.")
    seconds = options.budget_s(budget)
    from nephoscope import plans

    level = "quick" if quick else "full" if full else "standard"
    plan = plans.survey(level, seconds, seed)
    if targets:
        from nephoscope.commands import remote_survey

        plan = remote_survey.fitted(plan, targets)
    return measuring.measure(plan, store=store, as_json=as_json, fresh=fresh)
