"""`bench --command` on machines that are reached: over ssh, and in a lab."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests import sshd
from tests.contract.conftest import Factory
from tests.e2e.conftest import run_inside


def measured_on(target: str, store: Path) -> None:
    """Runs a command line that says which machine it runs on; its result is that machine's."""
    words = ["bench", "--command", "sleep 0.01", "--target", target, "--runs", "3"]
    done = run_inside([*words, "--warmup", "0", "--store", str(store)])
    assert done.code == 0, done.err
    shown = run_inside(["show", "latest", "--json", "--store", str(store)]).json()
    (wall,) = (one for one in shown["metrics"] if one["metric"] == "wall_ns")
    assert wall["target"] != "local"
    assert wall["estimate"]["value"] >= 10_000_000
    assert shown["run"]["trials"]["failed"] == 0


def test_over_ssh(
    servers: tuple[sshd.Server, sshd.Server],
    probe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host, _ = servers
    (tmp_path / ".ssh").mkdir(mode=0o700)
    (tmp_path / ".ssh" / "config").write_text(
        f"Host far\n  HostName 127.0.0.1\n  Port {host.port}\n  User {host.user}\n"
        f"  IdentityFile {host.folder / 'identity'}\n  UserKnownHostsFile {host.known_hosts}\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    measured_on("ssh:far", tmp_path / "store")


def test_in_a_lab(bare: Factory, probe: Path, tmp_path: Path) -> None:
    measured_on(f"lab:t{os.getpid()}b/a", tmp_path / "store")
