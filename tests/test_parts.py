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
(printf '%s' "${0##*/}"; printf '\\t%s' "$@"; echo) >>"$CALLS"
case "$*" in *"$FAILING"*)
  left=$(cat "$CALLS.left") && [ "$left" -gt 0 ] && echo $((left - 1)) >"$CALLS.left" && exit 5 ;;
esac
exit 0
"""

Calls = list[list[str]]


def call(folder: Path, *words: str, failing: str = "nothing", times: int = 99) -> tuple[int, Calls]:
    """Exit code of tools/test.sh and the commands that it ran, where cargo, Python and sleep do no
    more than tell; those whose words contain `failing` fail so many times."""
    for program in (".venv/bin/python", "bin/cargo", "bin/sleep"):
        (folder / program).parent.mkdir(parents=True, exist_ok=True)
        (folder / program).write_text(CALL)
        (folder / program).chmod(0o755)
    (folder / "tools").mkdir(exist_ok=True)
    script = shutil.copy(ROOT / "tools" / "test.sh", folder / "tools")
    calls = folder / "calls"
    calls.write_text("")
    (folder / "calls.left").write_text(str(times))
    env = {
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "HOME": str(folder),
        "CALLS": str(calls),
        "FAILING": failing,
    }
    done = subprocess.run(["bash", script, *words], env=env, capture_output=True)
    return done.returncode, [line.split("\t") for line in calls.read_text().splitlines()]


def of(program: str, calls: Calls) -> Calls:
    found = [words[1:] for words in calls if words[0] == program]
    assert len(found) == 2
    return found


def chosen_by(words: list[str]) -> str:
    """The choice by marks of one call of pytest."""
    assert words[:2] == ["-m", "pytest"]
    return words[words.index("-m", 2) + 1]


def test_every_test_is_run_once_and_slow_ones_if_asked_for(tmp_path: Path) -> None:
    (code, usual), (code_of_all, every) = call(tmp_path), call(tmp_path, "--all")
    assert (code, code_of_all) == (0, 0)
    for slow, alone in itertools.product((False, True), repeat=2):
        marks = {"slow": slow, "alone": alone}
        for calls, wanted in ((usual, int(not slow)), (every, 1)):
            runs = [eval(chosen_by(words), marks) for words in of("python", calls)]
            assert runs.count(True) == wanted, (marks, calls)
    for words in (*of("python", usual), *of("python", every)):
        # All folders; what was skipped is told with its reason, and what took longest.
        assert {"-rs", "--durations=40"} <= set(words)
        assert not any(word.startswith(("tests", "-k")) for word in words)


def test_nothing_runs_beside_a_measurement(tmp_path: Path) -> None:
    _, calls = call(tmp_path)
    for words in of("python", calls):
        assert ("-n" in words) == (chosen_by(words) == "not slow and not alone")
    together, measuring = of("cargo", calls)
    assert "--test-threads=1" in measuring
    # What the one leaves out is what the other runs.
    assert "--workspace" in together
    left_out = [word for before, word in itertools.pairwise(together) if before == "--exclude"]
    run = [word for before, word in itertools.pairwise(measuring) if before == "-p"]
    assert sorted(left_out) == sorted(run) == ["nephoscope-lab", "nephoscope-probe"]


@pytest.mark.parametrize(
    "failing",
    ["--workspace", "-p nephoscope-probe", "not slow and not alone", "not slow and alone"],
)
def test_each_part_runs_though_one_fails_and_the_failure_is_told(
    tmp_path: Path, failing: str
) -> None:
    code, calls = call(tmp_path, failing=failing)
    rust_again = 2 if failing.startswith("-p") else 0
    assert (code, len(calls)) == (1, 4 + rust_again)


def test_only_what_measures_is_tried_again(tmp_path: Path) -> None:
    code, calls = call(tmp_path, failing="-p nephoscope-probe", times=1)
    assert (code, [words[0] for words in calls]) == (
        0,
        ["cargo", "cargo", "sleep", "cargo", "python", "python"],
    )
    assert calls[1] == calls[3]
    together, alone = of("python", call(tmp_path)[1])
    assert "--reruns" in alone
    assert {"--rerun-show-tracebacks", "-rsR"} <= set(alone)
    assert not any("rerun" in word for word in together)


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
        ("lab", ("usefixtures", "alone"), True),
        ("lab", ("slow",), False),
        ("", (), False),
    ],
)
def test_a_mark_says_otherwise_than_the_folder(
    folder: str, marks: tuple[str, ...], alone: bool
) -> None:
    assert runs_alone(folder, frozenset(marks)) == alone


def test_this_one_runs_beside_others(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("alone") is None


@pytest.mark.alone
def test_this_one_runs_by_itself(request: pytest.FixtureRequest) -> None:
    assert "PYTEST_XDIST_WORKER" not in os.environ or request.config.getoption("markexpr") == ""
