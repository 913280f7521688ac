"""Builds the documentation as a site: docs_site.py FOLDER.

The pages of docs/ and of the repository's root, the notebook, the reference pages and the gallery
of reports are laid out in FOLDER/pages with a configuration of MkDocs, which then checks every link
and anchor (`strict`). Nothing is fetched: no font, no script. The site is written to site/VERSION,
with the list of versions that its menu reads.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import gallery
import notebook
import yaml

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / "site"
ROOT_PAGES: Mapping[str, str] = {
    "CONTRIBUTING.md": "contributing-changes.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "overview.md",
}
"""Pages of the repository's root, with their name in the site."""

PARTS: Mapping[str, str] = {
    "How-to guides": "how-to",
    "Coming from another tool": "coming-from",
    "Reference": "reference",
    "Explanation": "explanation",
    "Decisions": "decisions",
    "Contributor's guide": "contributing",
}
_ENVIRONMENT = {"NO_MKDOCS_2_WARNING": "1", "PATH": os.environ.get("PATH", "")}
"""The theme advertises on standard error unless it is asked not to."""

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
TITLE = re.compile(r"^# (.+)$", re.M)


def version() -> str:
    """Returns the version of the package."""
    text = (ROOT / "src" / "nephoscope" / "__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "(.+)"$', text, re.M)
    assert match is not None
    return match[1]


def laid_out(pages: Path) -> None:
    """Writes every page below a folder, with links that hold there."""
    for source in sorted(DOCS.rglob("*")):
        if not source.is_file() or source.suffix not in {".md", ".svg", ".png"}:
            continue
        target = pages / source.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(relinked(source, target, pages), encoding="utf-8")
        else:
            shutil.copy(source, target)
    for name, page in ROOT_PAGES.items():
        target = pages / page
        target.write_text(relinked(ROOT / name, target, pages), encoding="utf-8")
    cells = json.loads(notebook.NOTEBOOK.read_text(encoding="utf-8"))
    (pages / "how-to" / "notebook.md").write_text(notebook.as_markdown(cells), encoding="utf-8")


def relinked(source: Path, target: Path, pages: Path) -> str:
    """Returns a page whose links lead to pages of the site.

    A link to a file that is no page of it, such as a source file, becomes its text.
    """

    def link(match: re.Match[str]) -> str:
        picture, text, path, anchor = match[1], match[2], match[3], match[4] or ""
        if "://" in path or path.startswith("mailto:"):
            return match[0]
        place = place_of((source.parent / path).resolve())
        if place is None:
            return text
        return f"{picture}[{text}]({os.path.relpath(pages / place, target.parent)}{anchor})"

    return LINK.sub(link, source.read_text(encoding="utf-8"))


def place_of(path: Path) -> str | None:
    """Returns where a file of the repository is in the site; None for what is no part of it."""
    if path.parent == ROOT and path.name in ROOT_PAGES:
        return ROOT_PAGES[path.name]
    if not path.is_relative_to(DOCS):
        return None
    inside = path.relative_to(DOCS)
    if path.is_dir():
        page = "README.md" if (path / "README.md").is_file() else ""
        return str(inside / page) if page else None
    if path == notebook.NOTEBOOK:
        return "how-to/notebook.md"
    return str(inside) if path.suffix in {".md", ".svg", ".png"} else None


def title_of(page: Path) -> str:
    """Returns the heading of a page."""
    match = TITLE.search(page.read_text(encoding="utf-8"))
    return re.sub(r"[`*]", "", match[1]) if match else page.stem


def navigation(pages: Path) -> list[Any]:
    """Returns the menu: the start, the tutorial, then each part with its pages by title."""
    menu: list[Any] = [
        {"Documentation": "README.md"},
        {"Overview": "overview.md"},
        {"Tutorial": "tutorial.md"},
        {"Gallery of reports": "gallery/README.md"},
    ]
    for title, folder in PARTS.items():
        menu.append({title: list(_entries(pages, pages / folder))})
    rest = ("architecture.md", "principles.md", "releasing.md", *sorted(ROOT_PAGES.values()))
    project = [{title_of(pages / name): name} for name in rest if name != "overview.md"]
    return [*menu, {"Project": project}]


def _entries(pages: Path, folder: Path) -> Iterable[Any]:
    own = sorted(folder.glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
    for page in own:
        yield {title_of(page): str(page.relative_to(pages))}
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        entries = list(_entries(pages, inner))
        if entries:
            yield {inner.name.replace("-", " ").capitalize(): entries}


def configuration(folder: Path, pages: Path) -> dict[str, Any]:
    """Returns the configuration of MkDocs: strict, searchable, with nothing from elsewhere."""
    return {
        "site_name": "Nephoscope",
        "site_description": "Benchmark cloud machines and networks, with confidence intervals",
        "docs_dir": str(pages),
        "site_dir": str(SITE / version()),
        "use_directory_urls": False,
        "strict": True,
        "validation": {
            "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"},
            "nav": {"omitted_files": "warn", "not_found": "warn"},
        },
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.sections", "navigation.top", "search.suggest"],
            "palette": [
                {
                    "media": f"(prefers-color-scheme: {name})",
                    "scheme": scheme,
                    "toggle": {"icon": "material/brightness-6", "name": f"{name} scheme"},
                }
                for name, scheme in (("light", "default"), ("dark", "slate"))
            ],
        },
        "extra": {"generator": False, "version": {"provider": "mike"}},
        "plugins": ["search"],
        "markdown_extensions": [
            "tables",
            "attr_list",
            "md_in_html",
            {"toc": {"permalink": True, "slugify": "SLUGIFY"}},
            {"pymdownx.highlight": {"use_pygments": True}},
            "pymdownx.superfences",
        ],
        "nav": navigation(pages),
    }


def as_text(settings: Mapping[str, Any]) -> str:
    """Returns the configuration as a file; anchors are made as on pages of repositories."""
    text = yaml.safe_dump(dict(settings), sort_keys=False, allow_unicode=True, width=1000)
    slugs = "!!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}"
    return text.replace("slugify: SLUGIFY", f"slugify: {slugs}")


def write_versions() -> None:
    """Writes the list of the versions that are built, and the page that leads to the newest."""
    built = sorted((path.parent.name for path in SITE.glob("*/index.html")), reverse=True)
    newest = version()
    entries = [
        {"version": name, "title": name, "aliases": ["latest"] if name == newest else []}
        for name in built
    ]
    (SITE / "versions.json").write_text(json.dumps(entries) + "\n", encoding="utf-8")
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={newest}/index.html">'
    (SITE / "index.html").write_text(f"{page}<title>Nephoscope</title>\n", encoding="utf-8")


def main() -> int:
    """Lays out the pages, builds the site, and prints where it starts."""
    folder = Path(sys.argv[1]).resolve()
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    laid_out(pages)
    gallery.write(folder / "reports", pages / "gallery")
    file = folder / "mkdocs.yml"
    file.write_text(as_text(configuration(folder, pages)), encoding="utf-8")
    # Its quiet mode would not count warnings either, so strict would hold nothing.
    words = [str(folder / "environment" / "bin" / "mkdocs"), "build", "-f", str(file)]
    done = subprocess.run(words, env=_ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
        return done.returncode
    write_versions()
    sys.stdout.write(f"{SITE / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
