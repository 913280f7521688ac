"""A pytest plug-in: what tools/test.sh prints at its end, appended to the files of a folder.

`durations`: seconds of each test with its set-up and its end. `skipped`: the reason of each skipped
test. `undecided`: tests of which every attempt was disturbed, with their counters.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

FOLDER = "NEPHOSCOPE_TEST_SUMMARY"

_seconds: dict[str, float] = defaultdict(float)
_lines: dict[str, list[str]] = {"skipped": [], "undecided": []}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keeps what the files will have of a test."""
    _seconds[report.nodeid] += report.duration
    if hasattr(report, "undecided"):
        _lines["undecided"].append(f"{report.nodeid}: {report.undecided}\n")
    elif report.skipped and isinstance(report.longrepr, tuple):
        _lines["skipped"].append(report.longrepr[2].removeprefix("Skipped: ") + "\n")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Appends to the files of the folder that tools/test.sh names."""
    # Reports of xdist's workers reach its main process too.
    if (folder := os.environ.get(FOLDER)) is None or hasattr(session.config, "workerinput"):
        return
    _lines["durations"] = [f"{seconds:8.1f} s  {name}\n" for name, seconds in _seconds.items()]
    for name, lines in _lines.items():
        with Path(folder, name).open("a", encoding="utf-8") as file:
            file.writelines(lines)
