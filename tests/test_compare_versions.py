"""Stored runs keep their meaning: a run of an earlier version, analysed again, states the same."""

from __future__ import annotations

import copy
import json
import shutil
import sys
from pathlib import Path

from tests.compare_versions import analyse, differences, statements

STORED = Path(__file__).parent / "golden" / "stored_run"
COMMAND = f"{sys.executable} -m nephoscope"


def test_a_stored_run_of_an_earlier_version_states_the_same(tmp_path: Path) -> None:
    shutil.copytree(STORED / "runs", tmp_path / "runs")
    earlier = json.loads((STORED / "result-0.1.0.json").read_text(encoding="utf-8"))
    assert len(statements(earlier)) == 10
    assert differences(earlier, analyse(COMMAND, tmp_path, "latest")) == []


def test_whatever_changes_is_a_difference() -> None:
    earlier = json.loads((STORED / "result-0.1.0.json").read_text(encoding="utf-8"))
    later = copy.deepcopy(earlier)
    later["metrics"][0]["high"] *= 1 + 1e-9
    del later["findings"][0]
    later["findings"].append({"id": "new", "severity": "info"})
    changed = differences(earlier, later)
    assert len([line for line in changed if line.startswith("-")]) == 2
    assert len([line for line in changed if line.startswith("+")]) == 1
    later["metrics"].append({**later["metrics"][0], "metric": "another"})
    assert len(differences(earlier, later)) == len(changed)
