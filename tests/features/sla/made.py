"""Files of events and agreements for tests, and the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from nephoscope import command_line

JUNE_S = 1_685_577_600
"""2023-06-01T00:00:00Z; June has 43,200 minutes."""
MINUTES = 43_200


def month(path: Path, bad: Iterable[int], *, minutes: int = MINUTES, start_s: int = JUNE_S) -> Path:
    """Writes one event for each minute; those of `bad` failed."""
    failed = set(bad)
    rows = (f"{start_s + 60 * at},{int(at not in failed)}" for at in range(minutes))
    path.write_text("time,ok\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object, code: int | None = None) -> Any:
    """Returns the JSON document that a command prints."""
    actual = command_line.main(["sla", *map(str, words), "--json"])
    captured = capsys.readouterr()
    assert code is None or actual == code, captured.err
    return json.loads(captured.out)


def refused(capsys: pytest.CaptureFixture[str], *words: object, code: int = 2) -> str:
    """Returns the sentence with which a command refuses its input."""
    assert command_line.main(["sla", *map(str, words)]) == code
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert "Traceback" not in line
    assert captured.out == ""
    return str(line)


AGREEMENT = """\
sla: 1
name: web
title: A web service
source: tests
objectives:
  - {objective}
"""


def agreement(path: Path, objective: str, more: str = "") -> Path:
    """Writes an agreement with one objective (flow style) and further keys."""
    path.write_text(AGREEMENT.format(objective="{" + objective + "}") + more, encoding="utf-8")
    return path
