"""`volumes` of `nephoscope cloud`: volumes beside a machine's own disk, snapshots, restorations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Excluded, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.options import SIZE, Count, duration, option, repeated
from nephoscope.cli.kit.run_options import RunOptions
from nephoscope.core import limits, units
from nephoscope.core.errors import UsageError
from nephoscope.features.cloud.command import cloud
from nephoscope.features.cloud.estimates import estimate_cells
from nephoscope.features.cloud.rented_options import MachineOptions

if TYPE_CHECKING:
    from nephoscope.core.model import Estimate, RunResult
    from nephoscope.features.cloud.volumes import VolumesRequest

_BEGIN_S, _RESTORE_S = 300.0, 300.0
"""Time until the volumes are mounted, and for one restoration, for the default of --budget."""

_SPARE = 4.0
"""The same for trials of the disks, as a multiple of their duration: each fills its file first."""


@dataclass(frozen=True, slots=True)
class _VolumesArguments:
    machines: MachineOptions = options.group(MachineOptions)
    sizes: Sequence[int] = repeated("--size", SIZE, "Size of a volume.", required=True)
    zones: Sequence[str] = repeated("--zone", "ZONE", "Zone [default: the cloud's choice].")
    volume_types: Sequence[str] = repeated(
        "--volume-type", "TYPE", "Type of a volume [default: the cloud's]."
    )
    volume_price: float | None = option(
        "--volume-price",
        options.FiniteRange(0),
        "Price of a GiB for an hour, of volumes and snapshots, where the cloud lists none.",
    )
    own: str = option(
        "--own-directory", "PATH", "Directory on the machine's own disk.", default="/var/tmp"
    )
    rounds: int = option("--repetitions", Count(6, 1000), "Trials of each operation.", default=10)
    duration_s: float = option(
        "--duration", duration("50 ms", "10 min"), "Time of a trial.", default="1s"
    )
    file_bytes: int = option("--file-size", SIZE, "Size of the file of a trial.", default="64MiB")
    restores: int = option(
        "--restores", Count(0, 1000), "Snapshots and restorations of each volume.", default=6
    )
    data_bytes: int = option(
        "--data", SIZE, "Data that are written, copied and read again.", default="64MiB"
    )
    run: RunOptions = options.group(RunOptions)


@command(
    cloud,
    prints={"": RESULT, "--dry-run": PREVIEW},
    requests=Excluded("rents machines"),
    examples=(
        "ec2 --region us-east-1 --zone us-east-1a --type t3.micro --image "
        "debian-12-amd64-20260801-1200 --size 1GiB --volume-type gp2 --money 1 --dry-run",
        "ec2 --region us-east-1 --type t3.micro --image debian-12-amd64-20260801-1200 --size "
        "10GiB --money 1 --restores 3",
    ),
)
def volumes(args: _VolumesArguments) -> int:
    """Measure volumes beside the machine's own disk, and snapshots.

    Rents a machine of each type, image and zone, with a volume of each size and type. Reads and
    writes on volumes and the own disk are interleaved in random order. Volumes are copied as
    snapshots and restored --restores times. Everything is removed in the end.
    """
    from nephoscope.features.cloud.volumes import plan_of

    request = _request(args)
    return args.run.carry_out(
        plan_of(
            request,
            budget=args.run.budget or _budget_s(request),
            seed=args.run.seed,
            **args.machines.spending(),
        ),
        lambda result: _text(result, request),
    )


def _request(args: _VolumesArguments) -> VolumesRequest:
    from nephoscope.features.cloud.volumes import VolumesRequest, volumes_of

    if (smallest := min(args.sizes)) <= 0:
        raise UsageError(
            f"A volume of {smallest} bytes is no volume.", "Write, for example, --size 8GiB."
        )
    if (largest := max(args.sizes)) > limits.VOLUME_BYTES:
        raise UsageError(
            f"A volume of {units.written(largest, 'bytes')} is larger than "
            f"{units.written(limits.VOLUME_BYTES, 'bytes')}, and no cloud makes it.",
            "Give a smaller --size.",
        )
    needed = max(args.file_bytes, args.data_bytes if args.restores else 0)
    if needed > smallest // 2:
        raise UsageError(
            f"Files of {units.written(needed, 'bytes')} are more than half of a volume of "
            f"{units.written(smallest, 'bytes')}, which has a file system too.",
            "Give a larger --size, or a smaller --file-size and --data.",
        )
    record = args.machines.record(tuple(dict.fromkeys(args.zones)) or ("any",))
    made = volumes_of(args.sizes, args.volume_types or [""], args.volume_price)
    if len(made) > limits.VOLUMES:
        raise UsageError(
            f"{len(made)} volumes are more than a machine gets here, which is {limits.VOLUMES}.",
            "Give fewer --size and --volume-type, and run the command again for the others.",
        )
    return VolumesRequest(
        record.model_validate({**dict(record), "volumes": made}),
        args.own,
        args.rounds,
        args.duration_s,
        args.file_bytes,
        args.restores,
        args.data_bytes,
    )


def _budget_s(request: VolumesRequest) -> float:
    from nephoscope.features.cloud.volumes import OPERATIONS

    machines = list(request.record.each())
    places = len(request.record.volumes)
    trial_s = _SPARE * (request.duration_s + 1)
    trials_s = len(OPERATIONS) * (1 + places) * request.rounds * trial_s
    return _BEGIN_S + len(machines) * (trials_s + places * request.restores * _RESTORE_S)


def _text(result: RunResult, request: VolumesRequest) -> str:
    from nephoscope.features.cloud import volumes as analysis

    names = {volume.directory: str(volume) for volume in request.record.volumes}
    rows = analysis.rows_of(result, request)
    has_several = len(list(request.record.each())) > 1
    lines = [
        _sentence(row.ratio, names[row.directory], f" of {row.target}" if has_several else "")
        for row in rows
        if row.operation.words == analysis.RANDOM_READS
    ]
    table = [
        (
            row.target,
            names[row.directory],
            row.operation.words,
            _with_interval(row.own),
            _with_interval(row.volume),
            *estimate_cells(row.ratio and replace(row.ratio, unit="none")),
        )
        for row in rows
    ]
    head = ("machine", "volume", "operation", "own disk", "volume", "ratio", "interval", "n")
    parts = ["\n".join(lines), output.table(head, table, right=(3, 4, 5, 6, 7))]
    if segments := analysis.segments_of(result, request):
        cells = [
            (target, names[place], words, *estimate_cells(estimate))
            for target, place, words, estimate in segments
        ]
        parts += [
            output.table(
                ("machine", "volume", "segment", "median", "interval", "n"), cells, right=(3, 4, 5)
            ),
            "Every restored volume held what was written before (SHA-256). States of the cloud are "
            "seen up\nto 0.5 s late, devices of the guest up to 0.2 s.",
        ]
    return "\n\n".join(parts)


def _sentence(ratio: Estimate | None, volume: str, machine: str) -> str:
    own = f"random reads of the own disk{machine} at depth 1"
    if ratio is None:
        return f"The volume ({volume}) and the {own} have too few valid trials for a ratio."
    value, interval, n = estimate_cells(replace(ratio, unit="none"))
    bounds = interval if interval != "none" else "no interval"
    return f"The volume ({volume}) does {value} {bounds} times the {own} (n = {n})."


def _with_interval(estimate: Estimate | None) -> str:
    value, interval, _ = estimate_cells(estimate)
    return value if interval == "none" else f"{value} {interval}"
