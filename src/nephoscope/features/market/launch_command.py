"""`nephoscope launches`: how long machines take to start, by segment and provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import did_you_mean, listed
from nephoscope.features.market.command import NOTHING

if TYPE_CHECKING:
    from nephoscope.store import Store
    from nephoscope.store.market.records import PublishedLaunch

_SEGMENTS = ("answer", "kernel", "userland", "ready", "script", "container")


@dataclass(frozen=True, slots=True)
class _LaunchArguments:
    file: Path | None = argument(options.PATH, required=False, metavar="[FILE.csv]")
    runs: Sequence[str] = repeated("--run", RUN, "Stored run with boots, to compare with them.")
    providers: Sequence[str] = repeated("--provider", "NAME", "Provider of the launches.")
    segment: str = option(
        "--segment", click.Choice(_SEGMENTS), "Segment to compare providers by.", default="ready"
    )
    confidence: float = options.CONFIDENCE
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("launch_times", ".features.market.launch_records:ProviderLaunchTimes"),
    requests=Query(),
    examples=(
        "",
        "--segment answer -o launches.html",
    ),
)
def launches(args: _LaunchArguments) -> int:
    """Compare how long machines take to start, by provider.

    The launches are those of published measurements that were imported (`nephoscope import`), or of
    FILE.csv, with the columns provider, type, run and the moments of a launch; --run adds your own.
    """
    from nephoscope.features.market import launch_analysis, launch_files, own_launches
    from nephoscope.features.market.launch_section import launch_section
    from nephoscope.store import Store

    store = Store(args.store)
    if args.file is not None:
        launches, source = launch_files.read(args.file), args.file.name
    else:
        launches, source = _imported(store, required=not args.runs)
    own = own_launches.read(args.runs, store) if args.runs else []
    known = sorted({launch.provider for launch in launches})
    for name in args.providers:
        if name not in known:
            raise UsageError(
                f"--provider: there is no launch at '{name[:40]}'{did_you_mean(name, known)}.",
                f"Providers: {listed(known, 20)}." if known else "",
            )
    if args.providers:
        launches = [launch for launch in launches if launch.provider in args.providers]
    launches = [*launches, *own]
    if not launches:
        raise UsageError("No launches were imported.", "Import data with the task `timing`.")
    record = launch_analysis.analyse(launches, args.segment, source, args.confidence)
    if own:
        record = replace(record, notes=(*record.notes, own_launches.NOTE))
    return present(record, launch_section(record), as_json=args.as_json, to=args.to, source=source)


def _imported(store: Store, *, required: bool) -> tuple[list[PublishedLaunch], str]:
    from nephoscope.store.market.catalogue import MarketCatalogue

    catalogue = MarketCatalogue.of_store(store.path)
    if catalogue is not None:
        return catalogue.metadata.launches, "Spare Cores"
    if required:
        raise UsageError(*NOTHING)
    return [], "own runs"
