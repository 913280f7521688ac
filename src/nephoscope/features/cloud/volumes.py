"""Volumes beside the disk of their machine: the plan, the ratios, the segments of a restoration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope import catalog
from nephoscope.catalog.instruments import DISK_IO, DISK_SYNC, VOLUME_RESTORE
from nephoscope.core.model import Estimate, MetricResult, RunResult
from nephoscope.core.records import dataclass
from nephoscope.features.experiments.records import Against, Experiment
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds.rented import RentedRecord, VolumeRecord

RANDOM_READS = "random reads, depth 1"

SEGMENTS = {
    "volume_create_ns": "volume: call to ready",
    "volume_attach_ns": "volume: attach to device in the guest",
    "volume_write_bytes_per_s": "volume: durable write of the data",
    "volume_detach_ns": "volume: detach to no device in the guest",
    "snapshot_complete_ns": "snapshot: call to complete",
    "restore_create_ns": "restored volume: call to ready",
    "restore_attach_ns": "restored volume: attach to device in the guest",
    "restore_first_block_ns": "restored volume: first block",
    "restore_usable_ns": "restored volume: call to first block read",
    "restore_first_read_bytes_per_s": "restored volume: first read of the data",
    "restore_second_read_bytes_per_s": "restored volume: second read of the data",
    "restore_first_to_second_ratio": "restored volume: first rate / second rate",
    "volume_delete_ns": "volume: delete to listed no more",
    "snapshot_delete_ns": "snapshot: delete to listed no more",
}
"""Metric of volume.restore -> its segment in words, in order."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that is done to a disk. metric: of which the ratio is taken; factors: parameters
    that tell it from others of its benchmark."""

    words: str
    benchmark: str
    metric: str
    factors: Mapping[str, Any]


def _io(words: str, operation: str, depth: int, record_bytes: int, metric: str) -> Operation:
    factors = {"operation": operation, "queue_depth": depth, "record_bytes": record_bytes}
    return Operation(words, DISK_IO, metric, factors)


_RATE, _BYTES = "disk_operations_per_s", "disk_bytes_per_s"
OPERATIONS = (
    _io(RANDOM_READS, "randread", 1, 4096, _RATE),
    _io("random reads, depth 32", "randread", 32, 4096, _RATE),
    _io("random writes, depth 1", "randwrite", 1, 4096, _RATE),
    _io("random writes, depth 32", "randwrite", 32, 4096, _RATE),
    _io("sequential reads", "read", 4, 1 << 20, _BYTES),
    _io("sequential writes", "write", 4, 1 << 20, _BYTES),
    Operation("durable writes (fsync)", DISK_SYNC, "sync_latency_p50_ns", {}),
)
"""What is measured, in the order of the table."""


@dataclass(frozen=True, slots=True)
class VolumesRequest:
    """What is measured. record: the machines, with their volumes. own: directory on the machine's
    own disk. restores: repetitions of a snapshot and restoration of each volume; 0 for none."""

    record: RentedRecord
    own: str
    rounds: int
    duration_s: float
    file_bytes: int
    restores: int
    data_bytes: int


def volumes_of(
    sizes: Sequence[int], types: Sequence[str], per_gib_hour: float | None
) -> tuple[VolumeRecord, ...]:
    """Returns a volume for each size and type, all of which a machine gets at the same time."""
    return tuple(
        VolumeRecord(size=size, type=type_, per_gib_hour=per_gib_hour)
        for size in dict.fromkeys(sizes)
        for type_ in dict.fromkeys(types)
    )


def plan_of(request: VolumesRequest, **more: Any) -> Plan:
    """Returns the plan: each operation on the own disk and on each volume of each machine, in
    random order, and restorations among them. more: further keys of the plan."""
    record = request.record
    places = [volume.directory for volume in record.volumes]
    factors = {"directory": [request.own, *places]}
    timeout = f"{request.duration_s * 2 + 300!r}s"
    entries: list[dict[str, Any]] = []
    for operation in OPERATIONS:
        params = {**operation.factors, "duration_ns": f"{request.duration_s!r}s"}
        if operation.benchmark == DISK_IO:
            params["file_bytes"] = request.file_bytes
        entries.append(
            {
                "benchmark": operation.benchmark,
                "params": params,
                "factors": factors,
                "timeout": timeout,
            }
        )
    if request.restores:
        entries.append(
            {
                "benchmark": VOLUME_RESTORE,
                "params": {"data_bytes": request.data_bytes},
                "factors": {"directory": places},
                "timeout": "1h",
                "repeat": {"min": request.restores, "max": request.restores},
            }
        )
    values = {
        "name": "cloud-volumes",
        "question": "How fast is a volume beside the machine's own disk, and how long does it take "
        "to copy and restore it?",
        "targets": [record],
        "benchmarks": entries,
        "repeat": {"min": request.rounds, "max": request.rounds},
        "warmup": 0,
        "design": {"baseline": {"directory": request.own}},
        **more,
    }
    return from_values(values, catalog.load(), lambda _: "")


@dataclass(frozen=True, slots=True)
class VolumeRow:
    """One operation on the own disk of a machine and on a volume. ratio: of the volume's value to
    the own disk's of the same round; None where there is none."""

    target: str
    directory: str
    operation: Operation
    own: Estimate | None
    volume: Estimate | None
    ratio: Estimate | None


def rows_of(result: RunResult, request: VolumesRequest) -> list[VolumeRow]:
    """Returns every operation on each volume of each machine, in the order of the plan."""
    experiment = result.part(Experiment)
    compared = experiment.comparisons if experiment is not None else ()
    return [
        VolumeRow(
            machine.name,
            volume.directory,
            operation,
            _estimate(result, operation, machine.name, request.own),
            _estimate(result, operation, machine.name, volume.directory),
            _ratio(compared, operation, machine.name, volume.directory),
        )
        for machine in request.record.each()
        for volume in machine.volumes
        for operation in OPERATIONS
    ]


def _is_of(line: MetricResult | Against, operation: Operation, target: str, place: str) -> bool:
    own = {**operation.factors, "directory": place}
    return (line.benchmark, line.metric, line.target) == (
        operation.benchmark,
        operation.metric,
        target,
    ) and all(line.factors.get(name, value) == value for name, value in own.items())


def _estimate(result: RunResult, operation: Operation, target: str, place: str) -> Estimate | None:
    lines = (line for line in result.metrics if _is_of(line, operation, target, place))
    return next((line.estimate for line in lines), None)


def _ratio(
    compared: Sequence[Against], operation: Operation, target: str, place: str
) -> Estimate | None:
    lines = (line for line in compared if _is_of(line, operation, target, place))
    return next((line.comparison.ratio for line in lines), None)


def segments_of(
    result: RunResult, request: VolumesRequest
) -> list[tuple[str, str, str, Estimate | None]]:
    """Returns machine, directory, segment in words and its median, in order."""
    rows: list[tuple[str, str, str, Estimate | None]] = []
    for machine in request.record.each():
        for volume in machine.volumes:
            for metric, words in SEGMENTS.items():
                operation = Operation(words, VOLUME_RESTORE, metric, {})
                estimate = _estimate(result, operation, machine.name, volume.directory)
                if estimate is not None:
                    rows.append((machine.name, volume.directory, words, estimate))
    return rows
