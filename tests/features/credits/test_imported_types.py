"""Days of rates of imported server types: the planted bucket, and none where there is none."""

from __future__ import annotations

import re
from pathlib import Path

from tests.e2e.conftest import run_inside
from tests.store.imports.inspector_tree import MadeType, make_tree


def day(rates: list[float]) -> str:
    lines = [
        f"2026-03-{1 + minute // 1440:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:05,55.0,{rate}"
        for minute, rate in enumerate(rates)
    ]
    return "\n".join([*lines, ""])


def test_the_drop_of_an_imported_type_is_dated(tmp_path: Path) -> None:
    make_tree(tmp_path, [MadeType("a", "burst"), MadeType("a", "steady"), MadeType("a", "short")])
    noise = [1 + 0.002 * ((7 * n) % 5 - 2) for n in range(600)]
    for name, rates in (
        ("burst", [3000 * x if n < 300 else 900 * x for n, x in enumerate(noise)]),
        ("steady", [3000 * x for x in noise]),
    ):
        folder = tmp_path / "data/a" / name / "stressnglongrun"
        folder.mkdir()
        (folder / "parsed.csv").write_text(day(rates))
    store = ["--store", str(tmp_path / "store")]
    assert run_inside(["import", str(tmp_path), *store]).code == 0
    done = run_inside(["credits", "--type", "all", *store])
    text = " ".join(done.out.split())
    assert re.search(r"a/burst is on credit: 3.00 k/s until (4 h 59|5 h 0) min, then 900 /s", text)
    assert "a/steady The rate is steady" in text
    refused = run_inside(["credits", "--type", "a/short", *store])
    assert refused.code == 2
    assert "no imported type 'a/short' has a day of rates" in refused.err
