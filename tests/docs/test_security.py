"""The promises of SECURITY.md have tests that exist, and results that a run of them stored."""

from __future__ import annotations

import datetime
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("promises_table")


def test_each_promise_has_tests(table: ModuleType) -> None:
    rows = table.promises(ROOT)
    assert len(rows) >= 12
    assert len({row["promise"] for row in rows}) == len(rows)
    for row in rows:
        assert row["tests"], row
        for path in row["tests"]:
            assert re.search(r"^def test_", (ROOT / path).read_text(), re.MULTILINE), path


def test_the_page_has_each_promise_with_its_last_result(table: ModuleType) -> None:
    text = (ROOT / table.PAGE).read_text()
    assert table.page(ROOT) == text
    for row in table.promises(ROOT):
        assert f"| {row['promise']} | " in text
        if row["result"] is not None:
            datetime.date.fromisoformat(row["result"]["date"])
            assert row["result"]["passed"] > 0, row


def test_results_are_read_from_the_last_line_of_a_run(table: ModuleType) -> None:
    counts = table.outcome("1 failed, 12 passed, 3 skipped, 2 errors in 8.50s")
    assert counts == {"passed": 12, "failed": 3, "skipped": 3}
    assert table.in_words({"date": "2026-11-28", **counts}) == (
        "2026-11-28: 12 passed, 3 failed, 3 skipped"
    )
    assert table.in_words(None) == table.NEVER
