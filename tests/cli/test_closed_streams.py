"""Closed streams and few open files: a sentence, or the same output as with open ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.e2e.conftest import PROGRAM

from nephoscope.cli.kit.output import FILES_MIN


def in_shell(rest: str, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the program as a shell does: what comes before it, and redirections after it."""
    command = f'{before} exec "$@" {rest}'
    return subprocess.run(
        ["sh", "-c", command, "sh", *PROGRAM, *words], capture_output=True, text=True, timeout=60
    )


def test_a_closed_stdout_is_named() -> None:
    done = in_shell(">&-", "version")
    assert done.returncode == 2
    assert done.stderr.startswith("nephoscope: Standard output is closed")
    assert in_shell(">&- 2>&-", "version").returncode == 2


def test_a_closed_stderr_or_stdin_changes_nothing(tmp_path: Path) -> None:
    whole = in_shell("", "version")
    for rest in ("2>&-", "<&-", "<&- 2>&-"):
        done = in_shell(rest, "version")
        assert (done.returncode, done.stdout) == (0, whole.stdout)
    refused = in_shell("2>&-", "show", "none", "--store", str(tmp_path))
    assert (refused.returncode, refused.stdout) == (2, "")


def test_no_program_writes_into_a_file_that_has_the_number_of_a_closed_stream(
    tmp_path: Path,
) -> None:
    words = ("bench", "null", "--repetitions", "1", "--store", str(tmp_path))
    done = in_shell("<&- 2>&-", *words)
    assert done.returncode == 0
    assert in_shell("", "verify", "--store", str(tmp_path)).returncode == 0


@pytest.mark.parametrize("files", [7, 16, FILES_MIN - 1])
def test_too_few_files_are_named_with_the_number_that_is_needed(files: int) -> None:
    done = in_shell("", "runs", before=f"ulimit -n {files};")
    assert done.returncode == 4
    assert done.stderr == (
        f"nephoscope: This process may open {files} files, and needs {FILES_MIN}. Raise the "
        f"limit: `ulimit -n {FILES_MIN}`, as root where it is refused.\n"
    )


def test_a_limit_that_may_be_raised_is_raised(tmp_path: Path) -> None:
    words = ("bench", "null", "--repetitions", "1", "--store", str(tmp_path))
    assert in_shell("", *words, before="ulimit -S -n 16;").returncode == 0


@pytest.mark.slow
def test_so_many_files_are_enough(tmp_path: Path) -> None:
    words = ("--store", str(tmp_path))
    before = f"ulimit -n {FILES_MIN};"
    measured = in_shell("", "bench", "null", "--repetitions", "6", *words, before=before)
    assert measured.returncode == 0, measured.stderr
    for command in (["show"], ["verify"], ["export", "latest"], ["history", "null_ns"]):
        done = in_shell("", *command, *words, before=before)
        assert done.returncode == 0, done.stderr
