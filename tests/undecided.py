"""A pytest plug-in: tests of which every attempt was disturbed are undecided, not failed.

They are named at the end with what their counters showed. More than MAX_RATIO of the tests that
measure (or one, where there are few) fail the whole run: then nothing was shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from tests.attempts import Undecided

MAX_RATIO = 0.03
"""Of the tests of a run."""

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


def _refusal() -> str:
    number, most = len(_undecided), allowed(len(_tests))
    if number <= most:
        return ""
    return f"{number} of {len(_tests)} tests are undecided, and {most} may be"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the undecided tests and what their counters showed."""
    if not _undecided:
        return
    terminalreporter.section("undecided: every attempt was disturbed")
    for report in _undecided:
        terminalreporter.write_line(f"{report.nodeid}: {report.undecided}")  # type: ignore[attr-defined]
    if refusal := _refusal():
        terminalreporter.write_line(f"{refusal}: measure again on a machine with less other work.")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run where too many tests are undecided."""
    if _refusal() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
