from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from nephoscope import catalog
from nephoscope.core.errors import Lacking, TargetError
from nephoscope.core.programs import find_probe
from nephoscope.measure.targets.probe.output import check_version


def elf(path: Path, machine: int, mode: int = 0o755) -> Path:
    path.write_bytes(b"\x7fELF\x02\x01" + bytes(12) + struct.pack("<H", machine))
    path.chmod(mode)
    return path


def test_the_environment_names_a_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = elf(tmp_path / "probe", 0x3E)
    monkeypatch.setenv("NEPHOSCOPE_PROBE", str(path))
    assert find_probe("x86_64") == path


def test_a_probe_for_another_processor_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEPHOSCOPE_PROBE", str(elf(tmp_path / "probe", 0xB7)))
    with pytest.raises(Lacking, match="built for aarch64; this machine is x86_64") as caught:
        find_probe("x86_64")
    assert caught.value.exit_code == 4


def test_what_is_no_probe_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    for path, words in {
        tmp_path / "none": "there is no such file",
        tmp_path: "there is no such file",
        script: "is no Linux program",
    }.items():
        monkeypatch.setenv("NEPHOSCOPE_PROBE", str(path))
        with pytest.raises(Lacking, match=words) as caught:
            find_probe("x86_64")
        assert "`make survey`" in str(caught.value)


def test_a_probe_that_may_not_be_executed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEPHOSCOPE_PROBE", str(elf(tmp_path / "probe", 0x3E, 0o644)))
    with pytest.raises(Lacking, match=r"Run `chmod \+x"):
        find_probe("x86_64")


def test_a_processor_without_a_probe_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEPHOSCOPE_PROBE", raising=False)
    monkeypatch.setattr("nephoscope.core.programs.resources.files", lambda _: Path("/no/such/dir"))
    with pytest.raises(Lacking, match="no nephoscope-probe for sparc64") as caught:
        find_probe("sparc64")
    assert "`make survey`" in str(caught.value)


@pytest.mark.parametrize(
    "answer", [b"", b"hello", b"{}", b"[]", b'{"probe": "0.1.0"}', b'{"probe": 1, "protocol": {}}']
)
def test_what_does_not_answer_as_a_probe_is_told(answer: bytes) -> None:
    with pytest.raises(TargetError, match="is no nephoscope-probe"):
        check_version(answer, catalog.load(), "local")


@pytest.mark.parametrize("change", [{"probe": "9.9.9"}, {"protocol": 99}])
def test_another_version_is_told_with_both(change: dict[str, object]) -> None:
    known = catalog.load()
    answer = {"probe": known.probe, "protocol": known.protocol, "benchmarks": []}
    check_version(json.dumps(answer).encode(), known, "local")
    with pytest.raises(TargetError, match=f"this package needs {known.probe}") as caught:
        check_version(json.dumps({**answer, **change}).encode(), known, "local")
    assert caught.value.exit_code == 3
