"""`command` against programs that state what they used: time, CPU time, memory, exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.attempts import attempt
from trials import Trial, refused, run

BURN = """
import os, resource
while resource.getrusage(resource.RUSAGE_SELF).ru_utime < 0.2:
    for _ in range(10_000):
        pass
used = resource.getrusage(resource.RUSAGE_SELF)
os.write(1, f"{used.ru_utime + used.ru_stime} {used.ru_utime}".encode())
os._exit(0)
"""
TOUCH = """
import os, resource
held = bytearray(b"x") * (96 << 20)
os.write(1, str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss).encode())
os._exit(0)
"""
EXIT_S = 0.02
"""CPU time that the kernel needs to load the program's loader and to take its memory back, and two
clock ticks, by which it splits CPU time between user and kernel mode."""


def once(argv: list[str], **params: Any) -> Trial:
    return run("command", {"argv": argv, "minimum_runs": 1, "maximum_runs": 1, **params})


def test_a_sleep_takes_its_time_and_hardly_any_cpu_time() -> None:
    trial = run("command", {"argv": ["sleep", "0.05"], "minimum_runs": 4, "maximum_runs": 4})
    walls = trial.document("executions")["wall_ns"]
    assert len(walls) == 4
    assert min(walls) >= 50_000_000
    # A scheduler may wake it late, but each execution is inside the trial.
    assert sum(walls) <= trial.done["elapsed_ns"]
    assert trial.one("cpu_ns") < 0.5 * 50_000_000
    assert min(walls) <= trial.one("wall_ns") <= max(walls)


@pytest.mark.truth("command", "cpu_ns", "user_ns")
def test_cpu_time_is_what_the_program_itself_was_told(tmp_path: Path) -> None:
    output = tmp_path / "used"

    def measure() -> tuple[str, bool]:
        trial = once([sys.executable, "-S", "-c", BURN], output=str(output))
        cpu_s, user_s = map(float, output.read_text().split())
        assert user_s >= 0.2
        more_s, more_user_s = trial.one("cpu_ns") / 1e9 - cpu_s, trial.one("user_ns") / 1e9 - user_s
        assert trial.one("wall_ns") >= trial.one("cpu_ns")
        text = f"{1e3 * more_s:+.1f} ms, {1e3 * more_user_s:+.1f} ms in user mode"
        return text, 0 <= more_s <= EXIT_S and abs(more_user_s) <= EXIT_S

    attempt("CPU time of a program", measure)


@pytest.mark.together
@pytest.mark.truth("command", "max_rss_bytes")
def test_peak_memory_is_that_of_the_program(tmp_path: Path) -> None:
    output = tmp_path / "peak"
    trial = once([sys.executable, "-S", "-c", TOUCH], output=str(output))
    own = int(output.read_text()) << 10
    assert own >= 96 << 20
    # Each CPU counts some pages before it adds them to the sum.
    assert abs(trial.one("max_rss_bytes") - own) <= 4 << 20


@pytest.mark.together
def test_memory_below_the_probes_own_is_not_stated() -> None:
    trial = once(["true"])
    assert "max_rss_bytes" in trial.metrics or "peak memory is missing" in trial.notes


@pytest.mark.together
@pytest.mark.truth("command", "failures_count", "executions")
@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -TERM $$", 128 + 15)])
def test_exit_codes_are_kept_where_failures_are_accepted(script: str, code: int) -> None:
    trial = run(
        "command",
        {"argv": ["sh", "-c", script], "exit_codes": [], "minimum_runs": 3, "maximum_runs": 3},
    )
    assert trial.document("executions")["exit_codes"] == [code] * 3
    assert trial.one("failures_count") == 3
    assert refused("command", {"argv": ["sh", "-c", script]}) == (3, "command_failed")


@pytest.mark.together
def test_steps_around_run_as_often_as_they_are_said_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = {
        step: [f"echo {step} >> {log}"] for step in ("setup", "prepare", "conclude", "cleanup")
    }
    run(
        "command",
        {
            "argv": [f"echo run >> {log}; sleep 0.2"],
            "shell": ["sh"],
            "minimum_runs": 2,
            "maximum_runs": 2,
            **steps,
        },
    )
    each = ["prepare", "run", "conclude"]
    assert log.read_text().split() == ["setup", *each, *each, "cleanup"]


def test_the_start_of_a_shell_is_subtracted() -> None:
    trial = run(
        "command",
        {"argv": ["sleep 0.3"], "shell": ["sh"], "minimum_runs": 3, "maximum_runs": 3},
    )
    assert trial.one("shell_ns") > 0
    # What is left is the sleep and the start of the program in the shell, not the shell's own.
    assert trial.one("wall_ns") + trial.one("shell_ns") >= 300_000_000


@pytest.mark.together
def test_a_missing_program_is_lacking() -> None:
    assert refused("command", {"argv": ["no-such-program-here"]}) == (4, "no_program")
    assert refused("command", {"argv": []}) == (2, "usage")


@pytest.mark.together
@pytest.mark.truth("command", "figure", "higher_figure", "executions")
def test_figures_are_read_from_the_output_of_each_execution() -> None:
    figures = ["rate:higher=^rate ([0-9.]+)$", "size=size ([0-9]+)"]
    argv = ["printf", "rate 12.5\nsize 3\n"]
    trial = run("command", {"argv": argv, "figures": figures, "minimum_runs": 3})
    assert (trial.one("higher_figure"), trial.one("figure")) == (12.5, 3)
    values = trial.document("executions")
    assert set(values["figures"]["rate"]) == {12.5}
    assert len(values["figures"]["rate"]) == len(values["wall_ns"]) >= 3


@pytest.mark.together
@pytest.mark.truth("command", "lower_figure")
def test_a_path_of_json_names_a_figure() -> None:
    argv = ["printf", "%s", '{"results": [{"mean": 0.25}]}']
    assert once(argv, figures=["mean:lower=$.results[0].mean"]).one("lower_figure") == 0.25


@pytest.mark.together
@pytest.mark.parametrize(
    ("figure", "error"),
    [
        ("x=nothing ([0-9]+)", (3, "no_figure")),
        ("x=([0-9])", (3, "no_figure")),
        ("x=$.a", (3, "no_figure")),
        ("x=12", (2, "usage")),
    ],
)
def test_a_figure_that_is_missing_is_never_assumed(figure: str, error: tuple[int, str]) -> None:
    assert refused("command", {"argv": ["echo", "1", "2"], "figures": [figure]}) == error
