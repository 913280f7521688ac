"""Shells complete commands, options, ids, targets and runs of the store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from tests.store.factory import filled
from tests.tools import needs

from nephoscope import command_line
from nephoscope.cli.kit import output


def completed(*words: str) -> list[str]:
    """What the last of the words is completed to."""
    shell = ShellComplete(command_line.program, {}, "nephoscope", output.COMPLETION_VARIABLE)
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["comp"], {"compact", "compare", "completion"}),
        (["compare", "--fail"], {"--fail-on"}),
        (["compare", "--fail-on", ""], {"worse", "different", "undecided"}),
        (["compare", "--metric", "pi_"], {"pi_digits_per_s", "pi_time_ns"}),
        (["bench", "cpu.p"], {"cpu.pi"}),
        (["bench", "cpu.pi", "--set", "di"], {"digits="}),
        (["list", "mem."], {"mem.cache", "mem.latency", "mem.stream"}),
        (["survey", "--target", "lo"], {"local"}),
        (["isolate", "fs"], {"fsync"}),
        (["isolate", "--target", "victim=lo"], {"victim=local"}),
        (["simulate", "selection", "zh"], {"zhuang-2012"}),
        (["schema", "top"], {"topology"}),
        (["study", "show", "zh"], {"zhuang-2012"}),
        (["study", "run", "zh"], {"zhuang-2012"}),
        (["show", "zh"], set()),
        (["show", "2026"], set()),
        (["bench", "nothing", "--set", "x"], set()),
    ],
)
def test_words_are_completed(words: list[str], expected: set[str]) -> None:
    assert set(completed(*words)) == expected


def test_runs_of_the_store_and_their_targets_are_completed(tmp_path: Path) -> None:
    run, _ = filled(tmp_path / "other")
    store = ["--store", str(tmp_path / "other")]
    assert completed("show", *store, run.id[:8]) == [run.id]
    assert completed("show", *store, "la") == ["latest"]
    assert completed("compare", *store, f"{run.id}:") == [f"{run.id}:local"]
    assert completed("compare", *store, "lo") == []
    assert completed("compare", *store, "--interleave", "lo") == ["local"]


def test_hosts_of_the_ssh_configuration_are_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host db1 db2\n  User x\nhost *.example\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert completed("bench", "null", "--target", "ssh:") == ["ssh:db1", "ssh:db2"]


def test_an_unreadable_store_completes_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    assert completed("show", "--store", str(tmp_path / "store"), "2") == []


@pytest.mark.parametrize(
    "shell", ["bash", *(pytest.param(shell, marks=needs(shell)) for shell in ("zsh", "fish"))]
)
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{output.COMPLETION_VARIABLE}={shell}_complete" in script
    subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=60)


def test_bash_completes_names_with_colons(tmp_path: Path) -> None:
    (tmp_path / "nephoscope").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nephoscope "$@"\n')
    (tmp_path / "nephoscope").chmod(0o755)
    asked = """
        compopt() { :; }
        source <(nephoscope completion bash)
        COMP_LINE="nephoscope bench null --target lo"; COMP_POINT=${#COMP_LINE}
        _nephoscope_completion; echo "${COMPREPLY[*]}"
        COMP_LINE="nephoscope bench null --target ssh:d"; COMP_POINT=${#COMP_LINE}
        _nephoscope_completion; echo "${COMPREPLY[*]}"
    """
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host db1\n")
    env = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", asked], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["local", "db1"], done.stderr


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "data/bash-completion/completions/nephoscope"),
        ("zsh", "data/zsh/site-functions/_nephoscope"),
        ("fish", "settings/fish/completions/nephoscope.fish"),
    ],
)
def test_scripts_are_written_where_shells_look_for_them(
    shell: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    printed = CliRunner().invoke(command_line.program, ["completion", shell])
    written = CliRunner().invoke(command_line.program, ["completion", shell, "--install"])
    assert written.stdout == f"{tmp_path / place}\n"
    assert (tmp_path / place).read_text() == printed.stdout
    assert ("fpath+=" in written.stderr) is (shell == "zsh")
