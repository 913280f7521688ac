"""`make test` runs every test once: what may run beside others, and what runs alone."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import ALONE, ROOT, TOGETHER, runs_alone

CALL = """#!/bin/sh
line=${0##*/}
for word; do line="$line	$word"; done
# One write: another program may append at the same time.
printf '%s\\n' "$line" >>"$CALLS"
case "$*" in *"$FAILING"*) exit 5 ;; esac
case "$*" in *--collect-only*) exit 0 ;; esac
case "$*" in *pytest*)
  echo "     1.5 s  test_a.py::test_b" >>"$NEPHOSCOPE_TEST_SUMMARY/durations"
  echo "needs IPv6" >>"$NEPHOSCOPE_TEST_SUMMARY/skipped"
  echo "test_a.py::test_c: all 8 attempts were disturbed" >>"$NEPHOSCOPE_TEST_SUMMARY/undecided" ;;
esac
case "$*" in *--test-threads=1*)
  echo "undecided: a.rs:1: a clock: steal 90 ms" >>"$NEPHOSCOPE_TEST_MEASUREMENTS" ;;
esac
[ "$*" != "test-tools" ] || echo sshd
exit 0
"""


Calls = list[list[str]]


def call(folder: Path, *words: str, failing: str = "nothing") -> tuple[int, Calls, str]:
    """Returns exit code, commands and output of tools/test.sh, where cargo, Python and the set-up
    only record how they were called; those whose words contain `failing` fail."""
    for program in (".venv/bin/python", "bin/cargo", "tools/setup.sh"):
        (folder / program).parent.mkdir(parents=True, exist_ok=True)
        (folder / program).write_text(CALL)
        (folder / program).chmod(0o755)
    script = shutil.copy(ROOT / "tools" / "test.sh", folder / "tools")
    calls = folder / "calls"
    calls.write_text("")
    env = {
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "HOME": str(folder),
        "CALLS": str(calls),
        "FAILING": failing,
    }
    done = subprocess.run(["bash", script, *words], env=env, capture_output=True, text=True)
    lines = [line.split("\t") for line in calls.read_text().splitlines()]
    return done.returncode, lines, done.stdout


def of(program: str, calls: Calls) -> Calls:
    return [words[1:] for words in calls if words[0] == program]


def pytests(calls: Calls) -> Calls:
    """Returns the calls of pytest that run tests: another one only compiles them."""
    called = [words for words in of("python", calls) if words[:2] == ["-m", "pytest"]]
    return [words for words in called if "--collect-only" not in words]


def chosen_by(words: list[str]) -> str:
    """Returns the choice by marks of one call of pytest."""
    return words[words.index("-m", 2) + 1]


def test_every_test_is_run_once_and_slow_ones_if_asked_for(tmp_path: Path) -> None:
    usual, every, fast = (call(tmp_path, *words) for words in ((), ("--all",), ("--fast",)))
    assert (usual[0], every[0], fast[0]) == (0, 0, 0)
    for slow, alone, tools in itertools.product((False, True), repeat=3):
        marks = {"slow": slow, "alone": alone, "tools": tools}
        wanted = {"usual": not slow, "every": True, "fast": not (slow or alone or tools)}
        for name, (_, calls, _) in (("usual", usual), ("every", every), ("fast", fast)):
            runs = [eval(chosen_by(words), marks) for words in pytests(calls)]
            assert runs.count(True) == wanted[name], (marks, name)
    for words in (*pytests(usual[1]), *pytests(every[1])):
        # All folders; what was skipped is told with its reason.
        assert any(word.startswith("-rs") for word in words)
        assert not any(word.startswith(("tests", "-k")) for word in words)


def test_nothing_runs_beside_a_measurement(tmp_path: Path) -> None:
    _, calls, _ = call(tmp_path)
    for words in pytests(calls):
        assert ("-n" in words) == (chosen_by(words) == "not slow and not alone")
    # Compiled once, before many processes collect them.
    compiling, first, _ = (words for words in of("python", calls) if words[1] == "pytest")
    assert "--collect-only" in compiling
    assert "-n" in first
    build, together, measuring = of("cargo", calls)
    assert {"--workspace", "--no-run"} <= set(build)
    assert "--test-threads=1" in measuring
    # What the one leaves out is what the other runs: two programs without a library, and a package
    # of nothing but tests.
    assert {"--workspace"} <= set(together) & set(measuring)
    left_out = {word.partition("=")[2] for word in together if word.startswith("--exclude")}
    assert left_out == {"nephoscope-lab", "nephoscope-probe", "nephoscope-programs"}
    assert not any(
        (ROOT / "crates" / name / "src" / "lib.rs").exists() for name in ("lab", "probe")
    )
    chosen = {word for word in measuring if word.startswith(("--bin", "--test="))}
    assert chosen == {"--bin=nephoscope-lab", "--bin=nephoscope-probe", "--test=programs"}
    folders = {
        path.relative_to(ROOT).parts[1:4] for path in (ROOT / "crates").glob("*/tests/**/*.rs")
    }
    assert {folder for folder in folders if folder[0] in {"lab", "probe", "programs"}} == {
        ("programs", "tests", "programs")
    }


@pytest.mark.parametrize(
    "failing",
    [
        "--no-run",
        "test-tools",
        "--exclude",
        "--bin",
        "tests.undecided",
        "not slow and not alone",
        "not slow and alone",
    ],
)
def test_each_part_runs_though_one_fails_and_nothing_is_run_again(
    tmp_path: Path, failing: str
) -> None:
    code, calls, _ = call(tmp_path, failing=failing)
    assert (code, len(calls)) == (1, 8)
    assert not any("rerun" in word for words in calls for word in words)


def test_programs_are_installed_for_the_tests_that_start_them(tmp_path: Path) -> None:
    installs = {
        words: of("setup.sh", call(tmp_path, *words)[1]) for words in ((), ("--all",), ("--fast",))
    }
    assert installs[()] == [["test-tools"]]
    assert ["test-tools", "slow"] in installs["--all",]
    assert installs["--fast",] == []


def test_the_end_names_undecided_skipped_and_slow_tests_and_files_and_the_seconds_of_each_part(
    tmp_path: Path,
) -> None:
    out = call(tmp_path)[2].splitlines()
    undecided = out.index("== Undecided: every attempt was disturbed")
    skipped = out.index("== Skipped, by reason")
    assert set(out[undecided + 1 : skipped]) == {
        "test_a.py::test_c: all 8 attempts were disturbed",
        "undecided: a.rs:1: a clock: steal 90 ms",
    }
    assert out[skipped + 1].split(maxsplit=1) == ["2", "needs IPv6"]
    assert out.count("     1.5 s  test_a.py::test_b") == 2
    assert out.count("     3.0 s  test_a.py") == 1
    parts = [line.split(" s  ") for line in out[out.index("== Seconds by part") + 1 :]]
    assert all(int(seconds) >= 0 for seconds, _ in parts)
    assert [name for _, name in parts] == [
        "Programs that tests start",
        "Byte code of the tests",
        "Python without measurements",
        "Building the Rust tests, what is left of it",
        "Rust without measurements",
        "Rust that measures",
        "Python that measures",
        "in all",
    ]


def test_every_folder_says_whether_it_measures() -> None:
    files = (path.relative_to(ROOT / "tests") for path in ROOT.glob("tests/*/**/test_*.py"))
    assert {path.parts[0] for path in files} == ALONE | TOGETHER
    assert not ALONE & TOGETHER
    with pytest.raises(pytest.UsageError, match="tests/new is in no list"):
        runs_alone("new", frozenset())


@pytest.mark.parametrize(
    ("folder", "marks", "alone"),
    [
        ("truth", (), True),
        ("truth", ("together",), False),
        ("measure", ("usefixtures", "alone"), True),
        ("measure", ("slow",), False),
        ("", (), False),
    ],
)
def test_a_mark_says_otherwise_than_the_folder(
    folder: str, marks: tuple[str, ...], alone: bool
) -> None:
    assert runs_alone(folder, frozenset(marks)) == alone


def test_only_modules_of_tests_mark_what_runs_alone() -> None:
    """Those without the mark are not imported where only such tests are chosen (conftest.py)."""
    helpers = [path for path in ROOT.glob("tests/**/*.py") if not path.name.startswith("test_")]
    marking = [path.name for path in helpers if "mark.alone" in path.read_text("utf-8")]
    assert marking == ["conftest.py"]


def test_this_one_runs_beside_others(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("alone") is None


@pytest.mark.alone
def test_this_one_runs_by_itself(request: pytest.FixtureRequest) -> None:
    assert "PYTEST_XDIST_WORKER" not in os.environ or request.config.getoption("markexpr") == ""
