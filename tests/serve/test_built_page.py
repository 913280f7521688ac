"""The page's committed files: built from the sources, without inline code or other servers."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

from nephoscope import catalog
from nephoscope.core import units
from nephoscope.report import summary
from nephoscope.serve import static_files

ROOT = Path(__file__).resolve().parents[2]


def page_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("page", ROOT / "tools" / "page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_built_files_are_those_of_the_sources() -> None:
    tool = page_tool()
    written = (ROOT / "web" / "built.sha256").read_text().strip()
    assert written == tool.digest(), "run `make page`"


def test_the_page_has_no_inline_code_and_names_no_other_server() -> None:
    files = static_files.load()
    index = files[static_files.INDEX].content.decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)", index) == []
    assert "<style" not in index
    assert not re.search(r"\son\w+=|style=", index)
    own = ("http://www.w3.org/", "https://svelte.dev/e/")  # names of formats and of error texts
    for name, file in files.items():
        if not name.startswith("licences/"):
            addresses = re.findall(rb"https?://[^\s\"'`)]+", file.content)
            assert all(one.decode().startswith(own) for one in addresses), (name, addresses)


def test_every_library_of_the_page_has_its_licence() -> None:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]
    licences = [name for name in static_files.load() if name.startswith("licences/")]
    for name in ("svelte", "uplot", "esm-env", "clsx"):
        version = lock[f"node_modules/{name}"]["version"]
        assert f"licences/{name}-{version}.LICENSE" in licences


def test_the_page_reads_the_scales_of_the_units_module() -> None:
    text = (ROOT / "web" / "src" / "lib" / "format.js").read_text()
    assert "session.known?.scales" in text
    for scales in units.SCALES.values():
        assert all(f'"{label}"' not in text for _, label in scales if len(label) > 1)


def test_the_page_has_no_names_of_benchmarks_or_metrics_of_its_own() -> None:
    """Names come from the server, where the report has them."""
    texts = [path.read_text() for path in (ROOT / "web" / "src").rglob("*.svelte")]
    texts += [path.read_text() for path in (ROOT / "web" / "src").rglob("*.js")]
    for benchmark in catalog.load().benchmarks:
        is_named = "." in benchmark and any(benchmark in text for text in texts)
        assert not is_named, benchmark
    for choice in summary.choices():
        assert not any(choice.headline.title in text for text in texts), choice


def test_the_page_shows_what_the_routes_of_results_state() -> None:
    content = next(
        file.content.decode() for name, file in static_files.load().items() if name.endswith(".js")
    )
    for name in ("/metrics`", "`trends`", "headlines", "doubts", "left_s", "measures"):
        assert name in content, name
