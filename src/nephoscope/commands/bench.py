"""`nephoscope bench ID`: one benchmark now, all its metrics with their intervals."""

from __future__ import annotations

from pathlib import Path

import click

from nephoscope.commands import measuring, options
from nephoscope.errors import UsageError

DEFAULT_BUDGET_S = 10.0


@click.command()
@click.argument("benchmark", metavar="ID")
@options.SETS
@click.option(
    "--target", default="local", metavar="TARGET", show_default=True, help="Host to measure."
)
@click.option(
    "--peer",
    metavar="TARGET",
    help="Far end of a benchmark with two ends [default: the host itself, for local only].",
)
@click.option(
    "--repetitions", type=click.IntRange(1, 100_000), metavar="N", help="Number of trials."
)
@options.BUDGET
@options.SEED
@options.STORE
@options.FULL_REPORT
@options.JSON
def bench(
    benchmark: str,
    values: dict[str, str],
    target: str,
    peer: str | None,
    repetitions: int | None,
    budget: float | None,
    seed: int | None,
    store: Path | None,
    full_report: bool,
    as_json: bool,
) -> int:
    """Run one benchmark and print its metrics.

    Metrics of many settings are summarised; --full-report prints all of them.

    ID is the name of a benchmark; `nephoscope list` prints them. TARGET is local,
    ssh:[user@]host[:port], lab:LAB/HOST or sim[:[VM@]SCENARIO].
    """
    from nephoscope import catalog, plans
    from nephoscope.targets.kinds import parse

    known = catalog.load()
    simulated = known.benchmark(benchmark).kind == catalog.SIMULATION
    record = parse("sim" if simulated and target == "local" else target)
    if known.benchmark(benchmark).needs_peer and peer is None and target != "local":
        raise UsageError(
            f"{benchmark} has two ends, and {target} is one of them.",
            f"Name the other: `--peer TARGET`; `--peer {target}` measures the host against itself.",
        )
    if budget is None and repetitions is None:
        budget = DEFAULT_BUDGET_S
    plan = plans.single(
        benchmark,
        values,
        record,
        peer=None if peer is None or peer == target else parse(peer),
        budget_s=budget,
        seed=seed,
        rounds=repetitions,
        known=known,
    )
    # Always a new run: nothing that was measured earlier is taken for `now`.
    return measuring.measure(
        plan, store=store, as_json=as_json, full=full_report, fresh=True, table=True
    )
