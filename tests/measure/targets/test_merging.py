"""Merging of pages that a killed load left on is switched off, unless another load uses it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nephoscope.cli.kit import abandoned
from nephoscope.core import leases
from nephoscope.measure.targets import merging


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the kernel's files, and a state without leases."""
    folder = tmp_path / "ksm"
    folder.mkdir()
    for name, value in {"run": "0", "pages_to_scan": "100", "sleep_millisecs": "20"}.items():
        (folder / name).write_text(f"{value}\n")
    monkeypatch.setattr(merging, "FOLDER", folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(leases, "_own", [])
    monkeypatch.setattr("nephoscope.measure.targets.removal.PATIENCE_S", 0.1)
    return folder


def settings(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text().strip() for path in folder.iterdir()}


def leave_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load begins, and its process ends without removing its lease."""
    merging.lease()
    for name, value in {"run": "1", "pages_to_scan": "9999", "sleep_millisecs": "1"}.items():
        (folder / name).write_text(value)
    os.close(leases._own[-1]._descriptor)
    monkeypatch.setattr(leases, "_own", [])


def test_the_next_command_restores_the_settings_and_says_so(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_on(kernel, monkeypatch)
    abandoned.remove_abandoned()
    assert settings(kernel) == {"run": "0", "pages_to_scan": "100", "sleep_millisecs": "20"}
    assert "was left on by a process that was killed; it is off" in capsys.readouterr().err
    abandoned.remove_abandoned()
    assert capsys.readouterr().err == ""


def test_a_load_that_runs_keeps_its_merging(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_on(kernel, monkeypatch)
    (kernel / "run").write_text("0")
    merging.lease()
    (kernel / "run").write_text("1")
    abandoned.remove_abandoned()
    assert settings(kernel)["run"] == "1"


def test_merging_of_somebody_else_is_never_leased(kernel: Path) -> None:
    (kernel / "run").write_text("1")
    merging.lease()
    assert not leases._own


def test_nothing_is_restored_after_a_restart_of_the_machine(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    leave_on(kernel, monkeypatch)
    boot = tmp_path / "boot"
    boot.write_text("another\n")
    monkeypatch.setattr(merging, "_BOOT", boot)
    abandoned.remove_abandoned()
    assert settings(kernel)["run"] == "1"
