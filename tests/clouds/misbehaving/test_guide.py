"""The commands of the guide to EC2 do what it says, on machines of the double."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests import tools

from .double import ROOT, SECRET, Double

GUIDE = ROOT / "docs" / "how-to" / "amazon-ec2.md"
COMMANDS = re.findall(r"^\$ nephoscope (.*)$", GUIDE.read_text(encoding="utf-8"), re.M)

# One process for all commands, for which the double's answers are never old: nothing to wait for.
PROGRAM = """
import json, sys
from dataclasses import replace
from nephoscope.command_line import main
from nephoscope.measure.cloud.providers.ec2 import Ec2
Ec2.traits = replace(Ec2.traits, settle_s=0.1)
for line in json.loads(sys.argv.pop()):
    sys.argv[1:] = line
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
    print("\\f", flush=True)
"""


@pytest.mark.slow
@tools.needs("sshd", "ssh-keygen")
@pytest.mark.usefixtures("root_only", "probe")
def test_the_commands_of_the_guide_rent_and_remove(cloud: Double, tmp_path: Path) -> None:
    cloud.settings(machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3)
    environment = {**os.environ, **cloud.environment(), "XDG_STATE_HOME": str(tmp_path / "state")}
    lines = []
    for line in COMMANDS:
        # The double enforces its firewalls: the address of the example is that of nobody here.
        words = shlex.split(line.split(" > ")[0].replace("203.0.113.7", "127.0.0.1"))
        has_endpoint = not {"policy", "down"} & set(words)
        lines.append([*words, *(["--endpoint", cloud.endpoint] if has_endpoint else [])])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(lines)],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = [each["kind"] for each in cloud.oracle()]
    left = cloud.live()
    cloud.reset()
    assert left == []
    assert made.count("instance") == 1
    policy, doctor, preview, _, listing, *_ = done.stdout.split("\f")
    assert json.loads(policy)["Version"] == "2012-10-17"
    assert "3 regions" in doctor
    assert "Nothing was created" in preview
    assert "try" in listing
    assert SECRET not in done.stdout + done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(SECRET not in path.read_text(errors="replace") for path in written)
