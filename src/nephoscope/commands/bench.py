"""`nephoscope bench ID`: one benchmark now, all its metrics with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nephoscope.commands import measuring, options

DEFAULT_BUDGET_S = 10.0


def run(
    benchmark: str,
    *,
    sets: Sequence[str],
    target: str,
    repetitions: int | None,
    budget: str | None,
    seed: int | None,
    store: Path | None,
    as_json: bool,
) -> int:
    """Measures one benchmark and prints every metric; returns the exit code.

    Without a budget of the user's it ends after about 10 s, but not before 10 repetitions;
    repetitions: exactly so many, however long they take.
    """
    values = options.sets(sets)
    seconds = options.budget_s(budget)
    from nephoscope import catalog, plans
    from nephoscope.targets.kinds import parse

    known = catalog.load()
    simulated = known.benchmark(benchmark).kind == catalog.SIMULATION
    record = parse("sim" if simulated and target == "local" else target)
    if seconds is None and repetitions is None:
        seconds = DEFAULT_BUDGET_S
    plan = plans.single(
        benchmark,
        values,
        record,
        budget_s=seconds,
        seed=seed,
        rounds=repetitions,
        known=known,
    )
    # Always a new run: `now` means that nothing measured earlier is taken for it.
    return measuring.measure(plan, store=store, as_json=as_json, fresh=True, brief=True)
