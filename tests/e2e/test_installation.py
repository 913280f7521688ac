"""The wheel alone, in roots that have nothing else of the project; the sources without Rust."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests import hardware
from tests.conftest import ROOT
from tests.hardware import Feature
from tests.tools import needs

from nephoscope import __version__, catalog

pytestmark = pytest.mark.slow
IN_A_ROOT = (
    needs("mmdebstrap"),
    hardware.needs(Feature.ROOT, os.geteuid() == 0),
)
SURVEYED = re.compile(r"Benchmark report: .*\n\nSUMMARY\n", re.S)


def built(folder: Path, source: Path = ROOT, **environment: str) -> Path:
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*words, "-w", str(folder), str(source)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


def tried(kind: str, argument: Path) -> str:
    """Returns what tools/try_wheel.sh prints of a root."""
    words = [str(ROOT / "tools" / "try_wheel.sh"), kind, str(argument)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_a_root(*marks: pytest.MarkDecorator) -> list[pytest.MarkDecorator]:
    return [*IN_A_ROOT, *marks]


@pytest.mark.parametrize(
    ("kind", "python"),
    [
        pytest.param("debian", "Python 3.11", marks=in_a_root()),
        pytest.param("musl", "Python 3.13", marks=in_a_root(needs("musl-gcc"))),
    ],
)
def test_a_survey_of_a_root_with_the_wheel_alone(wheel: Path, kind: str, python: str) -> None:
    out = tried(kind, wheel)
    assert f"nephoscope {__version__} (probe {__version__}" in out
    assert python in out
    assert SURVEYED.search(out), out
    if kind == "debian":
        (size,) = re.findall(r"^installed: (\d+) MiB", out, re.M)
        # docs/decisions/0026-dependencies-stay.md has the parts; a quarter more is a new decision.
        assert int(size) < 550


@needs("mmdebstrap")
@hardware.needs(Feature.ROOT, os.geteuid() == 0)
def test_the_programs_for_64_bit_arm_run_and_are_in_their_wheel(tmp_path: Path) -> None:
    out = tried("aarch64", tmp_path)
    for program in ("probe", "lab", "sim"):
        assert f"nephoscope-{program} {__version__}" in out
    described = json.loads((tmp_path / "described.json").read_text())
    native = json.loads((catalog.contracts_folder() / "benchmarks.json").read_text())
    assert described == native
    samples = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert any(sample.get("metric") == "pi_digits_per_s" for sample in samples), samples
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("musllinux_1_1_aarch64.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = archive.read("nephoscope/_probe/aarch64-linux/nephoscope-probe")
    # ELF for machine 0xB7.
    assert (packed[:4], packed[18:20]) == (b"\x7fELF", b"\xb7\x00")


def test_the_source_archive_builds_without_cargo_from_the_programs_of_a_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "sources", filter="data")
    (sources,) = (tmp_path / "sources").iterdir()
    assert not (sources / "src" / "nephoscope" / "_probe").exists()
    # Nothing of Rust on the path, nor where set-up looks for it.
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CARGO_HOME": str(tmp_path)}
    again = built(tmp_path / "again", sources, NEPHOSCOPE_PROBE_WHEEL=str(wheel), **bare)
    with zipfile.ZipFile(again) as new, zipfile.ZipFile(wheel) as old:
        programs = [name for name in old.namelist() if name.startswith("nephoscope/_probe/")]
        assert len(programs) >= 4
        for name in programs:
            assert new.read(name) == old.read(name)
            assert new.getinfo(name).external_attr == old.getinfo(name).external_attr
        assert {Path(name).name for name in new.namelist()} == {
            Path(name).name for name in old.namelist()
        }
