"""The commands of the isolation guide are commands: each is understood and can be previewed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from nephoscope import command_line
from nephoscope.measure.plans import resources

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "isolation.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(?:sudo )?nephoscope (isolate .*)$", TEXT, re.M)


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 6


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_previewed(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for word in shlex.split(command) if word != "--dry-run"]
    assert command_line.main([*words, "--dry-run", "--store", str(tmp_path)]) == 0
    assert "nothing is run" in capsys.readouterr().out


def test_the_table_has_every_resource_and_no_other() -> None:
    cells = re.findall(r"^\| (`.*?) \|", TEXT, re.M)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(resources.RESOURCES)


def test_fragments_of_options_are_options() -> None:
    known = {
        word for param in command_line.program.commands["isolate"].params for word in param.opts
    }
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT))
    assert options - {"--json"} <= known
