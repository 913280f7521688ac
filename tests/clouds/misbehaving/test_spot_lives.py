"""Spot machines that end at a planted hazard, prices that change, machines that live on credit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import tools

from .double import ROOT, Double
from .helpers import IMAGE_NAME


def _typed(cloud: Double, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        **cloud.environment(),
        "NEPHOSCOPE_STORE": str(folder / "store"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    return subprocess.run(
        [sys.executable, "-m", "nephoscope", "cloud", *words],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def _rented(cloud: Double) -> list[str]:
    where = ["--region", "us-east-1", "--type", "t3.micro", "--image", IMAGE_NAME]
    return [*where, "--endpoint", cloud.endpoint]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [1.0, 3.0])
def test_a_campaign_notes_the_lives_of_machines_of_a_planted_hazard(
    cloud: Double, tmp_path: Path, shape: float
) -> None:
    cloud.settings(spot_life_s=40.0, spot_shape=shape, notice_s=5.0, boot_s=0.3, shutdown_s=0.3)
    words = ["survival", "ec2", *_rented(cloud), "--count", "8", "--hours", "0.02"]
    preview = _typed(cloud, tmp_path, *words, "--dry-run")
    assert "8 machines of the spot market" in preview.stdout
    assert cloud.live() == []
    refused = _typed(cloud, tmp_path, *words)
    assert "no limit is set" in refused.stderr
    done = _typed(cloud, tmp_path, *words, "--money", "1", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["whole"]
    assert found["machines"] == 8
    assert found["interruptions"] >= 3
    assert "is interrupted by the cloud" in done.stderr
    if shape == 1.0:
        assert found["rate"]["low"] <= 3600 / 40 <= found["rate"]["high"]
    assert cloud.live() == []
    again = _typed(cloud, tmp_path, "survival", "ec2", "--job", "10s")
    assert "A job of 10 s ends without an interruption" in again.stdout


@pytest.mark.slow
def test_what_cannot_be_rented_for_survival_is_one_sentence(cloud: Double, tmp_path: Path) -> None:
    for words, sentence in (
        (["survival"], "No machine of the spot market has ended here"),
        (["survival", "--dry-run"], "Nothing is rented without --hours"),
        (["survival", "ec2", "--hours", "1"], "--region and --type and --image has to be given"),
        (["survival", "--lives", "no.jsonl"], "there is no such file"),
        (
            ["survival", "hosts", "--hours", "1", "--region", "r", "--type", "t", "--image", "i"],
            "hosts has no spot market",
        ),
    ):
        done = _typed(cloud, tmp_path, *words)
        assert done.returncode != 0
        assert sentence in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.alone
@tools.needs("sshd", "ssh-keygen")
@pytest.mark.usefixtures("root_only", "probe")
def test_a_planted_credit_is_measured(cloud: Double, tmp_path: Path) -> None:
    burst, baseline, credit = 0.5, 0.15, 4.0
    cloud.settings(
        machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3,
        cpu_credit={"burst": burst, "baseline": baseline, "credit": credit},
    )  # fmt: skip
    began = time.monotonic()
    words = ["credits", "ec2", *_rented(cloud), "--money", "1", "--json"]
    done = _typed(cloud, tmp_path, *words, "--duration", "25s", "--pause", "8s", "--cycles", "2")
    cloud.reset()
    assert done.returncode == 0, done.stderr
    (series,) = json.loads(done.stdout)["burst_credits"]["series"]
    analysis = series["analysis"]
    assert analysis["verdict"] == "on credit", (analysis, time.monotonic() - began)
    share = analysis["baseline"]["value"] / analysis["burst"]["value"]
    assert share == pytest.approx(baseline / burst, rel=0.1)
    assert analysis["drain"]["value"] == pytest.approx(credit / (burst - baseline), rel=0.1)


@pytest.mark.slow
@pytest.mark.alone
@tools.needs("sshd", "ssh-keygen", "tc")
@pytest.mark.usefixtures("root_only", "probe")
def test_a_planted_credit_of_a_network_is_measured(cloud: Double, tmp_path: Path) -> None:
    burst, baseline, credit = 120e6, 30e6, 0.45e9
    cloud.settings(
        machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3,
        network_credit={"burst": burst, "baseline": baseline, "credit": credit},
    )  # fmt: skip
    words = ["credits", "ec2", *_rented(cloud), "--load", "network", "--money", "1", "--json"]
    done = _typed(cloud, tmp_path, *words, "--duration", "20s")
    cloud.reset()
    assert done.returncode == 0, done.stderr
    assert cloud.live() == []
    (series,) = json.loads(done.stdout)["burst_credits"]["series"]
    assert series["source"] == "m-1"
    analysis = series["analysis"]
    assert analysis["verdict"] == "on credit", analysis
    # Payload of TCP in frames of 1500 bytes and an Ethernet header, as the bucket counts.
    payload = 1448 / 1514 / 8
    assert analysis["burst"]["value"] == pytest.approx(burst * payload, rel=0.05)
    assert analysis["baseline"]["value"] == pytest.approx(baseline * payload, rel=0.05)
    assert analysis["drain"]["value"] == pytest.approx(credit / (burst - baseline), rel=0.1)
