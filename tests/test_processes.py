"""`--processes`: every test runs once, with the outcome and words that it has in one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT

FILES = {
    "test_first.py": """
import os, pytest

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    yield tmp_path_factory.mktemp("once")
    print("taken down")

@pytest.mark.parametrize("number", range(30))
def test_passes(number, folder, tmp_path):
    assert folder.exists() and tmp_path.parent == folder.parent

def test_fails(capfd):
    os.write(1, b"written by the test\\n")
    print(capfd.readouterr().out)
    assert 1 == 2

def test_is_skipped():
    pytest.skip("not here")
""",
    "test_second.py": """
import os

def test_passes():
    assert os.getppid() == int(os.environ["FIRST"])

def test_fails():
    print("of the second")
    raise ValueError("its words")
""",
    "test_third.py": "def test_passes(): pass\n",
}
DIES = "import os\ndef test_dies(): os._exit(7)\ndef test_never_runs(): pass\n"


def call(folder: Path, *words: str) -> tuple[int, str]:
    """Returns exit code and output of pytest in a folder."""
    script = (
        "import os, sys, pytest\n"
        "os.environ['FIRST'] = str(os.getpid())\n"
        "sys.exit(pytest.main(sys.argv[1:]))\n"
    )
    options = ["-q", "-rs", "-p", "tests.processes", "-p", "no:cacheprovider", "--rootdir", folder]
    done = subprocess.run(
        [sys.executable, "-c", script, *options, *words, folder],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_every_test_runs_once_and_failures_have_their_words(folder: Path) -> None:
    code, out = call(folder, "--processes", "2")
    assert code == 1
    assert re.search(r"^2 failed, 32 passed, 1 skipped in ", out, flags=re.M), out
    for words in ("written by the test", "assert 1 == 2", "of the second", "its words", "not here"):
        assert words in out
    assert out.count("[100%]") == 1


def test_a_process_that_dies_is_a_failure_of_its_test(folder: Path) -> None:
    (folder / "test_dies.py").write_text(DIES)
    code, out = call(folder, "--processes", "2")
    assert code == 1
    assert " test_dies __" in out
    assert "ended with code 7" in out
    assert re.search(r"^3 failed, 32 passed, 1 skipped in ", out, flags=re.M), out


def test_a_limit_of_failures_ends_all_processes(folder: Path) -> None:
    code, out = call(folder, "--processes", "2", "--maxfail", "1")
    assert code == 1
    assert "stopping after 1 failures" in out
