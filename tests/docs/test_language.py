"""Help texts, reference, docs and contract descriptions use the public term for a thing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import glossary
import pytest

from nephoscope import catalog

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "studies").glob("*/README.md"),
        ROOT / "benchmarks" / "README.md",
    ]
)
BASELINE: dict[str, int] = json.loads((ROOT / "tests/docs/glossary_baseline.json").read_text())
"""Pages that are generated from the programs' specifications -> hits that are still allowed."""
CONTRACTS = sorted(catalog.contracts_folder().glob("*.json"))


def descriptions(document: Any) -> Iterator[str]:
    """The sentences of a contract: descriptions, summaries, documentation."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in ("description", "summary", "doc", "page", "note", "title"):
                yield value if isinstance(value, str) else ""
            yield from descriptions(value)
    elif isinstance(document, list):
        for value in document:
            yield from descriptions(value)


def complaints(name: str, text: str) -> list[str]:
    return [f"{name}:{line}: '{hit}': use {use}" for line, hit, use in glossary.hits(text)]


def check(file: Path, found: list[str]) -> None:
    allowed = BASELINE.get(str(file.relative_to(ROOT)), 0)
    assert len(found) <= allowed, found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_public_terms(page: Path) -> None:
    check(page, complaints(page.name, page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda path: path.name)
def test_contracts_use_public_terms(contract: Path) -> None:
    texts = descriptions(json.loads(contract.read_text(encoding="utf-8")))
    check(contract, [line for text in texts for line in complaints(contract.name, text)])


def test_a_discouraged_word_is_found_and_its_allowed_context_is_not() -> None:
    assert glossary.hits("Is said to be so.\nMeasured beside the trials.")
    assert not glossary.hits("2.5 intervals are expected by chance.")
