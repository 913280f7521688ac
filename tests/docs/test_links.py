"""Links between pages lead somewhere, in the repository and where everything is built."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.conftest import ROOT

REFERENCE = ROOT / "docs" / "reference" / "README.md"
GENERATED = ROOT / "docs" / "reference" / "generated"
COMMITTED = frozenset(
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
)
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]
    if page in COMMITTED
)
BUILT = sorted(GENERATED.rglob("*.md"))
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
HEADING = re.compile(r"^#+ +(.+)$", re.M)


def links(page: Path) -> list[tuple[Path, str]]:
    """The files to which a page links, each with the anchor."""
    found = LINK.findall(page.read_text(encoding="utf-8"))
    return [
        ((page.parent / path).resolve() if path else page, anchor[1:])
        for path, anchor in found
        if "://" not in path and (path or anchor)
    ]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and editors make them."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title).lower()).strip().replace(" ", "-")
        for title in headings
    }


def test_links_lead_somewhere() -> None:
    assert len(PAGES) > 80
    assert len(BUILT) > 110
    for page in [*PAGES, *BUILT]:
        for target, anchor in links(page):
            assert target.exists(), f"{page.relative_to(ROOT)}: {target}"
            if anchor and target.suffix == ".md":
                assert anchor in anchors(target), f"{page.relative_to(ROOT)}: {target}#{anchor}"


def test_committed_pages_link_to_what_is_committed() -> None:
    """Where the repository is read on the web, nothing is built; one page says what would be."""
    folders = {folder for file in COMMITTED for folder in file.parents}
    for page in PAGES:
        for target, _ in links(page):
            if page != REFERENCE or GENERATED not in target.parents:
                assert target in COMMITTED or target in folders, (
                    f"{page.relative_to(ROOT)}: {target}"
                )


def test_the_reference_names_every_built_page() -> None:
    listed = {target for target, _ in links(REFERENCE)}
    below = {target for target, _ in links(GENERATED / "benchmarks" / "README.md")}
    assert listed | below >= {*BUILT, GENERATED / "nephoscope.1"}
