"""A benchmark with a far side is added as docs/architecture.md says: a file and its lines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.e2e.conftest import Run

from nephoscope import catalog

TOY = Path(__file__).with_name("toy_echo.rs")
FOLDER = Path("crates/probe/src/instruments")

PLAN = """\
version: 1
name: toy
seed: 1
repeat: {min: 6, max: 6}
targets: [{name: near}, {name: far}]
benchmarks: [{benchmark: toy.echo, on: near, peer: far, params: {messages: 5}}]
"""


def add_to_table(table: Path) -> None:
    """Writes the lines of the toy beside those of `null`."""
    text = table.read_text(encoding="utf-8")
    for line in [line for line in text.splitlines() if re.search(r"\bnull\b", line)]:
        added = re.sub(r"\bnull\b", "toy_echo", line)
        text = text.replace(line, f"{line}\n{added}", 1)
    table.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def probe_with_toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A probe that was built from a copy of the sources with the toy added."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "crates", copy / "crates")
    shutil.copy(TOY, copy / FOLDER)
    add_to_table(copy / FOLDER / "mod.rs")
    # A folder of its own, which stays: dependencies are compiled once, other builds stay untouched.
    target = ROOT / "target" / "toy"
    words = ["cargo", "build", "-q", "--locked", "-p", "nephoscope-probe", "--target-dir", target]
    path = f"{os.environ['PATH']}:{os.environ.get('CARGO_HOME', Path.home() / '.cargo')}/bin"
    done = subprocess.run(
        words, cwd=copy, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return target / "debug" / "nephoscope-probe"


@pytest.mark.slow
def test_a_benchmark_with_a_far_side_runs_between_two_targets(
    probe_with_toy: Path, tmp_path: Path, nephoscope: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = subprocess.run([probe_with_toy, "describe"], capture_output=True, check=True)
    contracts = tmp_path / "contracts"
    shutil.copytree(catalog.contracts_folder(), contracts)
    # What set-up does.
    (contracts / "benchmarks.json").write_bytes(described.stdout)
    monkeypatch.setattr(catalog, "contract_path", lambda name: contracts / name)
    monkeypatch.setenv("NEPHOSCOPE_PROBE", str(probe_with_toy))
    catalog.load.cache_clear()
    try:
        plan = tmp_path / "plan.yaml"
        plan.write_text(PLAN, encoding="utf-8")
        done = nephoscope("run", plan, "--json")
        assert done.code == 0, done.err
        (metric,) = done.json()["metrics"]
        assert (metric["benchmark"], metric["estimate"]["n"]) == ("toy.echo", 6)
        assert 0 < metric["estimate"]["value"] < 1e9
        assert "toy.echo" in nephoscope("list", "--search", "toy").out
    finally:
        catalog.load.cache_clear()


def test_the_toy_is_declared_as_the_probe_declares_benchmarks(tmp_path: Path) -> None:
    """The fast part: the lines that are added are those that the table has for a two-sided one."""
    table = tmp_path / "mod.rs"
    shutil.copy(ROOT / FOLDER / "mod.rs", table)
    add_to_table(table)
    added = [line for line in table.read_text(encoding="utf-8").splitlines() if "toy_echo" in line]
    assert len(added) == 2
    assert "toy_echo::serve" in added[1]
    (identifier,) = re.findall(r'^    id: "(.+)",$', TOY.read_text(encoding="utf-8"), re.M)
    assert TOY.stem == identifier.replace(".", "_")
    assert json.dumps(identifier) not in catalog.contract_path("benchmarks.json").read_text()
