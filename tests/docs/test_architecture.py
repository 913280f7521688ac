"""The architecture page names folders and extension points that exist; tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (an? [^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.M)


def places(cell: str) -> list[str]:
    return [text for text in re.findall(r"`([^`]+)`", cell) if "/" in text]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_place_of_the_table_exists(row: tuple[str, str, str]) -> None:
    _, write, listed = row
    for place in places(listed):
        assert (ROOT / place).exists(), place
    for place in places(write):
        folder = re.split(r"<", place)[0].rsplit("/", 1)[0]
        assert (ROOT / folder).is_dir(), place


def test_the_table_has_every_extension_point() -> None:
    assert len(ROWS) >= 11


@pytest.mark.parametrize(
    ("folder", "table"),
    [
        ("src/nephoscope/catalog/adapters", "src/nephoscope/catalog/adapters/__init__.py"),
        (
            "src/nephoscope/measure/targets/kinds",
            "src/nephoscope/measure/targets/kinds/__init__.py",
        ),
        (
            "src/nephoscope/measure/lab/platforms",
            "src/nephoscope/measure/lab/platform_table.py",
        ),
        ("src/nephoscope/measure/labcheck", "src/nephoscope/measure/labcheck/table.py"),
    ],
)
def test_a_table_names_the_files_of_its_folder(folder: str, table: str) -> None:
    text = (ROOT / table).read_text(encoding="utf-8")
    shared = {
        "__init__",
        "reports",
        "declare",
        "frame",
        "quantities",
        "record",
        "measuring",
        "table",
        "server",
        "base",
        "confinement",
        "control",
        "guest",
    }
    files = {path.stem for path in (ROOT / folder).glob("*.py")} - shared
    assert not [name for name in files if not re.search(rf"\b{name}\b", text)]


def test_the_folders_of_the_page_are_the_folders_of_the_package() -> None:
    named = set(re.findall(r"\b([a-z]+)/", PAGE.split("## Extension points")[0]))
    package = ROOT / "src" / "nephoscope"
    present = {path.parent.name for path in package.glob("*/__init__.py")}
    assert present <= named
