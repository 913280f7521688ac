"""The site of the documentation: links that hold in it, a menu of all pages, no warning."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import docs_site

    return docs_site


def test_links_lead_to_pages_of_the_site_or_become_text(
    tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "how-to" / "made-up.md"
    text = (
        "[a](history.md#confirm-a-change) [b](../../README.md) [c](../../crates/wire/src/spec.rs) "
        "[d](https://example.org/) [e](notebook.ipynb) ![f](../explanation/accuracy-map.svg)"
    )
    monkeypatch.setattr(Path, "read_text", lambda self, **options: text)
    assert tool.relinked(page, tmp_path / "how-to" / "made-up.md", tmp_path) == (
        "[a](history.md#confirm-a-change) [b](../overview.md) c "
        "[d](https://example.org/) [e](notebook.md) ![f](../explanation/accuracy-map.svg)"
    )


def test_every_page_is_in_the_menu(tool: Any, tmp_path: Path) -> None:
    tool.laid_out(tmp_path)
    (tmp_path / "gallery").mkdir()
    (tmp_path / "gallery" / "README.md").write_text("# Gallery\n")
    menu = yaml.safe_dump(tool.navigation(tmp_path))
    pages = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.md")]
    assert len(pages) > 150
    for page in pages:
        assert f": {page}\n" in menu, page
    settings = tool.configuration(tmp_path, tmp_path)
    assert settings["strict"]
    assert settings["theme"]["font"] is False


@pytest.mark.slow
def test_make_docs_builds_the_site_without_a_warning(tool: Any) -> None:
    done = subprocess.run(
        ["make", "-s", "docs"], cwd=ROOT, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    site = ROOT / "site" / tool.version()
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert any("change point" in entry["text"] for entry in index["docs"])
    versions = json.loads((ROOT / "site" / "versions.json").read_text(encoding="utf-8"))
    assert tool.version() in {entry["version"] for entry in versions}
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert '<script src="http' not in text, page
        assert '<link rel="stylesheet" href="http' not in text, page
    # A gallery: six reports, but those that need a program or a right that is missing here.
    gallery = (site / "gallery" / "index.html").read_text(encoding="utf-8")
    assert len(list((site / "gallery").glob("*.html"))) - 1 + gallery.count("without it") == 6
