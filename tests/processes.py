"""Several processes that share one collection of tests: `pytest --processes N`.

The process that has collected the tests becomes N, each of which takes the next file until none is
left, and sends its reports. Workers of pytest-xdist would each import and collect all tests anew.
"""

from __future__ import annotations

import os
import signal
import struct
import traceback
import warnings
from collections.abc import Iterator
from itertools import chain, groupby, pairwise
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

import pytest

_NUMBER = struct.Struct("<H")

Files = list[list[pytest.Item]]
Test = tuple[str, tuple[str, int | None, str]]
"""Identifier and place of a test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="Number of processes that run tests.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs the tests in several processes where more than one was asked for."""
    option = session.config.option
    if option.processes < 2 or option.collectonly or session.testsfailed or not session.items:
        return None
    files = [list(group) for _, group in groupby(session.items, key=lambda item: item.path)]
    # Below one folder, which goes away at the end of the session.
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    children: dict[Connection, int] = {}
    try:
        children.update(_forked(session, files, min(option.processes, len(files))))
        _report(session, children)
    finally:
        for pid in children.values():
            os.kill(pid, signal.SIGINT)
            os.waitpid(pid, 0)
    return True


def _forked(
    session: pytest.Session, files: Files, processes: int
) -> Iterator[tuple[Connection, int]]:
    """Starts the processes. Yields the end of each one's pipe, and its number.

    The numbers of all files lie in one pipe, from which each process takes the next.
    """
    queue, filled = os.pipe()
    os.write(filled, b"".join(map(_NUMBER.pack, range(len(files)))))
    os.close(filled)
    for number in range(processes):
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns of the threads of numeric libraries, which allow for a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _run(session, number, files, queue, Connection(writer, readable=False))
        os.close(writer)
        yield Connection(reader, writable=False), pid
    os.close(queue)


class _Sender:
    """Sends which test begins, and its reports when it has ended."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection
        self._reports: list[dict[str, Any]] = []

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self._connection.send(((nodeid, location), None))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        data = hook.pytest_report_to_serializable(config=self._config, report=report)
        self._reports.append(data)

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        self._connection.send(((nodeid, location), self._reports))
        self._reports = []


def _run(
    session: pytest.Session, number: int, files: Files, queue: int, connection: Connection
) -> NoReturn:
    """Runs files until none is left; never returns to what the first process still has to do."""
    exit_code = 1
    try:
        config = session.config
        plugins = config.pluginmanager
        plugins.unregister(name="terminalreporter")
        plugins.register(_Sender(config, connection))
        # Processes that capture into one file would share their position in it.
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
        factory = config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = factory.mktemp(f"process-{number}", numbered=False)
        numbers = iter(lambda: os.read(queue, _NUMBER.size), b"")
        items = chain.from_iterable(files[_NUMBER.unpack(packed)[0]] for packed in numbers)
        for item, following in pairwise(chain(items, (None,))):
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        exit_code = 0
    except KeyboardInterrupt:
        pass
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        try:
            session._setupstate.teardown_exact(None)
        finally:
            os._exit(exit_code)


def _report(session: pytest.Session, children: dict[Connection, int]) -> None:
    """Reports what the processes send, and takes those that have ended out of `children`."""
    running: dict[Connection, Test] = {}
    while children:
        for connection in wait(list(children)):
            assert isinstance(connection, Connection)
            try:
                test, reports = connection.recv()
            except EOFError:
                _, status = os.waitpid(children.pop(connection), 0)
                connection.close()
                if status:
                    test = running.get(connection, ("tests", ("tests", None, "")))
                    _report_end(session, test, os.waitstatus_to_exitcode(status))
                continue
            running[connection] = test
            if reports is not None:
                _report_test(session.config, test, reports)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)


def _report_test(config: pytest.Config, test: Test, reports: list[dict[str, Any]]) -> None:
    hook = config.hook
    nodeid, location = test
    hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    for data in reports:
        report = hook.pytest_report_from_serializable(config=config, data=data)
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)


def _report_end(session: pytest.Session, test: Test, code: int) -> None:
    """Reports a process that did not end in order as a failure of the test that it ran last."""
    nodeid, location = test
    text = (
        f"The process that ran this test ended with code {code}: it and all later tests of its "
        "file have no result."
    )
    session.config.hook.pytest_runtest_logreport(
        report=pytest.TestReport(nodeid, location, {}, "failed", text, "call")
    )
