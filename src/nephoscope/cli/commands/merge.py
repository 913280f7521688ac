"""`nephoscope merge STORE…`: the runs of several stores in one, with their provenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.documents import Rows
from nephoscope.cli.kit.options import argument, flag
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural

if TYPE_CHECKING:
    from nephoscope.store.store_merge import MergedSource

_NAMED = 3


@dataclass(frozen=True, slots=True)
class MergedStores:
    """What a merge of stores did. into: the store that has the runs now.

    sources: for each store, ids of the runs that were `copied`, that were `present` before, or that
    were `compacted` and of which the summaries were copied, and a sentence for each one `left_out`.
    is_preview: nothing was copied.
    """

    into: str
    sources: Rows
    is_preview: bool = False


@dataclass(frozen=True, slots=True)
class _MergeArguments:
    stores: Sequence[Path] = argument(
        options.SOURCE_STORE, nargs=-1, required=True, metavar="STORE..."
    )
    same_plan: bool = flag("--same-plan", "Refuse runs of different plans.")
    leave_out: bool = flag(
        "--leave-out", "Leave out runs that conflict with others, instead of merging nothing."
    )
    dry_run: bool = flag("--dry-run", "Print what would be copied; copy nothing.")
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("merged_stores", MergedStores),
    is_work=True,
    requests=Excluded("writes runs into a store"),
    examples=(
        "controller-a controller-b --store all",
        "s3://results/eu s3://results/us --store s3://results/all",
    ),
)
def merge(args: _MergeArguments) -> int:
    """Copy the runs of other stores into one store.

    STORE is a directory of stored runs, or an address on object storage. Runs are copied whole,
    with the store they came from and the digest of what they measured; those that are there already
    count once. If runs of one id differ, a metric has two units or a watch has two definitions,
    nothing is copied. Exits with 1 if a run is damaged, has not ended or was left out.
    """
    from nephoscope.store import Store
    from nephoscope.store.store_merge import StoreMerge

    target = Store(args.store)
    sources = [Store(path.absolute()) for path in dict.fromkeys(args.stores)]
    for source in sources:
        if source.path.resolve() == target.path.resolve():
            raise UsageError(
                f"{source.address} is the store to merge into.", "Name another one with --store."
            )
        if not source.ids() and not (source.path / "days").is_dir():
            raise UsageError(f"There is no run in {source.address}.", "Check the path.")
    merging = StoreMerge(target, sources, leaves_out=args.leave_out)
    if args.same_plan:
        merging.require_one_plan()
    if merging.conflicts:
        first = merging.conflicts[:_NAMED]
        more = len(merging.conflicts) - len(first)
        rest = f" And {plural(more, 'more conflict')}." if more else ""
        raise UsageError(
            f"Nothing was merged. {' '.join(first)}{rest}",
            "Merge stores without these runs, or add --leave-out.",
        )
    results = merging.preview() if args.dry_run else merging.apply()
    if args.as_json:
        output.document({"into": target.address, "sources": results, "is_preview": args.dry_run})
    else:
        verb = "would be copied" if args.dry_run else "copied"
        output.say("\n".join(_text(result, verb) for result in results))
        output.say(f"Into {target.address}.")
    return int(any(result.left_out for result in results))


def _text(result: MergedSource, verb: str) -> str:
    parts = [f"{plural(len(result.copied), 'run')} {verb}"]
    if result.compacted:
        parts.append(f"{plural(len(result.compacted), 'compacted run')} {verb}")
    parts.append(f"{len(result.present)} already there")
    if result.left_out:
        parts.append(f"{len(result.left_out)} left out")
    lines = [f"{result.store}: {', '.join(parts)}"]
    return "\n".join([*lines, *(f"  {sentence}" for sentence in result.left_out)])
