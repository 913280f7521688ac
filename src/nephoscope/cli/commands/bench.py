"""`nephoscope bench`: one benchmark, or command lines of the user, measured now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.catalog.instruments import CPU_GAPS
from nephoscope.cli.commands.command_lines.options import CommandOptions, given_options
from nephoscope.cli.kit import habits, measuring, options, output
from nephoscope.cli.kit.command import MEASURES, Command, command
from nephoscope.cli.kit.documents import RESULT
from nephoscope.cli.kit.named import BENCHMARK, TARGET, Named, parameters_of
from nephoscope.cli.kit.options import Count, argument, option
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.catalog import BenchmarkSpec, Catalog
    from nephoscope.measure.plans import Plan

DEFAULT_BUDGET_S = 10.0
"""Of one target. Several are compared, which takes the least number of rounds."""

SLOWER_THAN_GUESSED = 1.5
"""Factor on the estimated time of these rounds: starting a server is in no parameter."""

_SETS = options.SETS.with_settings(type=Named(names=parameters_of))


@dataclass(frozen=True, slots=True)
class _BenchArguments:
    benchmark: str | None = argument(BENCHMARK, metavar="[ID]", required=False)
    command_lines: CommandOptions = options.group(CommandOptions)
    values: dict[str, str] = _SETS
    targets: Sequence[str] = options.TARGETS
    peer: str | None = option(
        "--peer",
        TARGET,
        "Host of the server of a benchmark with client and server; each --target is a client "
        "[default: each --target serves itself].",
    )
    client: str | None = option(
        "--client",
        TARGET,
        "Host of the client of a benchmark with client and server; each --target is a server.",
    )
    repetitions: int | None = option("--repetitions", Count(1, 100_000), "Number of trials.")
    budget: float | None = options.BUDGET
    seed: int | None = options.SEED
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    full_report: bool = options.FULL_REPORT
    as_json: bool = options.JSON


class _Bench(Command):
    """The command, which answers command lines in place of a benchmark with their `--command`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Returns the rest of the words. Raises UsageError for several words in place of ID."""
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if not error.message.startswith("Got unexpected extra argument"):
                raise
            values, more, _ = self.make_parser(ctx).parse_args(args=words)
            raise _not_a_benchmark([values["benchmark"], *more]) from None


def _not_a_benchmark(words: Sequence[str]) -> UsageError:
    """Returns the error about command lines in place of ID."""
    return UsageError(
        f"'{words[0]}' is no benchmark." if len(words) == 1 else "`bench` takes one benchmark.",
        f"For command lines: `{habits.bench_line(words)}`.",
    )


@command(
    prints=RESULT,
    requests=MEASURES,
    cls=_Bench,
    examples=(
        CPU_GAPS,
        "db.pgbench --client local --target ssh:vm1 --target ssh:vm2",
        "--command 'grep -r foo src' --command 'rg foo src'",
        "-L n 1,2,4 -p 'make clean' --command 'make -j {n}'",
        "--duet 'old/app input' 'new/app input' --fail-on worse",
    ),
)
def bench(args: _BenchArguments) -> int:
    """Measure one benchmark, or compare command lines.

    ID is the name of a benchmark; `nephoscope list` prints them. TARGET is local,
    ssh:[user@]host[:port], lab:LAB/HOST or sim[:[VM@]SCENARIO]. Metrics of many settings are
    summarised; --full-report prints all of them.

    Several targets are measured alternately, and each is compared with the first.

    With --command, measures command lines instead: each of them in every round, in random order,
    and without a shell unless --shell is given.

    With --duet, measures two command lines at the same time, each on half of the CPUs, which
    they exchange: what slows the machine slows both, and differences of a few percent are found
    on a shared or noisy machine.
    """
    if args.command_lines.texts:
        option = args.command_lines.option
        _refuse_with_command(
            option,
            benchmark=args.benchmark,
            peer=args.peer,
            client=args.client,
            repetitions=args.repetitions,
        )
        if len(args.targets) > 1:
            raise UsageError(
                f"{option} takes one --target.",
                "Write a plan with the benchmark `command` on both targets, and run it.",
            )
        target = args.targets[0] if args.targets else "local"
        return _bench_commands(
            args.command_lines,
            args.values,
            target,
            args.budget,
            args.seed,
            args.store,
            args.full_report,
            args.as_json,
        )
    from nephoscope import catalog

    known = catalog.load()
    word = args.benchmark or ""
    if word not in known.benchmarks and habits.is_command_line(word):
        raise _not_a_benchmark([word])
    if unused := given_options():
        raise UsageError(
            f"Without --command or --duet, there is no command line for {', '.join(unused)}.",
            "Write --command 'PROGRAM ARGUMENTS'; --repetitions sets the number of "
            "rounds of a benchmark.",
        )
    if args.benchmark is None:
        raise UsageError(
            "Nothing to measure: neither ID nor --command is given.",
            "Run `nephoscope list` for the benchmarks.",
        )
    from nephoscope.measure import plans
    from nephoscope.store import Store

    spec = known.benchmark(args.benchmark)
    _check_ends(spec, args.values, args.targets, args.peer, args.client)
    default = "sim" if spec.kind == catalog.SIMULATION else "local"
    records = options.targets(args.targets or [default])
    peers, clients = (
        options.targets([target_text] if target_text else [])
        for target_text in (args.peer, args.client)
    )
    plan = plans.single(
        args.benchmark,
        args.values,
        records,
        peer=next((target for target in peers if target not in records), None),
        client=next(iter(clients), None),
        budget_s=args.budget,
        seed=args.seed,
        rounds=args.repetitions,
        known=known,
    )
    if args.budget is None and args.repetitions is None:
        plan = plan.model_copy(update={"budget_s": _default_budget_s(plan, known)})
    # Always a new run: nothing that was measured earlier is taken for `now`.
    run = measuring.executed(plan, Store(args.store), fresh=True)
    # The report of several targets begins with their comparison.
    table = len(records) == 1
    return measuring.present(run, as_json=args.as_json, full=args.full_report, table=table)


def _check_ends(
    spec: BenchmarkSpec,
    values: Mapping[str, str],
    targets: Sequence[str],
    peer: str | None,
    client: str | None,
) -> None:
    """Raises UsageError for ends that have no meaning for this benchmark, or no certain one."""
    from nephoscope.catalog.meaning import Domain
    from nephoscope.measure.plans.server_address import SERVER_ADDRESS, mentions_server

    if client is not None and peer is not None:
        raise UsageError(
            "--client and --peer exclude each other: one names the client of all targets, the "
            "other their server.",
            "Omit one of the two.",
        )
    if client is not None and not targets:
        raise UsageError(
            f"--client {client} has no server to measure.", "Name the servers with --target."
        )
    if client is not None and client in targets:
        raise UsageError(
            f"{client} is the client and also a server of the comparison.",
            "Take another host as the client, or omit --client: each target then serves itself.",
        )
    are_services = any(record.traits().is_service for record in options.targets(targets))
    has_server = spec.two_sided or are_services or any(map(mentions_server, values.values()))
    if client is not None and not has_server:
        texts = [param.id for param in spec.params if param.type == "text"]
        hint = "Omit --client."
        if any(name in texts for name in ADDRESS_PARAMETERS):
            name = next(name for name in ADDRESS_PARAMETERS if name in texts)
            hint += f" To load a service that runs on each target, write {SERVER_ADDRESS} for its "
            hint += f"address in `--set {name}=…`."
        raise UsageError(f"{spec.id} has no server of its own, so --client means nothing.", hint)
    if peer is not None and peer in targets and len(targets) > 1:
        raise UsageError(
            f"{peer} is a target and also the server of the others, so the targets are not alike.",
            "Omit --peer: each target then serves itself; or name the host of one client: "
            "--client.",
        )
    is_service = spec.domain is not Domain.NONE
    if spec.wants_peer(values) and not (is_service or peer or client) and set(targets) - {"local"}:
        raise UsageError(
            f"{spec.id} measures a path, of which {' and '.join(targets)} "
            f"{'is one end' if len(targets) == 1 else 'are ends'}.",
            f"Name the other end: `--peer TARGET`, or `--client TARGET`; `--peer {targets[0]}` "
            "measures the host against itself."
            if len(targets) == 1
            else "Name the other end of all: `--peer TARGET` (their server) or `--client TARGET` "
            "(their client).",
        )


ADDRESS_PARAMETERS = ("url", "address", "host")
"""Parameters with the address of a service that runs already."""


def _default_budget_s(plan: Plan, known: Catalog) -> float:
    """Returns the budget of a plan that was given none."""
    from nephoscope.measure import plans

    if not plan.design.baseline:
        return DEFAULT_BUDGET_S
    estimated = plans.estimate(plan, plans.expand(plan, known), known)
    return max(DEFAULT_BUDGET_S * len(plan.targets), SLOWER_THAN_GUESSED * estimated.least_s)


def _refuse_with_command(
    option: str,
    *,
    benchmark: str | None,
    peer: str | None,
    client: str | None,
    repetitions: int | None,
) -> None:
    """Raises UsageError for what has no meaning with command lines, which `option` gives."""
    for name, value, hint in (
        ("ID", benchmark, f"Omit ID, or {option}."),
        ("--peer", peer, "Omit --peer."),
        ("--client", client, "Omit --client."),
        ("--repetitions", repetitions, "Write --runs for the number of executions."),
    ):
        if value is not None:
            raise UsageError(f"{option} and {name} exclude each other.", hint)


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
    from nephoscope.cli.commands.command_lines import executions, plan, text
    from nephoscope.measure.targets.kinds import parse
    from nephoscope.store import Store

    lines = plan.expand_commands(command_options)
    if command_options.fail_on:
        plan.require_several(lines)
    is_stated = command_options.junit is not None or command_options.github
    if is_stated:
        from nephoscope.features.comparison import ci_reports

        ci_reports.require_condition(
            command_options.fail_on, command_options.junit, github=command_options.github
        )
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
    code = executions.report_failures(lines, by_label) or code
    if code or not command_options.fail_on:
        return code
    from nephoscope.cli.commands.command_lines import failing
    from nephoscope.results import analyse_run

    outcome = failing.check(analyse_run.build(run), lines, command_options.fail_on)
    if is_stated:
        ci_reports.state(
            outcome, "nephoscope bench", command_options.junit, github=command_options.github
        )
    output.warn(outcome.sentence)
    return outcome.exit_code
