"""The notebook of the documentation holds the outputs that its cells have now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import notebook

    return notebook


def test_every_cell_runs_and_shows_what_is_stored(tool: Any) -> None:
    stored = json.loads(tool.NOTEBOOK.read_text(encoding="utf-8"))
    now = tool.executed(stored)
    assert len([cell for cell in now["cells"] if cell.get("outputs")]) >= 12
    for before, cell in zip(stored["cells"], now["cells"], strict=True):
        assert cell == before, "run tools/notebook.py"
    page = tool.as_markdown(now)
    assert "<b>Run 20261122-235959-bench-sim-queue-e3e6, finished</b>" in page
    assert "B is better than A" in page


def test_outputs_are_what_is_printed_and_the_last_value(tool: Any) -> None:
    names: dict[str, Any] = {}
    assert tool.outputs_of("x = 2", names) == []
    printed, value = tool.outputs_of("print('a')\nx + 1", names)
    assert printed["text"] == ["a\n"]
    assert value["data"] == {"text/plain": ["3"]}
    with pytest.raises(ZeroDivisionError):
        tool.outputs_of("1 / 0", names)
