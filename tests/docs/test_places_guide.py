"""The commands of the guide to distances between places, on a cloud that is a double of EC2."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.clouds.misbehaving import double as doubles
from tests.clouds.misbehaving.catalogue import image_id
from tests.tools import needs

from nephoscope import command_line
from nephoscope.features.cloud.places import FORM, KEYS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "cloud-places.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope (.*)$", TEXT, re.M)
NAME = "debian-12-amd64-20260801-1200"
CLUSTER_S, ZONE_S, REGIONS_S = 0.001, 0.004, 0.02
PATHS = [
    ["cluster", "cluster", CLUSTER_S, 200e6],
    ["us-east-1", "us-east-1", ZONE_S, 100e6],
    ["us-east-1", "eu-west-1", REGIONS_S, 50e6],
]
SENTENCES = (
    ("cloud distances --dry-run", r"Rent: 2 machines for up to .*: up to 0\.\d\d USD\.$"),
    ("cloud distances --dry-run", r"Of it up to 0\.\d\d USD are for [\d.]+ [MG]iB of traffic"),
    ("cloud distances", r"Nearest: us-east-1a and us-east-1b, round trip [45]"),
    ("show", r"Farthest: .*eu-west-1, round trip 2"),
    ("cloud distances", r"us-east-1a: the cluster placement group brings the round trip from"),
    ("cloud where", r"^Data at us-east-1a: fastest at us-east-1a, where the data are: 10\.0 h"),
    ("cloud where", r"^Data at us-east-1a: fastest at eu-west-1, with the data kept at us-east-1a"),
)
"""Command of the guide, and what it has to print."""


@pytest.mark.slow
@needs("ip", "sshd", "nft")
@pytest.mark.usefixtures("root_only", "probe")
def test_every_command_of_the_guide(tmp_path: Path) -> None:
    state = {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NEPHOSCOPE_STORE": str(tmp_path / "store"),
    }
    seen, lasting = [], []
    with doubles.running() as cloud:
        cloud.settings(machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3, paths=PATHS)
        for command in COMMANDS:
            command = command.replace("ami-0123456789abcdef0", image_id("us-east-1", NAME))
            command = command.replace("debian-12 ", f"{NAME} ")
            words = shlex.split(command)
            words += ["--endpoint", cloud.endpoint] if "ec2" in words else []
            if "distances" in words:
                words += ["--repetitions", "6", "--duration", "300ms"]
            if "latest" in words and words[0] == "cloud":
                words[words.index("latest")] = lasting[0]
            ended = subprocess.run(
                [sys.executable, "-m", "nephoscope", *words],
                cwd=tmp_path,
                env={**os.environ, **cloud.environment(), **state, "COLUMNS": "200"},
                capture_output=True,
                text=True,
                timeout=280,
                check=False,
            )
            assert ended.returncode == 0, (command, ended.stdout, ended.stderr)
            key = " ".join(words[: 2 if words[0] == "cloud" else 1])
            key += " --dry-run" if "--dry-run" in words else ""
            assert (key, words) == (SENTENCES[len(seen)][0], words)
            pattern = SENTENCES[len(seen)][1]
            assert re.search(pattern, ended.stdout, re.M), (pattern, ended.stdout)
            if "placement group" in pattern:
                ratio, low, high = map(
                    float, re.findall(r"ratio ([\d.]+) \[([\d.]+), ([\d.]+)\]", ended.stdout)[0]
                )
                # What the path adds to both sides, and the line's lateness, are below 1.5 ms.
                assert high >= CLUSTER_S / ZONE_S
                assert low <= (CLUSTER_S + 0.0015) / (ZONE_S + 0.0015)
                assert low <= ratio <= high
            lasting += re.findall(r"runs/([^/]+)/report/", ended.stdout)
            seen.append(key)
        assert len(seen) == len(SENTENCES)
        assert cloud.live() == []


def test_the_page_names_every_key_of_a_place() -> None:
    assert f"`{FORM}`" in TEXT
    assert all(f"`{key}`" in TEXT for key in KEYS)


def test_fragments_of_options_are_options() -> None:
    group = command_line.program.commands["cloud"]
    commands = getattr(group, "commands", {}).values()
    known = {word for command in commands for param in command.params for word in param.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT)) <= known
