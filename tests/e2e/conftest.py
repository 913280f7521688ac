"""The program as its users run it: its words, its two streams, its exit code."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.hardware import Feature, lacking

from nephoscope import command_line

PROGRAM = (sys.executable, "-m", "nephoscope")

LAUNCHER = """
use std::os::unix::process::CommandExt;
fn main() {
    let own = std::env::current_exe().unwrap();
    let mut shell = std::process::Command::new("/bin/sh");
    let error = shell.arg(own.with_extension("sh")).args(std::env::args().skip(1)).exec();
    panic!("{error}");
}
"""
"""A probe has to be a Linux program; this one does what the script beside it says."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def sentence(self) -> str:
        """The one line that starts with our name; fails when there is none, or a traceback."""
        told = [line for line in self.err.splitlines() if line.startswith("nephoscope: ")]
        assert len(told) == 1, self.err
        assert "Traceback" not in self.err + self.out
        assert "defect" not in self.err
        return told[0]


Run = Callable[..., Done]


@pytest.fixture
def nephoscope(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command: inside this process, or in one of its own where the process matters.

    before: what stands before the program on the command line, for which it is a process of its
    own, as with `process`. env: variables of its environment.
    """

    def run(
        *words: object,
        before: tuple[str, ...] = (),
        timeout: float = 240,
        process: bool = False,
        **env: str,
    ) -> Done:
        if not (before or process or words[:2] == ("lab", "exec")):
            with monkeypatch.context() as patch:
                for name, value in {"NO_COLOR": "1", **env}.items():
                    patch.setenv(name, value)
                return run_inside([str(word) for word in words])
        done = subprocess.run(
            [*before, *PROGRAM, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "NO_COLOR": "1", **env},
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


def run_inside(words: list[str]) -> Done:
    """Runs a command in this process, which has imported everything already."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command_line.main(words)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.detach().getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    return Done(code, *texts)


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled launcher."""
    folder = tmp_path_factory.mktemp("launcher")
    source = folder / "launcher.rs"
    source.write_text(LAUNCHER)
    subprocess.run(
        ["rustc", "--edition", "2021", "-o", folder / "launcher", source],
        check=True,
        capture_output=True,
    )
    return folder / "launcher"


@pytest.fixture
def fake_probe(launcher: Path, probe: Path, tmp_path: Path) -> Callable[[str], str]:
    """Path of a probe that runs a shell script; in it $REAL is the real probe."""

    def make(script: str) -> str:
        path = tmp_path / "fake-probe"
        shutil.copy(launcher, path)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        path.with_suffix(".sh").write_text(f"REAL={probe}\n{script}\n")
        return str(path)

    return make


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan of ten short rounds whose values are known: 100 and 200."""
    path = tmp_path / "plan.yaml"
    path.write_text(
        "version: 1\nname: known\nseed: 3\nrepeat: {min: 10, max: 10}\nbenchmarks:\n"
        '  - benchmark: "null"\n    params: {wait_ns: 20ms}\n    factors: {value: [100, 200]}\n'
    )
    return path


@pytest.fixture
def half_a_cpu(root_only: None) -> Iterator[Path]:
    """A control group of half a CPU; write a process id into its cgroup.procs to enter it."""
    name = f"nephoscope-test-{uuid.uuid4().hex[:8]}"
    first = Path("/sys/fs/cgroup/cpu")
    if (first / "cpu.cfs_quota_us").exists() or (first / "tasks").exists():
        group = first / name
        settings = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}
    else:
        group = Path("/sys/fs/cgroup") / name
        settings = {"cpu.max": "50000 100000"}
    try:
        group.mkdir()
        for file, value in settings.items():
            (group / file).write_text(value)
    except OSError as error:
        lacking(Feature.CONTROL_GROUPS, str(error))
    try:
        yield group
    finally:
        group.rmdir()


def mounted(commands: str) -> tuple[str, ...]:
    """Words that run what follows in a mount namespace of its own, after these commands."""
    return ("unshare", "--mount", "sh", "-ec", f'{commands}\nexec "$@"', "sh")
