"""The page on the store's format has every file that is written into a store."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.core.format_versions.test_table import PACKAGE, WRITERS
from tests.features.load.test_stored_search import searched as searched

from nephoscope.features.compaction.summarise import summary_of
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.store import StoredRun

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "store-format.md"
OF_STORES = {"run", "run-summary", "day-file", "run-list", "watch", "market", "object-store"}
"""Formats of files in stores; `document` is one of them where a module puts it into a run."""
DOCUMENTS = {"report/files.py", "report/report_files.py", "features/load/stored_search.py"}
NAME = re.compile(r"\.?[a-z][\w-]*\.(jsonl?|parquet|html|md|svg|sha256|lock)")
_VARIABLE = re.compile(r"(RUN|TRIAL|NAME|YYYY-MM-DD|N(?=\.)|…)")


def listed() -> list[re.Pattern[str]]:
    """Returns the files of the page's first listing as patterns of paths below the store."""
    listing = PAGE.read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    paths = [line.split()[0] for line in listing.splitlines() if not line.startswith(" ")]
    return [re.compile("".join(map(_pattern, _VARIABLE.split(path)))) for path in paths]


def _pattern(part: str) -> str:
    if part == "…":
        return ".+"
    return "[^/]+" if _VARIABLE.fullmatch(part) else re.escape(part)


def unlisted(store: Path) -> list[str]:
    """Returns the files of a store that no line of the page stands for."""
    patterns = listed()
    names = [path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file()]
    assert names
    return [name for name in names if not any(one.fullmatch(name) for one in patterns)]


def names_written() -> dict[str, str]:
    """Returns each file name in a module that writes into stores, with one such module."""
    modules = {name for name, what in WRITERS.items() if OF_STORES & {*what.split("; ")}}
    names: dict[str, str] = {}
    for module in sorted(modules | DOCUMENTS):
        for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
            value = getattr(node, "value", None)
            if isinstance(node, ast.Constant) and NAME.fullmatch(str(value)):
                names[str(value)] = module
    return names


def test_every_name_that_a_writer_has_stands_on_the_page() -> None:
    names, text = names_written(), PAGE.read_text(encoding="utf-8")
    assert {"capacity.json", "manifest.json", "watch.json", "prices.json"} <= names.keys()
    assert {name: module for name, module in names.items() if name not in text} == {}


def test_every_file_of_a_store_stands_in_the_listing(
    searched: list[StoredRun], tmp_path: Path
) -> None:
    run = searched[0]
    report_files.write(analyse_run.build(run), run.report_path)
    summary_of(run)
    assert (run.path / "capacity.json").exists()
    assert (run.path / "summary.json").exists()
    assert unlisted(run.path.parents[1]) == []


def test_a_file_that_the_listing_lacks_is_found(searched: list[StoredRun]) -> None:
    (searched[0].path / "capacity.txt").write_text("")
    assert unlisted(searched[0].path.parents[1]) == [f"runs/{searched[0].id}/capacity.txt"]
