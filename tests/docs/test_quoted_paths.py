"""Paths, files and modules of this repository that the documentation quotes exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import recipe
from tests.conftest import ROOT

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts),
        *ROOT.glob("studies/*/README.md"),
        ROOT / "benchmarks" / "README.md",
    ]
)
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:[\w.-]+/)+(?:[\w.*<>-]+)?")
FILE = re.compile(r"[\w-]+\.(?:py|rs)")
MODULE = re.compile(r"nephoscope(?:\.[a-z_]+)+(?:\.[A-Z]\w+)?")
CHAIN = re.compile(r'(?:\bROOT|parents\[1\])((?: / "[^"*]+")+)')
"""A path of a script: `ROOT / "docs" / "x.md"`."""
PLACES = (ROOT, ROOT / "src" / "nephoscope", ROOT / "crates" / "probe" / "src", ROOT / "crates")
"""Where a quoted path may begin."""
OF_SOURCES = ("crates", "src", "tests", "tools", "web/src", "benchmarks")
GROUPS = {"nephoscope.features", "nephoscope.adapters"}
"""Groups of entry points, which are no modules, though one may have the same name."""


@cache
def files() -> frozenset[str]:
    """The names of all source files."""
    return frozenset(
        path.name for folder in OF_SOURCES for path in (ROOT / folder).rglob("*.[pr][ys]")
    )


def missing(text: str) -> Iterator[str]:
    """Yields what a page quotes and the repository does not have."""
    made_by_page = {title for _, title, _ in recipe.BLOCK.findall(text) if title}
    for span in SPAN.findall(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
        if span not in made_by_page and not _exists(span, made_by_page):
            yield span


def _exists(span: str, made_by_page: set[str]) -> bool:
    if MODULE.fullmatch(span) and span not in GROUPS:
        return _is_importable(span)
    if FILE.fullmatch(span):
        return span in files() or any(name.endswith(f"/{span}") for name in made_by_page)
    if not PATH.fullmatch(span) or not _is_ours(span):
        return True
    fixed = re.split(r"[<*]", span)[0]
    folder = fixed if fixed == span else fixed.rpartition("/")[0]
    below = any(name.startswith(folder) for name in made_by_page)
    return below or any((place / folder).exists() for place in PLACES)


def _is_ours(path: str) -> bool:
    """States whether a path begins with a folder of sources, and looks like one of them."""
    first = path.split("/")[0]
    if first in {name.split("/")[0] for name in (*OF_SOURCES, "contracts", "docs", "studies")}:
        return True
    is_source = path.endswith(("/", ".py", ".rs"))
    return is_source and any((place / first).is_dir() for place in PLACES)


def _is_importable(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(import_module(module), attribute) or find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_what_pages_quote_exists() -> None:
    found = [
        f"{page.relative_to(ROOT)}: {span}"
        for page in PAGES
        for span in missing(page.read_text("utf-8"))
    ]
    assert len(PAGES) > 100
    assert not found


def test_what_scripts_read_and_write_exists() -> None:
    scripts = [path for name in ("tools", "benchmarks") for path in (ROOT / name).glob("*.py")]
    quoted = {
        (path.name, "/".join(re.findall(r'"([^"]+)"', chain)))
        for path in scripts
        for chain in CHAIN.findall(path.read_text("utf-8"))
    }
    assert len(quoted) > 10
    built = (".setup/", "site", "target/")
    missed = [one for one in sorted(quoted) if not (ROOT / one[1]).exists()]
    assert not [one for one in missed if not one[1].startswith(built)]


def test_what_does_not_exist_is_reported() -> None:
    text = "`src/nephoscope/runs/session.py`, `measure/runs/session.py`, `nephoscope.analysis.lag`"
    assert len(list(missing(f"{text}, `no_such_file.rs`, `tests/stats/coverage.py`"))) == 4
    assert not list(missing("`/proc/net/dev`, `report/report.html`, `A/B`, `1/s`, `docs/*.md`"))
