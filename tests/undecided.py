"""A pytest plug-in: tests of which every attempt was disturbed are undecided, not failed.

They are named at the end with what their counters showed. More than MAX_RATIO of the tests that
measure (or one, where there are few) fail the whole run: then nothing was shown.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.attempts import Undecided

MAX_RATIO = 0.03
"""Of the tests of a run of pytest, or of the measurements of Rust."""

_undecided: list[pytest.TestReport] = []
_tests: set[str] = set()


def allowed(number: int) -> int:
    """How many of so many tests may be undecided."""
    return max(1, math.floor(MAX_RATIO * number))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    """Turns the outcome of a test that raised Undecided."""
    outcome: Any = yield
    report = outcome.get_result()
    if call.excinfo is not None and isinstance(call.excinfo.value, Undecided):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], f"undecided: {call.excinfo.value}")
        report.undecided = str(call.excinfo.value)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Gives undecided tests a word of their own."""
    return ("undecided", "u", "UNDECIDED") if hasattr(report, "undecided") else None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Counts the tests, and keeps those that are undecided."""
    _tests.add(report.nodeid)
    if hasattr(report, "undecided"):
        _undecided.append(report)


def refusal(number: int, tests: int) -> str:
    """Why a run fails of which so many tests were undecided; "" where it does not."""
    most = allowed(tests)
    return f"{number} of {tests} tests are undecided, and {most} may be" if number > most else ""


def judge(text: str) -> str:
    """Why the measurements of Rust fail together, of which each has a line `decided: NAME` or
    `undecided: NAME: counters` (attempts.rs); "" where they do not."""
    names = {line.split(": ", 2)[1]: line.startswith("undecided: ") for line in text.splitlines()}
    return refusal(sum(names.values()), len(names))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the undecided tests and what their counters showed."""
    if not _undecided:
        return
    terminalreporter.section("undecided: every attempt was disturbed")
    for report in _undecided:
        terminalreporter.write_line(f"{report.nodeid}: {report.undecided}")
    if words := refusal(len(_undecided), len(_tests)):
        terminalreporter.write_line(f"{words}: measure again on a machine with less other work.")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run where too many tests are undecided."""
    if refusal(len(_undecided), len(_tests)) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


if __name__ == "__main__":
    sys.exit(judge(Path(sys.argv[1]).read_text(encoding="utf-8")) or 0)
