"""`cloud volumes` on machines of the double, whose disks and snapshots have planted speeds."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.hardware import Feature, lacking

from . import disks
from .double import ROOT, Double
from .helpers import IMAGE_NAME

pytestmark = [
    tools.needs("sshd", "ssh-keygen"),
    pytest.mark.usefixtures("root_only", "probe"),
    pytest.mark.slow,
]

OWN_IOPS, VOLUME_IOPS = 2000, 500
SNAPSHOT_S, ATTACH_S, LAZY = 2.0, 0.5, 4 << 20
DATA = 4 << 20
LISTED_S, LOOKED_S, CALLS_S = 0.5, 0.2, 0.5
"""How late a change is seen, by the page of `volume.restore`; and what calls take here."""

WORDS = ["--size", "1GiB", "--volume-type", "gp2", "--file-size", "2MiB", "--data", "4MiB"]
PROGRAM = """
import sys
from dataclasses import replace
from nephoscope.command_line import main
from nephoscope.measure.cloud import volumes
from nephoscope.measure.cloud.providers.ec2 import Ec2
Ec2.traits = replace(Ec2.traits, settle_s=0.1)
volumes.DEVICE_S = 3.0
sys.exit(main())
"""
"""The command, for a double whose answers are never old and whose devices show at once."""

QUICK = ["--repetitions", "6", "--duration", "50ms", "--restores", "1"]


@pytest.fixture
def machines(cloud: Double) -> Iterator[Double]:
    if not disks.are_there():
        lacking(Feature.BLOCK_THROTTLING)
    cloud.settings(
        machines=True,
        boot_s=0.3,
        stop_s=0.3,
        shutdown_s=0.3,
        lag_s=0.0,
        disk_iops=OWN_IOPS,
        volume_iops={"gp2": VOLUME_IOPS},
        volume_s=0.5,
        image_s=SNAPSHOT_S,
        attach_s=ATTACH_S,
        lazy_bytes_per_s=LAZY,
        lazy_bytes=DATA,
    )
    yield cloud
    cloud.reset()


def volumes(cloud: Double, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    rented = ["--region", "us-east-1", "--type", "t3.micro", "--image", IMAGE_NAME, "--money", "1"]
    command = [sys.executable, "-c", PROGRAM, "cloud", "volumes", "ec2", *rented, *words]
    environment = {
        **os.environ,
        **cloud.environment(),
        "NEPHOSCOPE_STORE": str(folder / "store"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    return subprocess.run(
        [*command, "--endpoint", cloud.endpoint],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=580,
    )


@pytest.mark.alone
def test_planted_speeds_and_times_are_recovered(machines: Double, tmp_path: Path) -> None:
    done = volumes(
        machines, tmp_path, *WORDS, "--repetitions", "6", "--duration", "500ms", "--json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    compared = {
        (line["factors"]["operation"], line["factors"]["queue_depth"]): line["comparison"]["ratio"]
        for part in [found["experiment"]]
        for line in part["comparisons"]
        if line["metric"] == "disk_operations_per_s"
    }
    planted = VOLUME_IOPS / OWN_IOPS
    for depth in (1, 32):
        ratio = compared["randread", depth]
        # The block layer keeps to its limits within 5 %, each of both.
        assert ratio["low"] / 1.1 < planted < ratio["high"] * 1.1, (depth, ratio)
        assert ratio["value"] == pytest.approx(planted, rel=0.25)
        assert ratio["n"] == 6
    seconds: dict[str, Any] = {
        line["metric"]: line["estimate"]
        for line in found["metrics"]
        if line["benchmark"] == "volume.restore"
    }

    def seen(metric: str, truth_s: float, late_s: float) -> None:
        value_s = seconds[metric]["value"] / 1e9
        assert truth_s <= value_s <= truth_s + late_s + CALLS_S, (metric, value_s)
        assert seconds[metric]["n"] == 6
        assert seconds[metric]["low"] <= seconds[metric]["value"] <= seconds[metric]["high"]

    seen("snapshot_complete_ns", SNAPSHOT_S, LISTED_S)
    seen("volume_create_ns", 0.5, LISTED_S)
    seen("restore_create_ns", 0.5, LISTED_S)
    seen("volume_attach_ns", ATTACH_S, LOOKED_S)
    seen("restore_usable_ns", 0.5 + ATTACH_S, LISTED_S + LOOKED_S + CALLS_S)
    assert seconds["restore_first_read_bytes_per_s"]["value"] == pytest.approx(LAZY, rel=0.1)
    assert seconds["restore_first_to_second_ratio"]["value"] < 0.5
    assert machines.live() == []
    made = [each["kind"] for each in machines.oracle()]
    # The root disk, the mounted volume, and in each of six restorations a source and a copy.
    assert (made.count("snapshot"), made.count("volume")) == (6, 2 + 2 * 6)
    assert machines.defects() == []


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("no-device", "the guest shows no new device after 3 s"),
        ("mounted-device", "as /dev/xvdf, which is mounted already; nothing was written to it"),
    ],
)
def test_a_device_that_is_not_to_be_trusted_is_one_sentence(
    machines: Double, tmp_path: Path, fault: str, sentence: str
) -> None:
    machines.fault(fault, next=1)
    done = volumes(machines, tmp_path, *WORDS, *QUICK)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert machines.live() == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--size", "1GiB", "--volume-type", "fast"], "Unsupported volume type 'fast'"),
        (
            ["--size", "20TiB", "--volume-type", "gp3", "--money", "9"],
            "too large for volume type gp3; maximum is",
        ),
        (["--size", "1GiB", "--volume-type", "io2"], "The price of volumes (io2) in us-east-1"),
        (["--size", "1GiB", "--volume-type", "gp2", "--zone", "x"], "has no zone 'x'"),
    ],
)
def test_what_the_cloud_does_not_make_is_one_sentence(
    machines: Double, tmp_path: Path, words: list[str], sentence: str
) -> None:
    price = ["--volume-price", "0.0001"] if words[3] == "fast" else []
    done = volumes(machines, tmp_path, *words, *price, *QUICK)
    assert done.returncode != 0
    assert sentence in done.stderr, done.stderr
    assert machines.live() == []


def test_the_quota_of_volumes_is_one_sentence(machines: Double, tmp_path: Path) -> None:
    machines.quota("volumes", 1)
    done = volumes(machines, tmp_path, *WORDS, *QUICK)
    assert done.returncode != 0
    assert "more volumes than your current limit of 1 allows" in done.stderr
    assert machines.live() == []


def test_a_restored_volume_with_other_data_is_a_named_failure(
    machines: Double, tmp_path: Path
) -> None:
    machines.fault("rotten-snapshot", next=1)
    done = volumes(machines, tmp_path, *WORDS, *QUICK, "--restores", "2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (invalid,) = (line for line in found["invalid"] if line["benchmark"] == "volume.restore")
    assert "wrong_data" in json.dumps(invalid)
    assert machines.live() == []


def test_the_commands_of_the_guide_rent_and_remove(machines: Double, tmp_path: Path) -> None:
    guide = ROOT / "docs" / "how-to" / "cloud-experiments.md"
    lines = re.findall(r"^\$ nephoscope cloud volumes ec2 (.*)$", guide.read_text("utf-8"), re.M)
    assert len(lines) == 2
    outputs = []
    for line in lines:
        done = volumes(machines, tmp_path, *shlex.split(line), *WORDS[4:], *QUICK)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    preview, text = outputs
    assert "gp2, 1GiB, in ec2 us-east-1 (us-east-1a)" in preview
    assert "Rent: 1 machine" in preview
    first = text.splitlines()[0]
    assert first.startswith("The volume (gp2, 1GiB) does ")
    assert first.endswith(" times the random reads of the own disk at depth 1 (n = 6).")
    assert "snapshot: call to complete" in text
    assert machines.live() == []
