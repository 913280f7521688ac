"""`where` of `nephoscope cloud`: run here and keep the data there?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.features.cloud.command import cloud


@dataclass(frozen=True, slots=True)
class _WhereArguments:
    run: str = argument(RUN, metavar="[RUN]", default="latest")
    data: str = option(
        "--data", "SIZE[@PLACE]", "Data of the job, and where they are [each place].", required=True
    )
    compute: Sequence[str] = repeated(
        "--compute", "TIME@PLACE", "How long the job computes there.", required=True
    )
    by: str = option(
        "--by", "BENCHMARK", "Benchmark of the run whose speeds give the other places.", default=""
    )
    per_hour: Sequence[str] = repeated(
        "--per-hour", "PRICE@PLACE", "Price of an hour there [default: that of the run]."
    )
    per_gib_out: Sequence[str] = repeated(
        "--per-gib-out", "PRICE@PLACE", "Price of a GiB that leaves [default: that of the run]."
    )
    per_gib_zones: Sequence[str] = repeated(
        "--per-gib-zones",
        "PRICE@PLACE",
        "Price of a GiB to other zones of its region [default: that of the run].",
    )
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("where", ".features.cloud.where:WhereToRun"),
    requests=Query(needs=("data", "compute")),
    examples=(
        "--data 200GB@us-east-1a --compute 10h@us-east-1a --compute 2h@eu-west-1",
        "latest --data 200GB@us-east-1a --compute 10h@us-east-1a --per-hour 0.10@us-east-1a",
    ),
)
def where(args: _WhereArguments) -> int:
    """Decide where a job runs best whose data are elsewhere.

    RUN is a run of `cloud distances`. Of each place to run at, and each place of the data: time to
    transfer and to compute, and what both cost, with intervals.
    """
    from nephoscope.features.cloud.distance_records import CloudDistances
    from nephoscope.features.cloud.where import PlacedJob, decide
    from nephoscope.features.cloud.where_section import section
    from nephoscope.results import analyse_run
    from nephoscope.store import Store

    run = Store(args.store).open(args.run)
    distances = analyse_run.build(run).part(CloudDistances)
    if distances is None:
        raise UsageError(
            f"Run {run.id} has no distances between places.",
            "Name a run of `nephoscope cloud distances`.",
        )
    size, _, data_at = args.data.partition("@")
    job = PlacedJob(
        units.parse_bytes(size),
        data_at,
        {place: value / 1e9 for place, value in _at(args.compute, _ns, "--compute").items()},
        args.by,
        _at(args.per_hour, _price, "--per-hour"),
        _at(args.per_gib_out, _price, "--per-gib-out"),
        _at(args.per_gib_zones, _price, "--per-gib-zones"),
    )
    decided = decide(distances, job)
    return present(
        decided, section(decided), as_json=args.as_json, to=args.to, source=f"run {run.id}"
    )


def _ns(text: str) -> float:
    return float(units.parse_duration_ns(text, likely=("min", "h")))


def _price(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"'{text}' is no price.", "Write a number that is not negative.")
    return value


def _at(texts: Sequence[str], read: Callable[[str], float], option_name: str) -> dict[str, float]:
    """Returns place -> value of texts VALUE@PLACE. Raises UsageError."""
    values: dict[str, float] = {}
    for text in texts:
        value, at, place = text.partition("@")
        if not at or not place or not value:
            raise UsageError(
                f"'{text}' of {option_name} names no place.", f"Write {option_name} VALUE@PLACE."
            )
        if place in values:
            raise UsageError(f"{option_name} names {place} twice.", "Give one value for each.")
        values[place] = read(value)
    return values
