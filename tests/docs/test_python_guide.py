"""The code of the guide to the Python interface runs as it stands."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "how-to" / "python-api.md"
STORED = ROOT / "tests" / "golden" / "stored_run" / "runs"


def test_every_block_of_the_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path))
    (stored,) = STORED.iterdir()
    later = re.sub(r"-(\d{6})-", "-235959-", stored.name)
    for name in (stored.name, later):
        shutil.copytree(stored, tmp_path / "runs" / name)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    printed = capsys.readouterr().out
    assert len(blocks) == 9
    assert f"{later} finished" in printed
    assert "response_time_mean_ns equivalent 1.0" in printed
    assert "There is no run 'no-such-run'" in printed
