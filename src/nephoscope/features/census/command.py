"""`nephoscope census`: which CPU does one get, how fast is each, and what is to be expected?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.named import RUN, TARGET
from nephoscope.cli.kit.options import CSV_FILE, flag, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.features.census.records import Census
    from nephoscope.store import Store, StoredRun


@dataclass(frozen=True, slots=True)
class _CensusArguments:
    targets: Sequence[str] = repeated("--target", TARGET, "Host to measure now.", is_local=True)
    metadata: bool = flag(
        "--metadata",
        "Query the cloud's metadata service for instance type and zone.",
        is_local=True,
    )
    names: Sequence[str] = repeated("--run", RUN, "Stored run to include.")
    plan: Sequence[str] = repeated("--plan", "NAME", "Include only runs of this plan.")
    of_target: Sequence[str] = repeated("--of-target", "NAME", "Include only targets of this name.")
    since: str | None = option(
        "--since", "DATE", "Include only runs from this day on, e.g. 2026-06-01 (UTC)."
    )
    until: str | None = option(
        "--until", "DATE", "Include only runs up to this day, e.g. 2026-06-30 (UTC)."
    )
    files: Sequence[Path] = repeated("--import", CSV_FILE, "CSV file of observed CPU models.")
    study: str | None = option("--study", "NAME", "Study whose published census to use.")
    at_least: Sequence[float] = repeated(
        "--at-least",
        options.FiniteRange(0, min_open=True),
        "Also print the probability of at least X times the slowest speed.",
        metavar="X",
    )
    confidence: float = options.CONFIDENCE
    to: Path | None = options.REPORT_FILE
    budget: float | None = options.BUDGET.local()
    seed: int | None = options.SEED.local()
    engine: str | None = options.ENGINE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document(
        "census", ".features.census.records:Census", "Census of CPU models by Nephoscope"
    ),
    requests=Query(),
    examples=(
        "",
        "--import counts.csv --at-least 1.2",
    ),
)
def census(args: _CensusArguments) -> int:
    """Count CPU models by instance type and compare their speed.

    Uses all stored runs by default. TARGET is local, ssh:[user@]host[:port] or lab:LAB/HOST;
    docs/how-to/census.md describes the columns of FILE.csv.
    """
    from nephoscope.store.selection import day_s

    first, last = day_s("--since", args.since), day_s("--until", args.until)
    filters = bool(args.names or args.plan or args.of_target or args.since or args.until)
    sources = [bool(args.targets), bool(args.study), bool(args.files)]
    if sum(sources) > 1 or (filters and any(sources)):
        raise UsageError(
            "--target, --import, --study and the filters of stored runs exclude each other.",
            "Use only one of them.",
        )
    if args.engine and any(sources):
        raise UsageError(
            "--engine reads stored runs.", "Omit it, or --target, --import and --study."
        )
    if args.metadata and not args.targets:
        raise UsageError("--metadata needs a target to measure.", "Add --target TARGET.")
    if args.study is not None:
        result, code = of_study(args.study, args.confidence, args.at_least), 0
    elif args.files:
        from nephoscope.features.census.result import of_files

        result, code = (of_files(args.files, confidence=args.confidence, at_least=args.at_least), 0)
    else:
        from nephoscope.store import Store

        place = Store(args.store)
        runs: Iterable[StoredRun] = stored_runs(place, args.names, args.plan, first, last)
        code = 0
        if args.targets:
            runs, code = _measured(args.targets, args.metadata, args.budget, args.seed, place)
        result = of_runs(
            runs,
            place,
            args.confidence,
            targets=args.of_target,
            at_least=args.at_least,
            with_lab=bool(args.targets or args.of_target),
            engine=args.engine,
        )
    from nephoscope.features.census.section import section

    source = ", ".join(result.sources)
    present(result, section(result), as_json=args.as_json, to=args.to, source=source)
    return code


def _measured(
    targets: Sequence[str], metadata: bool, budget: float | None, seed: int | None, store: Store
) -> tuple[list[StoredRun], int]:
    """Measures the targets now, all in one run, interleaved."""
    from nephoscope.measure import plans

    plan = measuring.fitted(plans.census(budget, seed, metadata=metadata), targets)
    stored = measuring.executed(plan, store, fresh=True)
    return [stored], measuring.exit_code(measuring.reported(stored), stored)


def stored_runs(
    store: Store,
    names: Sequence[str] = (),
    plan: Sequence[str] = (),
    first: float | None = None,
    last: float | None = None,
) -> Iterator[StoredRun]:
    """Yields the runs of a store, or those of the filters; logs which manifests are damaged.

    What was read of a run is forgotten when the next one is asked for.
    """
    chosen = map(store.open, names) if names else store.each(output.warn, replays=False)
    end = None if last is None else last + timedelta(days=1).total_seconds()
    for stored in chosen:
        at = float(stored.manifest.started_at or 0)
        if (
            (not plan or stored.manifest.plan_name in plan)
            and (first is None or at >= first)
            and (end is None or at < end)
        ):
            yield stored
        stored.release()  # a store may have more runs than fit into memory


def of_runs(
    runs: Iterable[StoredRun],
    store: Store,
    confidence: float,
    *,
    targets: Sequence[str] = (),
    at_least: Sequence[float] = (),
    with_lab: bool = False,
    engine: str | None = None,
) -> Census:
    """Returns the census of stored runs. Raises UsageError where no machine can be counted."""
    from nephoscope.features.census import observations
    from nephoscope.features.census.result import build
    from nephoscope.store.engines import using

    with using(engine, str(store.path)) as reader:
        seen = observations.seen(runs, targets=targets, with_lab=with_lab, engine=reader)
    if not seen.looked_at:
        raise UsageError(
            f"{store.address} has no such run.",
            "Run `nephoscope census --target local`, or change the filters. `nephoscope spread` is "
            "for imported server types.",
        )
    if not seen.counts:
        why = " ".join(seen.left_out)
        raise UsageError(
            f"None of {seen.looked_at} run{'s' * (seen.looked_at != 1)} in {store.address} has a "
            f"machine that can be counted. {why}".strip(),
            "Run `nephoscope census --target local`.",
        )
    return build(seen, confidence=confidence, at_least=at_least)


def of_study(name: str, confidence: float, at_least: Sequence[float] = ()) -> Census:
    """Returns the published census of a study."""
    from nephoscope.features.census.published import published
    from nephoscope.features.census.result import build
    from nephoscope.features.studies import catalogue

    return build(published(catalogue.load(name)), confidence=confidence, at_least=at_least)
