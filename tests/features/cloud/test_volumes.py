"""The plan of `cloud volumes`, the rows of its result, and what it refuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nephoscope import command_line
from nephoscope.core.model import Estimate
from nephoscope.features.cloud import volumes_command
from nephoscope.features.cloud.volumes import (
    OPERATIONS,
    RANDOM_READS,
    VolumesRequest,
    plan_of,
    rows_of,
    segments_of,
    volumes_of,
)
from nephoscope.features.experiments.records import Experiment
from nephoscope.measure.targets.kinds.rented import RentedRecord

GIB, MIB = 1 << 30, 1 << 20


def request(*types: str, restores: int = 6, **more: Any) -> VolumesRequest:
    values = {"name": "m", "provider": "ec2", "region": "r", "type": "t", "image": "i", **more}
    record = RentedRecord.model_validate({**values, "volumes": volumes_of([GIB], types, None)})
    return VolumesRequest(record, "/var/tmp", 6, 1.0, 4 * MIB, restores, MIB)


def test_each_operation_is_measured_on_the_own_disk_and_on_each_volume() -> None:
    plan = plan_of(request("gp2", "gp3"), budget=600)
    *entries, restore = plan.benchmarks
    places = ["/var/tmp", "/mnt/volume-1", "/mnt/volume-2"]
    assert [entry.factors for entry in entries] == [{"directory": places}] * len(OPERATIONS)
    assert (restore.benchmark, restore.factors) == ("volume.restore", {"directory": places[1:]})
    assert restore.repeat.max == 6
    assert plan.design.baseline == {"directory": "/var/tmp"}
    assert len(plan_of(request("gp2", restores=0), budget=600).benchmarks) == len(OPERATIONS)


def estimate(value: float, unit: str = "per_s", n: int = 6) -> Estimate:
    low, high = (0.9 * value, 1.1 * value) if n >= 6 else (None, None)
    return Estimate(value, low, high, 0.95, n, unit, "median")


def line(benchmark: str, metric: str, value: Estimate, **factors: Any) -> SimpleNamespace:
    ratio = SimpleNamespace(ratio=value)
    shared = {"benchmark": benchmark, "metric": metric, "target": "m", "factors": factors}
    return SimpleNamespace(**shared, estimate=value, comparison=ratio)


def result(n: int) -> Any:
    places = {"/var/tmp": 2000.0, "/mnt/volume-1": 500.0, "/mnt/volume-2": 1000.0}
    reads = {"operation": "randread", "queue_depth": 1, "record_bytes": 4096}
    io = ("disk.io", "disk_operations_per_s")
    metrics = [
        line(*io, estimate(value, n=n), directory=place, **reads) for place, value in places.items()
    ]
    metrics += [
        line(*io, estimate(9e9), directory=place, **{**reads, **other})
        for place in places
        for other in ({"queue_depth": 32}, {"operation": "randwrite"})
    ]
    metrics.append(
        line(
            "volume.restore",
            "snapshot_complete_ns",
            estimate(3e9, "ns", n),
            directory="/mnt/volume-2",
        )
    )
    compared = [
        line(*io, estimate(value / 2000, "ratio", n), directory=place, **reads)
        for place, value in list(places.items())[1:]
    ]
    experiment = SimpleNamespace(comparisons=compared)
    return SimpleNamespace(
        metrics=metrics, part=lambda kind: experiment if kind is Experiment else None
    )


@pytest.mark.parametrize("n", [6, 3])
def test_the_answer_is_the_first_sentence(n: int) -> None:
    asked, found = request("gp2", "gp3"), result(n)
    reads = [row for row in rows_of(found, asked) if row.operation.words == RANDOM_READS]
    assert [(row.directory, row.own and row.own.value) for row in reads] == [
        ("/mnt/volume-1", 2000.0),
        ("/mnt/volume-2", 2000.0),
    ]
    assert [row.volume and row.volume.value for row in reads] == [500.0, 1000.0]
    assert len(segments_of(found, asked)) == 1
    text = volumes_command._text(found, asked).splitlines()
    interval = "[0.225, 0.275]" if n == 6 else "no interval"
    own = "random reads of the own disk at depth 1"
    assert text[0] == f"The volume (gp2, 1GiB) does 0.250 {interval} times the {own} (n = {n})."
    assert text[1].startswith("The volume (gp3, 1GiB) does 0.500 ")
    assert any("snapshot: call to complete" in row and "3.00 s" in row for row in text)


def test_a_run_without_values_says_so() -> None:
    empty: Any = SimpleNamespace(metrics=[], part=lambda kind: None)
    text = volumes_command._text(empty, request("gp2"))
    assert "too few valid trials for a ratio" in text.splitlines()[0]
    assert "SHA-256" not in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--size", "0B"], "A volume of 0 bytes is no volume."),
        (["--size", "100MiB"], "Files of 64MiB are more than half of a volume of 100MiB"),
        (["--size", "1GiB", "--data", "600MiB"], "Files of 600MiB are more than half"),
        (["--size", "1"], "--size"),
        (["--size", "1GiB", "--restores", "-1"], "--restores"),
        (["--size", "1GiB", "--repetitions", "5"], "--repetitions"),
        (["--size", "1GiB", "--volume-price", "-1"], "--volume-price"),
        ([f"--size={n}GiB" for n in range(1, 10)], "9 volumes are more than a machine gets"),
        (["--size", "9000TiB"], "A volume of 9000TiB is larger than 1024TiB"),
        ([], "--size"),
    ],
)
def test_bad_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    rented = ["--region", "r", "--type", "t", "--image", "i", "--money", "1"]
    assert command_line.main(["cloud", "volumes", "hosts", *rented, *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error
