"""The commands of the guide to live migration, answered by a drawn report."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.features.migration.made import report

from nephoscope import command_line
from nephoscope.features.migration.measure import MigrationMeasurement

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "live-migration.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope ([^#\n]*)", TEXT, re.M)


def test_every_command_of_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(measurement: MigrationMeasurement) -> Any:
        return report()

    monkeypatch.setattr(MigrationMeasurement, "run", run)
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) == 3
    for command in COMMANDS:
        assert command_line.main(shlex.split(command)) == 0
        assert "pauses the guest" in (out := capsys.readouterr().out) or '"pause_ns"' in out
    assert (tmp_path / "migration.html").is_file()


def test_every_option_of_the_table_is_one_of_the_command() -> None:
    known = {
        word for param in command_line.program.commands["migration"].params for word in param.opts
    }
    named = set(re.findall(r"^\| `(--[a-z-]+)`", TEXT, re.M))
    assert named
    assert named <= known
