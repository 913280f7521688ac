"""`sys.calls`, `app.lzma` and the password hashes of `cpu.hash` against what is known of them."""

from __future__ import annotations

import lzma
import subprocess
from pathlib import Path

import pytest
from trials import refused, run

from nephoscope.catalog.adapters import ADAPTERS


def test_calls_are_ordered_by_what_they_do() -> None:
    calls = ["getpid", "page_fault", "signal", "fork", "exec"]
    trial = run("sys.calls", {"calls": calls, "duration_ns": 20_000_000})
    times = {sample["factors"]["call"]: sample["value"] for sample in trial.samples}
    assert list(times) == calls
    # A process costs hundreds of times a system call, and a program more than that.
    assert 10 < times["getpid"] < times["fork"] < times["exec"]


@pytest.mark.together
def test_a_program_that_does_not_exist_is_named() -> None:
    assert refused("sys.calls", {"program": "no-such-program-here"}) == (4, "no_program")


@pytest.mark.together
@pytest.mark.truth("app.lzma", "compressed_ratio")
def test_the_text_shrinks_as_with_another_coder(tmp_path: Path) -> None:
    (step,) = ADAPTERS["xz"].build_command({"corpus_bytes": 65_536}).prepare
    subprocess.run([step.program, *step.arguments], cwd=tmp_path, check=True)
    text = (tmp_path / "corpus").read_bytes()
    wanted = len(lzma.compress(text, format=lzma.FORMAT_ALONE, preset=6)) / len(text)
    params = {"corpus_bytes": len(text), "preset": 6, "threads": 1, "duration_ns": 0}
    assert run("app.lzma", params).one("compressed_ratio") == pytest.approx(wanted, rel=0.02)


@pytest.mark.together
@pytest.mark.parametrize("algorithm", ["des-crypt", "md5-crypt", "bcrypt"])
def test_password_hashes_have_a_rate(algorithm: str) -> None:
    params = {"algorithm": algorithm, "threads": 1, "duration_ns": 5_000_000, "cost": 4}
    trial = run("cpu.hash", params)
    assert trial.one("hashes_per_s") > 0
    assert trial.metrics == {"hashes_per_s", "hash_thread_per_s"}
