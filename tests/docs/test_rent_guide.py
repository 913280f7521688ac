"""The commands of the guide to rented machines, on a cloud that is a double of EC2."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clouds.misbehaving import double as doubles
from tests.clouds.misbehaving.catalogue import image_id
from tests.clouds.misbehaving.double import Double
from tests.tools import needs

from nephoscope import command_line
from nephoscope.measure.cloud.providers import PROVIDERS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "rent-machines.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope (.*)$", TEXT, re.M)
(PLAN,) = re.findall(r"^```yaml title=\"two-types.yaml\"\n(.*?)^```$", TEXT, re.M | re.S)
IMAGE = "ami-0123456789abcdef0"
REAL = image_id("us-east-1", "debian-12-amd64-20260801-1200")

SENTENCES = {
    "cloud doctor": "the credentials of user/tester are valid; 3 regions.",
    "cloud policy": '"ec2:RunInstances"',
    "cloud up --dry-run": "Nothing was created. 2 machines for 1 h would cost: up to 0.03 USD.",
    "cloud up": "Rental two is up: 2 machines",
    "cloud list": "two   up",
    "cloud down": "Removed 6 resources; the lists of all regions confirm it.",
    "run --dry-run": "Rent: 2 machines for up to 15 min: up to",
    "run": "vm-m5-large and vm-t3-micro are alike",
    "cloud sweep --dry-run": "Found nothing to remove.",
    "cloud sweep": "Found nothing to remove; the lists of all regions confirm it.",
}
"""Command of the guide -> what it has to print."""


@pytest.fixture(scope="module")
def cloud() -> Iterator[Double]:
    with doubles.running() as running:
        running.settings(machines=True)
        yield running


@needs("ip", "sshd")
@pytest.mark.usefixtures("root_only", "probe")
def test_every_command_of_the_guide(cloud: Double, tmp_path: Path) -> None:
    plan = PLAN.replace(IMAGE, REAL)
    plan = plan.replace("provider: ec2\n", f"provider: ec2\n    endpoint: {cloud.endpoint}\n")
    (tmp_path / "two-types.yaml").write_text(plan)
    state = {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NEPHOSCOPE_STORE": str(tmp_path / "store"),
    }
    seen = []
    for command in COMMANDS:
        words = shlex.split(command.replace(IMAGE, REAL))
        if "ec2" in words and "policy" not in words:
            words += ["--endpoint", cloud.endpoint]
        ended = subprocess.run(
            [sys.executable, "-m", "nephoscope", *words],
            cwd=tmp_path,
            env={**os.environ, **cloud.environment(), **state},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        key = " ".join(words[: 2 if words[0] == "cloud" else 1])
        key += " --dry-run" if "--dry-run" in words else ""
        assert ended.returncode == 0, (command, ended.stdout, ended.stderr)
        assert SENTENCES[key] in " ".join(ended.stdout.split(" ")), (command, ended.stdout)
        assert doubles.SECRET not in ended.stdout + ended.stderr
        seen.append(key)
    assert seen == list(SENTENCES)
    assert cloud.live() == []
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 5
    assert not [path for path in written if doubles.SECRET.encode() in path.read_bytes()]


def test_the_table_has_every_provider() -> None:
    assert re.findall(r"^\| `([a-z0-9]+)` \|", TEXT, re.M) == list(PROVIDERS)


def test_fragments_of_options_are_options() -> None:
    group = command_line.program.commands["cloud"]
    commands = getattr(group, "commands", {}).values()
    known = {word for command in commands for param in command.params for word in param.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT)) <= known
