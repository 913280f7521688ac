"""`nephoscope noise`: the smallest difference that this machine decides, before a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.commands.command_lines.options import CommandOptions, given_options
from nephoscope.cli.kit import measuring, options
from nephoscope.cli.kit.command import MEASURES, Document, command
from nephoscope.cli.kit.named import BENCHMARK, TARGET, Named, parameters_of
from nephoscope.cli.kit.options import Count, argument, duration, option, ratio
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.measure.plans import Plan
    from nephoscope.measure.targets.kinds.record import TargetRecord

PLAN_SUFFIXES = (".yaml", ".yml")
RESERVE = 0.1
"""Share of the time that is left for analysis and report."""
_MEANINGLESS = ("--runs", "--min-runs", "--max-runs", "--export-json")

_SETS = options.SETS.with_settings(type=Named(names=parameters_of))


@dataclass(frozen=True, slots=True)
class _NoiseArguments:
    what: str | None = argument(BENCHMARK, metavar="[ID|PLAN]", required=False)
    command_lines: CommandOptions = options.group(CommandOptions)
    values: dict[str, str] = _SETS
    target: str = option("--target", TARGET, "Host to measure.", default="local")
    duration_s: float = option(
        "--for", duration("5 s", "1 h"), "Time to measure, e.g. 30s or 2min.", default="30s"
    )
    repetitions: int = option(
        "--repetitions",
        Count(6, 1000),
        "Number of repetitions a side of the comparison in the first line.",
        default=10,
    )
    difference: float = option(
        "--difference",
        ratio(0.0001, 1),
        "Difference to decide, for which the necessary repetitions are stated.",
        default="2%",
    )
    confidence: float = options.CONFIDENCE
    seed: int | None = options.SEED
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("noise", ".features.comparison.noise:Noise"),
    requests=MEASURES,
    examples=(
        "",
        "--command './app testdata' --difference 1%",
        "plan.yaml --for 2min",
    ),
)
def noise(args: _NoiseArguments) -> int:
    """Predict the smallest difference decided here (takes 30 s).

    Measures the same twice, interleaved (A/A), and states how large a difference has to be for a
    comparison of N repetitions a side, and how many repetitions a wanted difference needs. Without
    ID, measures CPU, memory and disk; with --command, ID or PLAN, predicts the comparison of that
    command (`bench --command`), benchmark or plan (`compare --interleave`):
    """
    from nephoscope.features.comparison import noise as analysis
    from nephoscope.features.comparison.noise_section import section
    from nephoscope.store import Store

    plan = analysis.plan_of(_plan(args), args.duration_s * (1 - RESERVE), args.seed)
    run = measuring.executed(plan, Store(args.store), fresh=True)
    result = measuring.reported(run)
    if code := measuring.exit_code(result, run):
        return code
    prediction = analysis.analyse(
        result,
        args.target,
        difference=args.difference,
        repetitions=args.repetitions,
        confidence=args.confidence,
        margin=args.command_lines.margin,
    )
    if not prediction.results:
        raise UsageError(*analysis.reason_of_nothing(result, prediction, args.duration_s))
    return present(prediction, section(prediction), as_json=args.as_json)


def _plan(args: _NoiseArguments) -> Plan:
    """Returns the plan of one side. Raises UsageError for arguments that exclude each other."""
    from nephoscope.measure import plans
    from nephoscope.measure.targets.kinds import parse

    target = parse(args.target)
    if args.command_lines.commands:
        if args.what is not None:
            raise UsageError("--command and ID exclude each other.", "Omit one of the two.")
        return _plan_of_command(args, target)
    if unused := given_options():
        raise UsageError(
            f"Without --command, there is no command line for {', '.join(unused)}.",
            "Write --command 'PROGRAM ARGUMENTS'.",
        )
    if args.what is None:
        if args.values:
            raise UsageError("Without ID, there is no benchmark for --set.", "Name a benchmark.")
        return plans.noise().model_copy(update={"targets": (target,)})
    if "/" in args.what or args.what.endswith(PLAN_SUFFIXES):
        if args.values:
            raise UsageError("--set is for a benchmark, not for a plan.", "Change the plan.")
        plan = plans.load(args.what)
        return plan if args.target == "local" else plan.model_copy(update={"targets": (target,)})
    return plans.single(args.what, args.values, [target])


def _plan_of_command(args: _NoiseArguments, target: TargetRecord) -> Plan:
    from nephoscope.cli.commands.command_lines import plan

    if unused := [name for name in given_options() if name in _MEANINGLESS]:
        raise UsageError(
            f"{', '.join(unused)} has no meaning for `noise`.",
            "--for is the time, --repetitions the number to predict for.",
        )
    lines = plan.expand_commands(args.command_lines)
    if len(lines) > 1:
        raise UsageError(
            f"`noise` compares one command with itself; these are {len(lines)}.",
            "Give one --command; a second version of it has about the same noise.",
        )
    return plan.plan_of(args.command_lines, lines, args.values, target)
