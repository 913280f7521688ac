"""The promises of SECURITY.md have tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_promise_has_a_test() -> None:
    _, _, section = (ROOT / "SECURITY.md").read_text().partition("## Promises and their tests")
    rows = re.findall(r"^\| ([^|]+) \| (.+) \|$", section.partition("\n## ")[0], re.MULTILINE)[1:]
    assert len(rows) >= 12
    for promise, tests in rows:
        paths = re.findall(r"\]\((tests/[^)]+)\)", tests)
        assert paths, promise
        for path in paths:
            assert re.search(r"^def test_", (ROOT / path).read_text(), re.MULTILINE), path
