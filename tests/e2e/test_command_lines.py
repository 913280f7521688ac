"""`nephoscope bench --command` from the words to the files."""

from __future__ import annotations

import json
from pathlib import Path

from tests import schemas
from tests.e2e.conftest import Run

from nephoscope.cli.commands.command_lines.text import WORDS


def test_two_commands_are_measured_compared_and_exported(nephoscope: Run, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    words = ["bench", "--command", "true", "--command", "sleep 0.15", "-n", "nothing", "-r", 10]
    done = nephoscope(*words, "--seed", 3, "--warmup", 0, "--export-json", file)
    assert done.code == 0, done.err
    # How certain the verdict is depends on what else the machine does; that it is given does not.
    assert " times as fast as " in done.out
    assert "10 executions" in done.out
    results = json.loads(file.read_text())["results"]
    assert [one["command"] for one in results] == ["nothing", "sleep 0.15"]
    assert all(len(one["times"]) == 10 and set(one["exit_codes"]) == {0} for one in results)
    assert min(results[1]["times"]) >= 0.15
    shown = nephoscope("show", "latest", "--json").json()
    schemas.validate(shown, schemas.result_schema())
    (verdict,) = [
        one["comparison"]["verdict"]["word"]
        for one in shown["experiment"]["comparisons"]
        if one["metric"] == "wall_ns"
    ]
    assert WORDS[verdict].upper() in done.out


def test_a_command_that_fails_is_told_in_one_sentence(nephoscope: Run) -> None:
    done = nephoscope("bench", "--command", "ls /no/such/folder", "-r", 2)
    assert done.code == 3
    assert "'ls' ended with exit code 2: ls: cannot access" in done.sentence
    missing = nephoscope("bench", "--command", "no-such-program-here", "-r", 2)
    assert "There is no program 'no-such-program-here' in PATH" in missing.sentence
    assert missing.code == 4
