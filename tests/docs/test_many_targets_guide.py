"""The commands of the guide to many targets, with fewer of them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "many-targets.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope (.*)$", TEXT, re.M)
FILES = re.findall(r"^```yaml title=\"([^\"]+)\"\n(.*?)^```$", TEXT, re.M | re.S)
PATTERNS = (
    r"cpu\.hash throughput",
    r"",
    r"node-1, node-2, node-3, .* others",
    r"All 12 targets answer from a recording of run \S+-hosts-",
    r"recorded=all",
    r"",
)
"""What each command of the guide has to print."""


@pytest.mark.usefixtures("probe")
def test_every_command_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    for name, text in FILES:
        (tmp_path / name).write_text(
            text.replace("count: 1000", "count: 12").replace("10, max: 10", "6, max: 6"), "utf-8"
        )
    assert len(COMMANDS) == len(PATTERNS)
    for command, pattern in zip(COMMANDS, PATTERNS, strict=True):
        done = run_inside(shlex.split(command))
        assert done.code == 0, (command, done)
        assert re.search(pattern, " ".join(done.out.split())), (command, done.out)
    head, *rows = (tmp_path / "fleet.csv").read_text("utf-8").splitlines()
    place = head.split(",").index("recorded")
    assert {row.split(",")[place] for row in rows} == {"True"}
