"""The commands of the guide to censuses and searches, on a cloud that is a double of EC2."""

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

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "cloud-census.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope (.*)$", TEXT, re.M)
REPLACED = {
    "ami-0123456789abcdef0": image_id("us-east-1", "debian-12-amd64-20260801-1200"),
    # Fewer machines, measured shorter: the double's live on this one.
    "--count 10": "--count 3 --at-once 3 --budget 2s",
    "--hours 20": "--hours 20 --budget 2s",
    "--at-most 5": "--at-most 2",
}
SENTENCES = (
    ("cloud census --dry-run", r"Nothing was created\. 6 machines in 1 wave"),
    ("cloud census", r"6 of 6 planned machines were measured, in 2 runs"),
    ("census", r"6 machines of 1 type"),
    ("cloud pick", r"is kept after [12] of at most 2 launches"),
    ("cloud list", r"fast-[12] +up"),
    ("cloud down", r"the lists of all regions confirm it"),
    ("cloud pick", r"is kept after [12] of at most 2 starts"),
    ("cloud down", r"the lists of all regions confirm it"),
)
"""Command of the guide, and what it has to print."""


@pytest.mark.slow
@needs("ip", "sshd")
@pytest.mark.usefixtures("root_only", "probe")
def test_every_command_of_the_guide(tmp_path: Path) -> None:
    state = {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NEPHOSCOPE_STORE": str(tmp_path / "store"),
    }
    seen, rental = [], "fast-1"
    with doubles.running() as cloud:
        cloud.settings(machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3)
        for command in COMMANDS:
            for old, new in REPLACED.items():
                command = command.replace(old, new)
            words = shlex.split(command.replace("fast-1", rental))
            words += ["--endpoint", cloud.endpoint] if "ec2" in words else []
            ended = subprocess.run(
                [sys.executable, "-m", "nephoscope", *words],
                cwd=tmp_path,
                env={**os.environ, **cloud.environment(), **state},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            key = " ".join(words[: 2 if words[0] == "cloud" else 1])
            key += " --dry-run" if "--dry-run" in words else ""
            assert ended.returncode == 0, (command, ended.stdout, ended.stderr)
            expected, sentence = SENTENCES[len(seen)]
            assert key == expected
            assert re.search(sentence, " ".join(ended.stdout.split(" "))), (command, ended.stdout)
            kept = re.search(r"cloud down\s+(fast-\d+)", ended.stdout)
            rental = kept[1] if kept else rental
            seen.append(key)
        assert len(seen) == len(SENTENCES)
        assert cloud.live() == []


def test_fragments_of_options_are_options() -> None:
    group = command_line.program.commands["cloud"]
    commands = [*getattr(group, "commands", {}).values(), command_line.program.commands["census"]]
    known = {word for command in commands for param in command.params for word in param.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT)) <= known
