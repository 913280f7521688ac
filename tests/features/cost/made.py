"""The example of Zhuang (2012), section 5.2, and the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nephoscope import command_line

SPEEDS = ("--speed", "E5430=1.1", "--speed", "E5507=1", "--speed", "E5645=1.4")
JOB = ("--offer", "aws/m1.large", "--instances", "100", "--hours", "8760", "--trial", "1h")
EXAMPLE = ("--study", "zhuang-2012", "--type", "m1.large", *SPEEDS, *JOB)


def document(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """The JSON document of a command that succeeds."""
    code = command_line.main([*map(str, words), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    parsed: dict[str, Any] = json.loads(captured.out)
    return parsed


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The sentence of a command that is refused."""
    code = command_line.main([*map(str, words)])
    captured = capsys.readouterr()
    assert code == 2, captured.out
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err.strip()
