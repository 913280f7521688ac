"""`nephoscope survey`: measures a machine by a built-in plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import measuring, options
from nephoscope.cli.kit.command import MEASURES, command
from nephoscope.cli.kit.documents import RESULT
from nephoscope.core.errors import UsageError
from nephoscope.features.comparison.documents import REPEATS


def _type_name(text: str) -> str:
    provider, _, name = text.partition("/")
    if text and not (provider and name):
        raise UsageError(
            f"'{text[:80]}' is no PROVIDER/TYPE.", "Write, for example, aws/c7i.large."
        )
    return text


@dataclass(frozen=True, slots=True)
class _SurveyArguments:
    quick: bool = options.flag("--quick", "Run a reduced survey that takes less than one minute.")
    full: bool = options.flag("--full", "Run all benchmarks at full resolution (about 20 minutes).")
    comparable: bool = options.flag(
        "--comparable", "Add the benchmarks of published server types: stress-ng, OpenSSL."
    )
    type: str = options.option(
        "--type",
        options.Checked("PROVIDER/TYPE", _type_name),
        "Server type of the machine, to compare it with published ones.",
        default="",
        is_local=True,
    )
    targets: Sequence[str] = options.TARGETS
    budget: float | None = options.BUDGET
    repeat_runs: int = options.REPEAT_RUNS
    gap: float | None = options.GAP
    seed: int | None = options.SEED
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    full_report: bool = options.FULL_REPORT
    as_json: bool = options.JSON
    fresh: bool = options.FRESH


@command(
    prints={"": RESULT, "--repeat-runs": REPEATS},
    requests=MEASURES,
    examples=(
        "--quick",
        "--target ssh:me@web.example.org",
    ),
)
def survey(args: _SurveyArguments) -> int:
    """Measure CPU, memory, disk and network of a machine.

    Writes a report as HTML, Markdown and JSON. TARGET is local, ssh:[user@]host[:port] or
    lab:LAB/HOST.
    """
    if args.quick and args.full:
        raise UsageError("--quick and --full exclude each other.", "Use only one of them.")
    repeat = options.repetition(args.repeat_runs, args.gap)
    from nephoscope.features.known_machines.type_identity import LABEL
    from nephoscope.measure import plans
    from nephoscope.store import Store

    if args.type:
        options.add_label(LABEL, args.type)
    plan = plans.survey(
        "quick" if args.quick else "full" if args.full else "standard",
        args.budget,
        args.seed,
        comparable=args.comparable,
    )
    if args.targets:
        plan = measuring.fitted(plan, args.targets)
    if repeat.runs > 1:
        from nephoscope.features.comparison.measure_repeats import measure_repeatedly

        return measure_repeatedly(
            plan, store=args.store, repeat=repeat, as_json=args.as_json, fresh=args.fresh
        )
    run = measuring.executed(plan, Store(args.store), fresh=args.fresh)
    return measuring.present(run, as_json=args.as_json, full=args.full_report)
