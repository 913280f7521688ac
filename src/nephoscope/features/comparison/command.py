"""`nephoscope compare`: is B better than A, by how much, and how sure is that?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Elsewhere, command
from nephoscope.cli.kit.named import METRIC, SIDE
from nephoscope.cli.kit.options import argument, flag, option, ratio, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError
from nephoscope.features.comparison.documents import COMPARISONS

if TYPE_CHECKING:
    from nephoscope.features.comparison.result import ComparisonRules, Comparisons, Ignored


@dataclass(frozen=True, slots=True)
class _CompareArguments:
    a: str = argument(SIDE)
    sides: Sequence[str] = argument(SIDE, nargs=-1, metavar="[B]...")
    paired: bool = flag("--paired", "Treat line i of file A and line i of file B as one pair.")
    interleave: bool = flag(
        "--interleave", "Measure A and B alternately in a new run, then compare them."
    )
    until_decided: bool = flag(
        "--until-decided",
        "With --interleave, measure until the comparison is decided, at most 1000 rounds; the "
        "intervals hold at any moment.",
    )
    budget: float | None = options.BUDGET
    margin: float = option(
        "--margin",
        ratio(0, 1, is_open=True),
        "Largest relative difference that counts as equivalent.",
        default="3%",
    )
    confidence: float = options.CONFIDENCE
    metrics: Sequence[str] = repeated("--metric", METRIC, "Metric to compare [default: all].")
    better: str = option(
        "--better",
        click.Choice(["lower", "higher"]),
        "Whether lower or higher numbers in plain files are better.",
        default="lower",
    )
    conditions: Sequence[str] = repeated(
        "--fail-on",
        click.Choice(["worse", "different", "undecided"]),
        "Exit with code 1 if any metric of B has this verdict.",
    )
    junit: Path | None = options.JUNIT
    github: bool = options.GITHUB
    every: bool = flag(
        "--all", "Print all results and their statistics, not only the headline results."
    )
    labels: Mapping[str, str] = options.LABELS
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=COMPARISONS,
    requests=Elsewhere("compare"),
    examples=(
        "latest",
        "before.txt after.txt --better lower",
    ),
)
def compare(args: _CompareArguments) -> int:
    """Compare runs, targets of a run, or files with a base.

    A and B are runs (run id, unique prefix, `latest`), targets of one run (RUN:TARGET), or text
    files with one number per line. Each B is compared with A, the base. With A alone, compares the
    targets of that run with its first one, paired by round. With --interleave, A and B are targets
    (as for `survey --target`), plan files or runs.
    """
    from nephoscope.features.comparison.result import ComparisonRules

    if args.junit is not None or args.github:
        from nephoscope.features.comparison.ci_reports import require_condition

        require_condition(args.conditions, args.junit, github=args.github)
    rules = ComparisonRules(
        margin=args.margin, confidence=args.confidence, metrics=frozenset(args.metrics)
    )
    ignored: Ignored = {}
    if args.interleave:
        run_id, ignored = _interleaved(args)
        sides, is_file = [run_id], [False]
    elif args.budget is not None or args.until_decided or options.given_labels():
        option = "--label is for" if args.budget is None else "--budget limits"
        option = "--until-decided is for" if args.until_decided else option
        raise UsageError(f"{option} a new run.", "Use it with --interleave.")
    else:
        sides = [args.a, *args.sides]
        is_file = [_is_file(side) for side in sides]
    if all(is_file):
        comparisons = _files(sides, paired=args.paired, better=args.better, rules=rules)
    elif any(is_file):
        raise UsageError(
            "A file of numbers cannot be compared with a run.", "Name files only, or runs only."
        )
    else:
        from nephoscope.features.comparison.stored import of_stored_runs
        from nephoscope.store import Store

        comparisons = of_stored_runs(
            Store(args.store), sides, rules, paired=args.paired, ignored=ignored, folder=args.store
        )
    if not comparisons.comparisons:
        wanted = f" named {', '.join(sorted(args.metrics))}" if args.metrics else ""
        reason = comparisons.warnings[-1] if comparisons.warnings else ""
        raise UsageError(
            f"A and B have no common metric{wanted}, so nothing can be compared.", reason
        )
    from nephoscope.features.comparison.page import section

    page = section(comparisons, rules, args.better if is_file[0] else "", every=args.every)
    present(comparisons, page, as_json=args.as_json, to=args.to, source="nephoscope compare")
    if not args.every and not args.as_json and len(comparisons.comparisons) > 1:
        output.say("All results with their statistics: add --all.")
    if not args.conditions:
        return 0
    from nephoscope.features.comparison.failing import check

    outcome = check(comparisons, args.conditions, rules)
    if args.junit is not None or args.github:
        from nephoscope.features.comparison.ci_reports import state

        state(outcome, "nephoscope compare", args.junit, github=args.github)
    output.warn(outcome.sentence)
    return outcome.exit_code


def _is_file(text: str) -> bool:
    """Returns whether a source is a file of numbers; else it is a run, perhaps with a target."""
    path = Path(text)
    if not path.is_file() and ("/" in text or path.suffix or path.exists()):
        raise UsageError(
            f"There is no file '{text}'.", "Use a file with one number per line, or a run id."
        )
    return path.is_file()


def _files(
    sides: Sequence[str], *, paired: bool, better: str, rules: ComparisonRules
) -> Comparisons:
    from nephoscope.core.model import Better
    from nephoscope.features.comparison import number_files
    from nephoscope.features.comparison import result as comparing
    from nephoscope.stats.statistics.values import Refused

    if len(sides) == 1:
        raise UsageError("A comparison needs two files.", "Name a second file.")
    if len(sides) > 2:
        each = replace(rules, is_part=True)
        parts = [_files((sides[0], b), paired=paired, better=better, rules=each) for b in sides[1:]]
        return comparing.of_parts(parts, rules)
    a, b = (number_files.read(Path(side)) for side in sides)
    if a == b and len(set(a)) > 1:
        raise UsageError(
            f"{sides[0]} and {sides[1]} have the same {len(a)} numbers: one is a copy of the "
            "other.",
            "Name the results of two measurements.",
        )
    if paired and len(a) != len(b):
        raise UsageError(
            f"--paired needs equally many numbers in both files: {sides[0]} has {len(a)}, "
            f"{sides[1]} has {len(b)}.",
            "Omit --paired, or make the files equally long.",
        )
    try:
        return comparing.of_numbers(
            a, b, labels=(sides[0], sides[1]), better=Better(better), paired=paired, rules=rules
        )
    except Refused as reason:
        raise UsageError(f"These files cannot be compared: {reason}") from None


def _interleaved(args: _CompareArguments) -> tuple[str, Ignored]:
    """Measures both settings in one new run; returns its id, and what sets its lines apart."""
    from nephoscope.cli.kit import measuring
    from nephoscope.features.comparison.deciding import plans_of
    from nephoscope.features.comparison.interleaving import interleave, names_of_sides
    from nephoscope.measure import plans
    from nephoscope.store import Store

    if len(args.sides) != 1 or args.paired:
        raise UsageError(
            "--interleave takes two settings and no --paired.",
            "Name two targets, two plans or two runs.",
        )
    runs = Store(args.store)
    sides = plans_of(
        args.a,
        args.sides[0],
        runs,
        args.store,
        lambda target: measuring.fitted(plans.survey("quick"), [target.traits().place]),
    )
    merged = interleave(*sides, args.budget, until_decided=args.until_decided)
    run = measuring.executed(merged, runs)
    measuring.reported(run)
    return run.id, names_of_sides(*sides, merged)
