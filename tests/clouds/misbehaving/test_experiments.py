"""Experiments on machines of the double, as they are typed; nothing is left after any of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import tools

from .double import ROOT, Double
from .helpers import IMAGE_NAME

pytestmark = [
    tools.needs("sshd", "ssh-keygen"),
    pytest.mark.usefixtures("root_only", "probe"),
    pytest.mark.slow,
]


@pytest.fixture
def machines(cloud: Double) -> Iterator[Double]:
    cloud.settings(machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3, lag_s=0.0)
    yield cloud
    cloud.reset()


def started(cloud: Double, folder: Path, *words: str) -> subprocess.Popen[str]:
    rented = ["--region", "us-east-1", "--type", "t3.micro", "--image", IMAGE_NAME, "--money", "1"]
    command = [sys.executable, "-m", "nephoscope", "cloud", words[0], "ec2", *rented, *words[1:]]
    environment = {
        **os.environ,
        **cloud.environment(),
        "NEPHOSCOPE_STORE": str(folder / "store"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    return subprocess.Popen(
        [*command, "--endpoint", cloud.endpoint],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result_of(process: subprocess.Popen[str]) -> Any:
    out, error = process.communicate(timeout=280)
    assert process.returncode == 0, error
    return json.loads(out)


def test_launches_are_measured_by_segment(machines: Double, tmp_path: Path) -> None:
    found = result_of(started(machines, tmp_path, "boot", "--count", "2", "--json"))
    values = {line["metric"]: line["estimate"] for line in found["metrics"]}
    answer, running, ready = (
        values[f"boot_{segment}_ns"]["value"] for segment in ("answer", "running", "reachable")
    )
    assert 0 < answer < running < ready
    assert running >= 0.3e9
    assert values["boot_reachable_ns"]["n"] == 2
    # Machines of the double have the kernel of this one, which is older than the call.
    assert "boot_kernel_ns" not in values
    instances = [each for each in machines.oracle() if each["kind"] == "instance"]
    assert len(instances) == 3
    assert machines.live() == []


def test_distances_are_measured_between_zones(machines: Double, tmp_path: Path) -> None:
    words = ("--zone", "us-east-1a", "--zone", "us-east-1b", "--repetitions", "6")
    found = result_of(
        started(machines, tmp_path, "distances", *words, "--duration", "200ms", "--json")
    )
    metrics = [line["metric"] for line in found["metrics"] if line["target"] == "m-us-east-1b"]
    assert metrics.count("goodput_bytes_per_s") == 2
    assert machines.live() == []


def test_nothing_is_left_after_an_interruption(machines: Double, tmp_path: Path) -> None:
    process = started(machines, tmp_path, "boot", "--count", "50")
    until = time.monotonic() + 120
    while len([each for each in machines.oracle() if each["kind"] == "instance"]) < 2:
        assert time.monotonic() < until
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "Interrupted" in error
    assert machines.live() == []
