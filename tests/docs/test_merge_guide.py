"""The commands of the guide to merged stores and data sets, in the order of the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, make_run

from nephoscope.core.model import Sample

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "merge-and-publish.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (nephoscope .*)$", TEXT, re.M)


def test_every_command_of_the_guide(tmp_path: Path) -> None:
    for name in ("controller-a", "controller-b"):
        make_run(
            tmp_path / name, NULL_PLAN, lambda _, number, __: [Sample("null_ns", 9.0 + number)]
        )
    program = tmp_path / "bin" / "nephoscope"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nephoscope "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    assert len(COMMANDS) == 4
    outputs = []
    for command in COMMANDS:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path, env={**os.environ, "PATH": path},
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        outputs.append(done.stdout)
    assert "controller-a: 1 run would be copied" in outputs[0]
    assert "controller-b: 1 run copied, 0 already there" in outputs[1]
    sums = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    for folder in ("vm-survey", "one-run"):
        subprocess.run(sums, cwd=tmp_path / folder, check=True)
    listed = set(re.findall(r"^\| `([A-Za-z0-9.]+)`", TEXT, re.M)) - {"samples.csv"}
    assert listed <= {path.name for path in (tmp_path / "vm-survey").iterdir()}


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)", TEXT))))
def test_options_of_the_guide_are_options(option: str) -> None:
    from nephoscope import command_line

    known = {
        word
        for name in ("merge", "export")
        for param in command_line.program.commands[name].params
        for word in param.opts
    }
    assert option in known | {"--check"}
