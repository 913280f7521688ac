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
    budget: str | None,
    store: Path | None,
    as_json: bool,
    fresh: bool,
    dry_run: bool,
) -> int:
    """Measures what the plan says and prints the result; returns the exit code.

    dry_run: prints what would be done instead, and does nothing.
    """
    values = options.sets(sets)
    if seed is not None:
        values["seed"] = str(seed)
    budget_s = options.budget_s(budget)
    if budget_s is not None:
        values["budget"] = repr(budget_s)
    from nephoscope import catalog, plans
    from nephoscope.results.past import past
    from nephoscope.store import Store

    known = catalog.load()
    loaded, place = plans.read(plan, values, known)
    settings = plans.expand(loaded, known)
    kept = Store(store)
    found = plans.estimate(loaded, settings, known, past(kept))
    plans.refuse_too_long(loaded, found, place)
    if dry_run:
        from nephoscope.commands import dry_run as preview

        return preview.present(loaded, settings, found, known, kept, as_json=as_json)
    return measuring.measure(loaded, store=store, as_json=as_json, fresh=fresh)
