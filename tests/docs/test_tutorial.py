"""The tutorial's commands do what it says: run in order, exit codes and output compared.

The result of its survey, which takes half a minute, is complete and of the documented form. In
an expected output `...` stands for anything. A block with a title is written to that file.
"""

from __future__ import annotations

import contextlib
import math
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from typing import Any

import pytest
from tests import schemas
from tests.e2e.conftest import run_inside
from tests.profiles import by_profile

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


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


@contextlib.contextmanager
def served(words: list[str]) -> Iterator[None]:
    """Runs a server in the background until the context ends; its port is its first number."""
    address = "127.0.0.1", int(next(word for word in words if word.isdigit()))
    words = [sys.executable, *words[1:]]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 120
            while True:
                with contextlib.suppress(ConnectionRefusedError):
                    socket.create_connection(address).close()
                    break
                assert server.poll() is None, f"{shlex.join(words)} ended"
                assert time.monotonic() < until, f"{shlex.join(words)} accepts no connection"
                time.sleep(0.02)
            yield
        finally:
            server.kill()


def test_every_command_of_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The port of the tutorial may be taken on this machine, so another one takes its place."""
    tutorial = TUTORIAL.replace("8000", free_port())
    # Budgets only widen intervals, of which the tutorial states none.
    tutorial, budgets = re.subn(
        r"\b(budget:?) \d+s\b", by_profile(quick=r"\1 4s", whole=r"\g<0>"), tutorial
    )
    assert budgets
    with contextlib.ExitStack() as background:
        follow(tutorial, tmp_path, monkeypatch, background)
    check_survey()


def follow(
    tutorial: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background: contextlib.ExitStack
) -> None:
    """Runs the commands of the tutorial in order, servers in the background."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "79")
    ran = 0
    for language, title, body in BLOCK.findall(tutorial):
        if title:
            (tmp_path / title).write_text(body, encoding="utf-8")
        if language != "console":
            continue
        for words, exit_code, expected in commands(body):
            ran += 1
            if words[-1] == "&":
                background.enter_context(served(words[:-1]))
                continue
            assert words[0] == "nephoscope"
            done = run_inside(words[1:])
            output = done.err + done.out
            told = f"$ {shlex.join(words)}\n{output}"
            assert done.code == exit_code, told
            assert "Traceback" not in output, told
            matches = OutputChecker().check_output(
                expected, output, ELLIPSIS | NORMALIZE_WHITESPACE
            )
            assert matches, told
    assert ran == len(re.findall(r"^\$ ", tutorial, flags=re.M)) > 10


def check_survey() -> None:
    """The stored result of the quick survey."""
    runs = run_inside(["runs", "--json"]).json()["runs"]
    (survey,) = (run["id"] for run in runs if run["plan"] == "survey-quick")
    done = run_inside(["show", survey, "--json"])
    assert done.code == 0, done.err
    result = done.json()
    schemas.validate(result, schemas.result_schema())
    assert len(result["metrics"]) >= 25
    for metric in result["metrics"]:
        check_metric(metric)
    assert result["run"]["state"] == "finished"
    report = Path(result["run"]["report"])
    assert report.is_file()
    assert 1000 < report.stat().st_size < 3_000_000


def check_metric(metric: dict[str, Any]) -> None:
    """Every figure is complete; an interval is missing only where a sentence says why."""
    estimate = metric["estimate"]
    assert math.isfinite(estimate["value"])
    assert estimate["unit"]
    assert estimate["method"]
    assert estimate["n"] >= 1
    assert metric["better"] in ("higher", "lower", "none")
    if estimate["low"] is None or estimate["high"] is None:
        assert metric["warnings"] or estimate["note"], metric
    else:
        assert estimate["low"] <= estimate["value"] <= estimate["high"], metric
