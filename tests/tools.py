"""A pytest plug-in: programs of other packages that tests start, each named in one table.

A test of such a program is marked by `needs`, a fixture by `fixture_needs`. `make test FAST=1`
leaves these tests out; `make test` installs the programs first, so that one that is missing then is
a failure. Elsewhere its tests are skipped, with the package. Tests of programs that `make test`
does not install are slow.
"""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from nephoscope.catalog.adapters.servers import postgresql
from nephoscope.core.errors import NephoscopeError
from nephoscope.core.programs import find_storage

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tools" / "test_packages.txt"
LEFT_OUT = "NEPHOSCOPE_TEST_TOOLS_LEFT_OUT"
"""Set by tools/test.sh when it has installed them: the programs that it could not, by name."""

_F = TypeVar("_F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Tool:
    """A program. package: of Debian 12, "-" for none. when: who installs it, as in the table."""

    program: str
    package: str
    when: str

    @property
    def slow(self) -> bool:
        """Whether `make test` does not install it."""
        return self.when in ("slow", "none")

    @property
    def reason(self) -> str:
        """Why its tests cannot run where it is missing."""
        if self.package == "-":
            return f"needs {self.program}, of which Debian 12 has no package"
        return f"needs {self.program} (apt-get install {self.package})"


def read(text: str) -> Mapping[str, Tool]:
    """Returns the table's tools by program."""
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {
        program: Tool(program, package, when)
        for package, when, *programs in lines
        for program in programs
    }


TOOLS = read(TABLE.read_text(encoding="utf-8"))


def find(program: str) -> str | None:
    """Path of a program of the table, also where only root's path or its package has it."""
    if program == "nephoscope-storage":
        try:
            return str(find_storage())
        except NephoscopeError:
            return None
    if program == "axe-core":
        file = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
        return str(file) if file.exists() else None
    if program == "schemathesis":
        file = ROOT / ".setup" / "schemathesis" / "bin" / "schemathesis"
        return str(file) if file.exists() else None
    folders = [folder for pattern in postgresql.PATHS for folder in glob.glob(pattern)]
    folders += ["/usr/sbin", "/sbin", "/usr/games", str(Path.home() / "go" / "bin")]
    folders += glob.glob("/usr/lib/lmbench/bin/*")
    return shutil.which(program, path=os.pathsep.join([os.environ["PATH"], *folders]))


def _known(programs: tuple[str, ...]) -> tuple[str, ...]:
    for program in programs:
        if program not in TOOLS:
            raise pytest.UsageError(f"{program} is not in tools/test_packages.txt. Add its line.")
    return programs


def needs(*programs: str) -> pytest.MarkDecorator:
    """Marks a test of these programs."""
    return pytest.mark.tools(*_known(programs))


def fixture_needs(*programs: str) -> Callable[[_F], _F]:
    """Marks, below `@pytest.fixture`, what makes a fixture, and so the tests that use it."""

    def marked(function: _F) -> _F:
        function.tools = _known(programs)  # type: ignore[attr-defined]
        return function

    return marked


_current: set[str] = set()


@pytest.fixture(autouse=True)
def _labs_are_marked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that makes a lab is marked for the programs of labs, also where they are installed.

    Tests that measure run where all programs have been installed: `FAST=1` leaves them out.
    """
    if request.node.get_closest_marker("alone"):
        return
    from nephoscope.measure.lab import needs as needs_of_labs

    require = needs_of_labs.require

    def checked(*given: Any, **named: Any) -> None:
        require(*given, **named)
        for program in needs_of_labs._PROGRAMS:
            located(program)

    monkeypatch.setattr(needs_of_labs, "require", checked)


def located(program: str) -> str:
    """Path of a program, for helpers that tests share; the running test has to be marked for it."""
    assert program in _current, f"this test starts {program}: mark it with needs({program!r})"
    found = find(program)
    assert found is not None
    return found


def _programs(item: pytest.Item) -> dict[str, None]:
    """Returns the programs of a test and its fixtures, in order."""
    found = [program for mark in item.iter_markers("tools") for program in mark.args]
    fixtures = getattr(item, "_fixtureinfo", None)
    for definitions in fixtures.name2fixturedefs.values() if fixtures else ():
        found += getattr(definitions[-1].func, "tools", ())
    return dict.fromkeys(found)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests by their fixtures, and as slow those of programs that are not installed."""
    for item in items:
        if programs := _programs(item):
            item.add_marker(pytest.mark.tools(*programs))
            if any(TOOLS[program].slow for program in programs):
                item.add_marker("slow")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test whose programs are missing, or fails it where they were installed."""
    _current.clear()
    _current.update(_programs(item))
    missing = [TOOLS[program] for program in sorted(_current) if find(program) is None]
    if not missing:
        return
    reasons = "; ".join(tool.reason for tool in missing)
    left_out = os.environ.get(LEFT_OUT)
    if left_out is not None and not any(
        tool.package == "-" or tool.program in left_out.split() for tool in missing
    ):
        pytest.fail(f"{reasons}: tools/setup.sh test-tools did not install it", pytrace=False)
    pytest.skip(reasons)
