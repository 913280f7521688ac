"""The commands of the guide to rented machines, on a cloud that is a double of EC2."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import threading
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
PLANS = dict(re.findall(r"^```yaml title=\"(.*?)\"\n(.*?)^```$", TEXT, re.M | re.S))
IMAGE, NAME = "ami-0123456789abcdef0", "debian-12-amd64-20260801-1200"
REAL = image_id("us-east-1", NAME)

SENTENCES = {
    "cloud doctor": "the credentials of user/tester are valid; 3 regions.",
    "cloud policy": '"ec2:RunInstances"',
    "cloud up --dry-run": "Nothing was created. 2 machines for 1 h would cost: up to 0.03 USD.",
    "cloud up": "Rental two is up: 2 machines",
    "cloud list": "two   up",
    "cloud down": "Removed 6 resources; the lists of all regions confirm it.",
    "run --dry-run": "Rent: 2 machines for up to 15 min: up to",
    "run": "are alike",
    "run two-clouds.yaml": "Question: Is our own cloud as fast as Amazon's?",
    "cloud sweep --dry-run": "Found nothing to remove.",
    "cloud sweep": "Found nothing to remove; the lists of all regions confirm it.",
}
"""Command of the guide -> what it has to print."""


@pytest.fixture(scope="module")
def cloud() -> Iterator[Double]:
    with doubles.running() as running:
        running.settings(machines=True)
        yield running


@contextlib.contextmanager
def watched() -> Iterator[set[str]]:
    """Yields the programs that show the secret meanwhile: in their words, or, but for the program
    itself and the double, in their environment."""
    exposed: set[str] = set()
    is_over = threading.Event()
    secret = doubles.SECRET.encode()

    def look() -> None:
        while not is_over.wait(0.05):
            for process in Path("/proc").iterdir():
                with contextlib.suppress(OSError):
                    words = (process / "cmdline").read_bytes()
                    if secret in words:
                        exposed.add(words.decode())
                    if (
                        b"nephoscope-probe" in words
                        and secret in (process / "environ").read_bytes()
                    ):
                        exposed.add(words.decode())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield exposed
    finally:
        is_over.set()
        thread.join()


def at(cloud: Double, plan: str) -> str:
    """A plan of the guide at the double, which stands for both clouds."""
    amazon, own = cloud.endpoint, cloud.endpoint.replace("127.0.0.1", "localhost")
    plan = plan.replace(IMAGE, REAL).replace("ami-0fedcba9876543210", image_id("eu-west-1", NAME))
    plan = plan.replace("    profile: own\n", "").replace("https://cloud.example.org:8788", own)
    plan = re.sub(
        r"provider: ec2\n    region", f"provider: ec2\n    endpoint: {amazon}\n    region", plan
    )
    # A program of this machine in the same run: its environment must hold no secret either.
    return plan.replace("targets:\n", "targets:\n  - {name: here}\n")


@pytest.mark.slow
@needs("ip", "sshd")
@pytest.mark.usefixtures("root_only", "probe")
def test_every_command_of_the_guide(cloud: Double, tmp_path: Path) -> None:
    for name, text in PLANS.items():
        (tmp_path / name).write_text(at(cloud, text))
    state = {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NEPHOSCOPE_STORE": str(tmp_path / "store"),
    }
    seen = []
    for command in COMMANDS:
        words = shlex.split(command.replace(IMAGE, REAL))
        if "ec2" in words and "policy" not in words:
            words += ["--endpoint", cloud.endpoint]
        with watched() as exposed:
            ended = subprocess.run(
                [sys.executable, "-m", "nephoscope", *words],
                cwd=tmp_path,
                env={**os.environ, **cloud.environment(), **state},
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
        assert exposed == set()
        key = " ".join(words[: 2 if words[0] == "cloud" else 1])
        key += " --dry-run" if "--dry-run" in words else ""
        key += " two-clouds.yaml" if "two-clouds.yaml" in words else ""
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
