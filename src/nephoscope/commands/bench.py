"""`nephoscope bench`: one benchmark, or command lines of the user, measured now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.commands import measuring, options, output
from nephoscope.commands.command_lines.options import CommandOptions, with_command_options
from nephoscope.commands.options import Count, option
from nephoscope.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.commands.command_lines.executions import Executions
    from nephoscope.commands.command_lines.plan import CommandLine

DEFAULT_BUDGET_S = 10.0


@click.command()
@click.argument("benchmark", metavar="[ID]", required=False)
@with_command_options
@options.SETS
@option("--target", "TARGET", "Host to measure.", default="local")
@option(
    "--peer",
    "TARGET",
    "Far end of a benchmark with two ends [default: the host itself, for local only].",
)
@option("--repetitions", Count(1, 100_000), "Number of trials.")
@options.BUDGET
@options.SEED
@options.LABELS
@options.STORE
@options.FULL_REPORT
@options.JSON
def bench(
    benchmark: str | None,
    command_options: CommandOptions,
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
    """Measure one benchmark, or compare command lines.

    ID is the name of a benchmark; `nephoscope list` prints them. TARGET is local,
    ssh:[user@]host[:port], lab:LAB/HOST or sim[:[VM@]SCENARIO]. Metrics of many settings are
    summarised; --full-report prints all of them.

    With --command, measures command lines instead: each of them in every round, in random order,
    and without a shell unless --shell is given.

    \b
    nephoscope bench --command 'grep -r foo src' --command 'rg foo src'
    nephoscope bench -L n 1,2,4 -p 'make clean' --command 'make -j {n}'
    """
    if command_options.commands:
        _refuse_beside_commands(benchmark=benchmark, peer=peer, repetitions=repetitions)
        return _bench_commands(
            command_options, values, target, budget, seed, store, full_report, as_json
        )
    if command_options != CommandOptions():
        raise UsageError(
            "An option of command lines is given without --command.",
            "Write --command 'PROGRAM ARGUMENTS', as often as there are commands.",
        )
    if benchmark is None:
        raise UsageError(
            "Nothing to measure: neither ID nor --command is given.",
            "Run `nephoscope list` for the benchmarks.",
        )
    from nephoscope import catalog, plans
    from nephoscope.targets.kinds import parse

    known = catalog.load()
    spec = known.benchmark(benchmark)
    record = parse("sim" if spec.kind == catalog.SIMULATION and target == "local" else target)
    if spec.wants_peer(values) and peer is None and target != "local":
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


def _refuse_beside_commands(
    *, benchmark: str | None, peer: str | None, repetitions: int | None
) -> None:
    """Raises UsageError for what has no meaning with --command."""
    for name, value, hint in (
        ("ID", benchmark, "Omit ID, or --command."),
        ("--peer", peer, "Omit --peer."),
        ("--repetitions", repetitions, "Write --runs for the number of executions."),
    ):
        if value is not None:
            raise UsageError(f"--command and {name} exclude each other.", hint)


def _bench_commands(
    command_options: CommandOptions,
    values: dict[str, str],
    target: str,
    budget: float | None,
    seed: int | None,
    store: Path | None,
    full_report: bool,
    as_json: bool,
) -> int:
    """Measures the command lines; 3 where one of them has no result."""
    from nephoscope.commands.command_lines import executions, plan, text
    from nephoscope.store import Store
    from nephoscope.targets.kinds import parse

    lines = plan.expand_commands(command_options)
    wanted = plan.plan_of(command_options, lines, values, parse(target), budget_s=budget, seed=seed)
    for line in () if command_options.shell else lines:
        if part := plan.shell_syntax(line.text):
            output.warn(
                f"{line.label}: only a shell interprets '{part}', and none is used. "
                "Add --shell sh if it is meant so."
            )
    run = measuring.executed(wanted, Store(store), fresh=True)
    by_label = executions.by_label(run)
    code = measuring.present(
        run,
        as_json=as_json,
        full=True,
        text_of=None
        if full_report
        else lambda result: text.text(result, lines, by_label, command_options.shell),
    )
    if command_options.export_json is not None:
        executions.write(command_options.export_json, lines, by_label)
    return _report_failures(lines, by_label) or code


def _report_failures(lines: Sequence[CommandLine], by_label: dict[str, Executions]) -> int:
    """0, or 3 with a sentence for each command that has no result."""
    code = 0
    for line in lines:
        own = by_label.get(line.label)
        if own is None or not own.wall_ns:
            reason = own.failed_trials[0] if own and own.failed_trials else "it was not measured."
            output.warn(f"{line.label}: {reason}")
            code = measuring.NOTHING_VALID
    return code
