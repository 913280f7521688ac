"""`nephoscope bench --command` from the words to the files."""

from __future__ import annotations

import json
import re
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


def test_two_commands_are_measured_at_the_same_time(nephoscope: Run, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    words = ["bench", "--duet", "sleep 0.03", "sleep 0.06", "-n", "short", "-n", "long", "-r", 12]
    done = nephoscope(*words, "--warmup", 0, "--export-json", file, "--fail-on", "worse")
    text = " ".join(done.out.split())
    assert re.search(r"(short|long) is \d\S* \[.*\] times as fast as (short|long): ", text), (
        done.err
    )
    assert "12 executions" in text
    results = json.loads(file.read_text())["results"]
    assert [(one["command"], len(one["times"])) for one in results] == [("short", 12), ("long", 12)]
    assert min(results[1]["times"]) >= 0.06
    shown = nephoscope("show", "latest", "--json").json()
    schemas.validate(shown, schemas.result_schema())
    (duet,) = shown["duet"]["duets"]
    assert duet["comparison"]["n_a"] == 6
    # How certain the verdict is depends on what else the machine does; the code is that of it.
    verdict = duet["comparison"]["verdict"]
    assert WORDS[verdict["word"]].upper() in text
    assert done.code == (verdict["word"] == "worse")
    assert f"--fail-on worse: {'failed' if done.code else 'passed'}, by" in done.err
    assert verdict["sentence"] in " ".join(nephoscope("show", "latest").out.split())


def test_a_duet_that_fails_is_told_in_one_sentence(nephoscope: Run) -> None:
    done = nephoscope("bench", "--duet", "true", "ls /no/such/folder", "-r", 2)
    assert done.code == 3
    assert "ls /no/such/folder: 'ls' ended with exit code 2: ls: cannot access" in done.sentence
    missing = nephoscope("bench", "--duet", "no-such-program-here", "true", "-r", 2)
    assert "There is no program 'no-such-program-here' in PATH" in missing.sentence
    assert missing.code == 4
    late = nephoscope("bench", "--duet", "true", "sleep 300.25", "-w", 0, "--timeout", "1s")
    assert late.code == 3
    assert "The deadline passed before the benchmark was done" in late.err
    commands = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))
    assert not any(b"sleep\x00300.25" in words for words in commands)
