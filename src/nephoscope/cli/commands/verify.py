"""`nephoscope verify [RUN…]`: compares the files of a store with their digests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.documents import Rows
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument
from nephoscope.core.counting import counted
from nephoscope.core.errors import LaterFormat, StoreError

if TYPE_CHECKING:
    from nephoscope.store import StoredRun
    from nephoscope.store.day_files import DayFile


@dataclass(frozen=True, slots=True)
class VerifiedRuns:
    """Runs whose files were compared with their digests.

    damaged: sentences; run: may be empty, or the path of a day file.
    """

    runs: Rows


@dataclass(frozen=True, slots=True)
class _Verified:
    """One run or day file: trials as they were stored, without a digest, and what is damaged.

    unreadable: a sentence for what a later version of the program wrote.
    """

    run: str
    verified: int
    unverified: int
    damaged: tuple[str, ...]
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _VerifyArguments:
    names: Sequence[str] = argument(RUN, metavar="[RUN]...", nargs=-1)
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("verified_runs", VerifiedRuns),
    requests=Query(),
    examples=(
        "",
        "latest",
    ),
)
def verify(args: _VerifyArguments) -> int:
    """Check the files of stored runs against their digests.

    RUN is a run id, a unique prefix of one, or `latest`; without one, checks all runs and day
    files. Exits with 1 if a file is damaged, missing or of a later format version. Trials that were
    stored without digests are unverified.
    """
    from nephoscope.store import Store, StoredRun, day_files

    run_store = Store(args.store)
    runs = (
        [run_store.find(name) for name in args.names]
        if args.names
        else [StoredRun(run_store.runs_path / name) for name in run_store.ids()]
    )
    run_store.fetch_again([run.id for run in runs])
    results = [_verified(run) for run in counted(runs, "Checking runs")]
    if not args.names:
        results += [
            _verified_day(run_store.path, file) for file in day_files.day_files(run_store.path)
        ]
    if args.as_json:
        output.document({"runs": results})
    else:
        output.say("\n".join(map(_text, results)) or f"No runs in {run_store.address}.")
    return int(any(result.damaged or result.unreadable for result in results))


def _verified(run: StoredRun) -> _Verified:
    try:
        integrity = run.integrity()
    except LaterFormat as error:
        return _Verified(run.id, 0, 0, (), (str(error),))
    except StoreError as error:
        return _Verified(run.id, 0, 0, (str(error),))
    return _Verified(run.id, integrity.verified, integrity.unverified, integrity.damaged)


def _verified_day(store: Path, file: DayFile) -> _Verified:
    from nephoscope.store import day_files

    damaged: list[str] = []
    later: list[str] = []
    trials = sum(run.trials for run in day_files.read(file.path, damaged, later))
    name = str(file.path.relative_to(store))
    return _Verified(name, trials, 0, tuple(damaged), tuple(later))


def _text(result: _Verified) -> str:
    counts = (("verified", result.verified), ("unverified", result.unverified))
    parts = [f"{n} trial{'s'[: n != 1]} {word}" for word, n in counts if n]
    parts += [f"{len(result.damaged)} damaged"] if result.damaged else []
    parts += ["not verified: of a later format version"] if result.unreadable else []
    head = f"{result.run}: " if result.run else ""
    lines = [f"{head}{', '.join(parts) or 'no trials'}"]
    sentences = (*result.damaged, *result.unreadable)
    return "\n".join([*lines, *(f"  {sentence}" for sentence in sentences)])
