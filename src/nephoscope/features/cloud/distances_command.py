"""`distances` of `nephoscope cloud`: round trip and throughput between the zones of a region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import Excluded, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.options import Count, duration, option, repeated
from nephoscope.features.cloud.command import cloud
from nephoscope.features.cloud.estimates import estimate_cells
from nephoscope.features.cloud.rented_options import MachineOptions

if TYPE_CHECKING:
    from nephoscope.core.model import Estimate, RunResult

_SPARE = 3.0
"""The default of --budget as a multiple of the time of all trials, plus that to begin."""
_BEGIN_S = 300.0


@dataclass(frozen=True, slots=True)
class _DistancesArguments:
    machines: MachineOptions = options.group(MachineOptions)
    zones: Sequence[str] = repeated("--zone", "ZONE", "Zone of the region.", required=True)
    rounds: int = option("--repetitions", Count(6, 1000), "Trials of each pair.", default=8)
    duration_s: float = option(
        "--duration", duration("200 ms", "10 min"), "Time of a trial.", default="1s"
    )
    seed: int | None = options.SEED
    budget: float | None = options.BUDGET
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    as_json: bool = options.JSON
    dry_run: bool = options.DRY_RUN


@command(cloud, prints={"": RESULT, "--dry-run": PREVIEW}, requests=Excluded("rents machines"))
def distances(args: _DistancesArguments) -> int:
    """Measure round trip and throughput between zones.

    Rents one machine in each zone and measures each pair in both directions, pairs in random order.
    The machines are removed in the end. A security group lets in its own members only, so that
    zones of several regions cannot be measured so.
    """
    from nephoscope.features.cloud.distances import machines_of, plan_of
    from nephoscope.store import Store

    record = args.machines.record(tuple(dict.fromkeys(args.zones)))
    number = len(machines_of(record))
    trials_s = 3 * number * (number - 1) / 2 * (args.rounds + 1) * (args.duration_s + 1)
    plan = plan_of(
        record,
        args.rounds,
        args.duration_s,
        budget=args.budget or _BEGIN_S + _SPARE * trials_s,
        seed=args.seed,
        **args.machines.spending(),
    )
    return measuring.run_or_preview(
        plan,
        Store(args.store),
        as_json=args.as_json,
        fresh=True,
        dry_run=args.dry_run,
        lab_for="",
        text_of=lambda result: _text(result, machines_of(record)),
    )


def _text(result: RunResult, machines: Mapping[str, str]) -> str:
    from nephoscope.features.cloud import distances as analysis

    distances_by_pair = analysis.matrix(result, machines)
    zones = list(machines.values())
    rtts = {(pair.zone_a, pair.zone_b): pair.rtt for pair in distances_by_pair}
    goodputs = {(pair.zone_a, pair.zone_b): pair.goodput for pair in distances_by_pair}
    goodputs |= {(pair.zone_b, pair.zone_a): pair.goodput_back for pair in distances_by_pair}
    rows = [(words, *estimate_cells(value)) for words, value in analysis.rows_of(distances_by_pair)]
    return "\n\n".join(
        [
            "Round trip, median (p50):\n" + _matrix(zones, rtts),
            "TCP goodput from the zone of the row to that of the column, median:\n"
            + _matrix(zones, goodputs),
            output.table(("between zones", "median", "interval", "n"), rows, right=(1, 2, 3)),
        ]
    )


def _matrix(zones: Sequence[str], values: Mapping[tuple[str, str], Estimate | None]) -> str:
    rows = [(row, *(_cell(values, row, column) for column in zones)) for row in zones]
    return output.table(("zone", *zones), rows, right=tuple(range(1, len(zones) + 1)))


def _cell(values: Mapping[tuple[str, str], Estimate | None], row: str, column: str) -> str:
    return estimate_cells(values[row, column])[0] if (row, column) in values else ""
