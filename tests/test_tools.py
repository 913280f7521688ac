"""Why a test may be skipped: the machine, or a program that may not be installed. Nothing else."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT
from tests.tools import LEFT_OUT, TOOLS, needs

from nephoscope.catalog.adapters import ADAPTERS

SKIPPING = re.compile(r"skipif|\bskip\(|importorskip|mark\.skip|skipTest|mark\.xfail|pytest\.xfail")


def test_only_programs_and_hardware_are_reasons_to_skip() -> None:
    mine = Path(__file__)
    files = {
        str(path.relative_to(ROOT / "tests"))
        for path in (ROOT / "tests").rglob("*.py")
        if path != mine
        and SKIPPING.search(re.sub(r"args\(\)\.skip\(|console\.skip\(", "", path.read_text()))
    }
    assert files == {"hardware.py", "tools.py"}


def test_each_program_has_one_package_and_a_word_for_when() -> None:
    words = {"always", "service", "x86_64", "slow", "none"}
    assert {tool.when for tool in TOOLS.values()} == words
    assert all((tool.package == "-") == (tool.when == "none") for tool in TOOLS.values())


def test_packages_are_those_that_adapters_name() -> None:
    """An adapter's hint names the package that has its program, or one that brings it along."""
    brought = {"apache2-bin": "apache2"}
    for name, adapter in ADAPTERS.items():
        tool = TOOLS.get(adapter.spec.tool or "")
        if tool is not None and tool.package != "-":
            package = brought.get(tool.package, tool.package)
            assert package in adapter.spec.install.split(), name


def test_a_program_that_the_table_lacks_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match=r"frobnicate is not in tools/test_packages\.txt"):
        needs("frobnicate")


TESTS = """
import pytest
from tests.tools import fixture_needs, located, needs

@pytest.fixture
@fixture_needs("wrk")
def loader():
    return located("wrk")

def test_plain():
    pass

def test_by_fixture(loader):
    pass

@needs("sshd", "wrk")
def test_by_mark():
    pass

@needs("memtier_benchmark")
def test_unpackaged():
    pass

@needs("sshd")
def test_unmarked():
    located("wrk")
"""


def outcomes(tmp_path: Path, *words: str, left_out: str | None) -> str:
    """What pytest says of tests of programs of which none is installed."""
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  tools: x\n  slow: x\n")
    environment = {**os.environ, "PATH": str(tmp_path)}
    environment.pop(LEFT_OUT, None)
    if left_out is not None:
        environment[LEFT_OUT] = left_out
    hidden = "import tests.tools as t; t.find = lambda program: None"
    script = f"import sys, pytest; {hidden}; sys.exit(pytest.main(sys.argv[1:]))"
    options = ["-q", "-rsf", "-p", "tests.tools", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-c", script, *options, *words, str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_missing_programs_skip_and_fail_where_they_were_installed(tmp_path: Path) -> None:
    out = outcomes(tmp_path, left_out=None)
    assert "1 passed, 4 skipped" in out
    assert "needs wrk (apt-get install wrk)" in out
    assert "needs memtier_benchmark, of which Debian 12 has no package" in out
    out = outcomes(tmp_path, left_out="")
    assert "1 passed, 1 skipped" in out, out
    assert "3 errors" in out
    assert "tools/setup.sh test-tools did not install it" in out
    out = outcomes(tmp_path, left_out="wrk sshd")
    assert "1 passed, 4 skipped" in out


def test_marks_choose_tests_of_programs_and_those_that_are_not_installed(tmp_path: Path) -> None:
    assert "1 passed, 4 deselected" in outcomes(tmp_path, "-m", "not tools", left_out="")
    assert "3 skipped, 2 deselected" in outcomes(
        tmp_path, "-m", "tools and not slow", left_out=None
    )


# A virtual environment without a package index: its pip only writes down its words.
PYTHON = (
    '[ "$2" != venv ] || { mkdir -p "$3/bin" && '
    """printf '#!/bin/sh\necho "pip $*" >>calls\n' >"$3/bin/pip" && """
    'chmod +x "$3/bin/pip"; }'
)
APT = (
    'echo "$*" >>calls\n'
    '[ "$(grep -c update calls)" != 1 ] || { echo "E: Could not get lock x"; exit 1; }'
)


def setup_of(folder: Path, user: int) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Returns what runs tools/setup.sh as a user, with an apt and a pip that only write down their
    words."""
    (folder / "tools").mkdir()
    table = (
        "one always sh\ntwo always no-such-a no-such-b\nthree slow no-such-c\n- none no-such-d\n"
    )
    (folder / "tools" / "test_packages.txt").write_text(f"# comment\n{table}")
    script = folder / "tools" / "setup.sh"
    script.write_bytes((ROOT / "tools" / "setup.sh").read_bytes())
    (folder / "bin").mkdir()
    programs = {
        "apt-get": APT,
        "python3.11": PYTHON,
        "sleep": 'echo "sleep $*" >>calls',
        "id": f"echo {user}",
        "sudo": 'echo "sudo $*" >>calls\n[ "$1" != -n ] || shift\nexec "$@"',
    }
    for name, text in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)

    def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        (folder / "calls").write_text("")
        return subprocess.run(
            ["bash", str(script), "test-tools", *words],
            env={
                **os.environ,
                "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
                "SUDO": options.pop("sudo", ""),
            },
            capture_output=True,
            text=True,
            **{"stdin": subprocess.DEVNULL, **options},
        )

    return run


def test_setup_installs_what_is_missing_once_the_lock_is_free(tmp_path: Path) -> None:
    """An apt that another program keeps from its lists the first time."""
    run = setup_of(tmp_path, user=0)
    for words, packages in (((), "two"), (("slow",), "two three")):
        done = run(*words)
        assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
        assert "another program holds apt's lock" in done.stderr
        lines = (tmp_path / "calls").read_text().splitlines()
        calls = [line for line in lines if not line.startswith("pip ")]
        assert [line.split()[-1] for line in calls if "update" in line] == ["update"] * 2
        assert calls[1] == "sleep 5"
        assert calls[-1].endswith(f"install -y --no-install-recommends {packages}")
        assert "DPkg::Lock::Timeout" in calls[-1]
        # What is not a Debian package is for slow tests only.
        installed = [line.split()[-1].partition("==")[0] for line in lines[len(calls) :]]
        assert installed == (["schemathesis"] if words else [])


def test_setup_asks_a_user_before_it_installs_with_sudo(tmp_path: Path) -> None:
    run = setup_of(tmp_path, user=1000)
    answers = {"y\n": True, "n\n": False, "\n": False}
    for answer, installs in answers.items():
        terminal, inside = pty.openpty()
        os.write(terminal, answer.encode())
        done = run(stdin=inside)
        os.close(inside)
        os.close(terminal)
        assert "these Debian packages are missing: two" in done.stderr
        assert ("install -y" in (tmp_path / "calls").read_text()) is installs, answer
    # Nobody to ask: it goes on without them, and does not wait.
    done = run()
    assert done.stdout.startswith("no-such-a no-such-b")
    assert "To run them: sudo apt-get install -y two" in done.stderr
    assert (tmp_path / "calls").read_text() == ""
    assert run(sudo="yes").stdout == "\n"
    assert "sudo -n true\n" in (tmp_path / "calls").read_text()
