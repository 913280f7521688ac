"""What every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _private_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's own store."""
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("NEPHOSCOPE_DEBUG", raising=False)


@pytest.fixture(scope="session")
def probe() -> Path:
    """The probe that the set-up built."""
    from nephoscope.targets.probe import find_probe

    return find_probe()


@pytest.fixture
def root_only() -> None:
    """Skips, with the reason, what needs privileges that this user lacks."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes a control group, a mount or a real-time reservation")
