"""The tutorial's commands do what it says: run in order, exit codes and output compared.

In an expected output `...` stands for anything. A block with a title is written to that file.
"""

from __future__ import annotations

import re
import shlex
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.M | re.S)


def commands(block: str) -> list[tuple[list[str], int, str]]:
    """(words, exit code, expected output) of each command of a console block."""
    found: list[tuple[list[str], int, str]] = []
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        line, _, expected = part.partition("\n")
        line, _, exit_code = line.partition(" # exit ")
        found.append((shlex.split(line), int(exit_code or 0), expected))
    return found


def test_every_command_of_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "79")
    ran = 0
    for language, title, body in BLOCK.findall(TUTORIAL):
        if title:
            (tmp_path / title).write_text(body, encoding="utf-8")
        if language != "console":
            continue
        for words, exit_code, expected in commands(body):
            assert words[0] == "nephoscope"
            done = run_inside(words[1:])
            output = done.out + done.err
            told = f"$ {shlex.join(words)}\n{output}"
            assert done.code == exit_code, told
            assert "Traceback" not in output, told
            matches = OutputChecker().check_output(
                expected, output, ELLIPSIS | NORMALIZE_WHITESPACE
            )
            assert matches, told
            ran += 1
    assert ran == len(re.findall(r"^\$ ", TUTORIAL, flags=re.M)) > 10
