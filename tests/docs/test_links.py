"""Links between pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def missing(page: Path) -> list[str]:
    """The links of a page to files that do not exist."""
    links = LINK.findall(page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    return [link for link in local if not (page.parent / link).exists()]


def test_links_lead_somewhere() -> None:
    lost = {str(page.relative_to(ROOT)): missing(page) for page in PAGES}
    assert not {page: links for page, links in lost.items() if links}
