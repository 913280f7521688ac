"""The commands of the guide to fleets, on doubles of EC2 and of an object store."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.clouds.misbehaving import double as doubles
from tests.clouds.misbehaving.catalogue import image_id
from tests.clouds.objects import server
from tests.tools import needs

from nephoscope import command_line

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "cloud-fleets.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope (.*)$", TEXT, re.M)
REPLACED = {
    "ami-0123456789abcdef0": image_id("us-east-1", "debian-12-amd64-20260801-1200"),
    # Fewer machines and rounds: the double's live on this one.
    "--count 4": "--count 2 --repetitions 1",
}
SENTENCES = (
    r"Nothing was created\. 2 machines of ec2 would run",
    r"Fleet night works: 2 machines",
    r"night +up +[0-2]",
    r"2 of 2 machines complete",
)
PATIENCE_S = 400.0


@pytest.mark.slow
@needs("ip")
@pytest.mark.usefixtures("root_only", "probe")
def test_every_command_of_the_guide(tmp_path: Path) -> None:
    state = {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "NEPHOSCOPE_STORE": str(tmp_path / "store"),
    }

    def typed(words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "nephoscope", *words],
            cwd=tmp_path, env={**os.environ, **cloud.environment(), **state},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    with doubles.running() as cloud:
        cloud.settings(machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3, listed_s=3600.0)
        with server.running(cloud.network()) as objects:
            ended = None
            for command, sentence in zip(COMMANDS, SENTENCES, strict=True):
                for old, new in REPLACED.items():
                    command = command.replace(old, new)
                words = shlex.split(command)
                words += ["--endpoint", cloud.endpoint] if "ec2" in words else []
                words += ["--bucket-endpoint", objects.endpoint] if "--bucket" in words else []
                end = time.monotonic() + PATIENCE_S
                ended = typed(words)
                while words[1] == "collect" and ended.returncode == 3 and time.monotonic() < end:
                    time.sleep(2)
                    ended = typed(words)
                assert ended.returncode == 0, (command, ended.stdout, ended.stderr)
                assert re.search(sentence, ended.stdout), (command, ended.stdout)
            assert objects.keys == []
        assert cloud.live() == []
        assert ended is not None
        run = re.search(r"Run (\S+) has the results", ended.stdout)
        assert run is not None
        # What a fleet has counted stands beside a published census, and nothing is rented for it.
        done = typed(["study", "run", "zhuang-2012", "--from", run[1], "--json"])
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        assert document["measured"] == 2
        assert document["ground"].startswith("in kind")
        assert {row["source"] for row in document["shares"]} == {"published", "measured"}
        assert cloud.live() == []


def test_fragments_of_options_are_options() -> None:
    group = command_line.program.commands["cloud"]
    commands = getattr(group, "commands", {}).values()
    known = {word for command in commands for param in command.params for word in param.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT)) <= known
