"""`nephoscope compact`: merges the trials of old runs into day files, and limits these."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.options import Checked, duration, flag, option
from nephoscope.core import units
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.features.compaction.compact import Compaction, Policy

AGE = Checked("TIME", duration("1 s", "36600 d").read)
SIZE = Checked("SIZE", units.parse_bytes)


@dataclass(frozen=True, slots=True)
class _CompactArguments:
    keep_raw: str | None = option(
        "--keep-raw", AGE, "Age of a run at which its trials are merged into its day file, e.g. 7d."
    )
    keep: str | None = option("--keep", AGE, "Age at which a day file is removed, e.g. 2y.")
    max_size: str | None = option(
        "--max-size", SIZE, "Size of the day files, beyond which the oldest is removed, e.g. 200MB."
    )
    watch: str | None = option("--watch", "NAME", "Only runs of this watch, and their day files.")
    dry_run: bool = flag("--dry-run", "Print what would be done; change nothing.")
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("compaction", ".features.compaction.compact:Compaction"),
    is_work=True,
    requests=Excluded("removes trials"),
    examples=(
        "--keep-raw 30d --dry-run",
        "--keep-raw 30d --keep 365d",
    ),
)
def compact(args: _CompactArguments) -> None:
    """Merge the trials of old runs into histograms; remove old days.

    A day file has the histograms and values of all trials of a day, of which `nephoscope history`
    computes any percentile. Samples, events and reports of these runs are removed for good.
    """
    from nephoscope.features.compaction.compact import Policy
    from nephoscope.features.compaction.compact import compact as compacted
    from nephoscope.store import Store

    policy = policy_of(args.keep_raw, args.keep, args.max_size)
    if policy == Policy():
        raise UsageError(
            "`compact` needs a maximum age or size.",
            "Add --keep-raw 7d, --keep 2y or --max-size 200MB.",
        )
    done = compacted(Store(args.store), policy, watch=args.watch, is_dry_run=args.dry_run)
    for sentence in done.skipped:
        output.warn(sentence)
    if args.as_json:
        output.document(done)
    else:
        output.say(_text(done))


def policy_of(keep_raw: str | None, keep: str | None, max_size: str | None) -> Policy:
    """Returns the policy of the options' texts. Raises UsageError."""
    from nephoscope.features.compaction.compact import Policy

    policy = Policy(
        None if keep_raw is None else AGE.read(keep_raw),
        None if keep is None else AGE.read(keep),
        None if max_size is None else SIZE.read(max_size),
    )
    if policy.keep_s is not None and policy.keep_s < (policy.keep_raw_s or 0):
        raise UsageError(
            f"--keep {keep} is shorter than --keep-raw {keep_raw}.", "Keep days for longer."
        )
    return policy


def _text(done: Compaction) -> str:
    runs = f"{len(done.compacted)} run{'s'[: len(done.compacted) != 1]}"
    freed = units.format_value(done.freed_bytes, "bytes")
    verb = "would be" if done.is_dry_run else "were" if len(done.compacted) != 1 else "was"
    rows = [f"{runs} of {freed} {verb} compacted."]
    rows += [
        f"Day {removed_day.day}{f' of watch {removed_day.watch}' if removed_day.watch else ''} "
        f"{'would be' if done.is_dry_run else 'was'} removed: "
        + (
            "it is older than --keep."
            if removed_day.reason == "age"
            else "the files exceed --max-size."
        )
        for removed_day in done.removed_days
    ]
    verb = "take now" if done.is_dry_run else "take"
    rows.append(f"The day files {verb} {units.format_value(done.day_bytes, 'bytes')}.")
    return "\n".join(map(output.one_line, rows))
