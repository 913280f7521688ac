"""Imports go down the rows of the layers, at module level and inside functions alike."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from nephoscope.results.feature import Feature

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "nephoscope"

ROWS: tuple[tuple[str, ...], ...] = (
    ("autoscalers",),
    ("core",),
    ("catalog",),
    ("stats",),
    ("measure", "store"),
    ("results",),
    ("report",),
    ("cli.kit",),
    ("httpd",),
    ("features",),
    ("cli.commands",),
    ("serve",),
    ("app", "api"),
    ("command_line",),
    ("__main__",),
)
"""A module may import those of its own row and of the rows before it."""

SPLIT = frozenset({"cli", "core", "features", "measure"})
"""Folders of which each folder is a package for the search of cycles."""

STATS_MAY_IMPORT = (
    "autoscalers.rules",
    "core.errors",
    "core.estimate_text",
    "core.grouping",
    "core.model",
    "core.naming",
    "core.units",
)
"""Statistics get arrays and return estimates: nothing that reads or writes."""


def sources() -> dict[str, Path]:
    """Module name, without the name of this package -> file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not name.startswith(("_probe", "_contracts")):
            found[name] = path
    return found


@cache
def imports() -> dict[str, frozenset[str]]:
    """Module -> modules of this package that it imports, wherever in its file."""
    modules = sources()
    return {
        name: frozenset(
            module
            for text in _imported(ast.parse(path.read_text(encoding="utf-8")), path)
            if (module := _module(text, modules)) and module != name
        )
        for name, path in modules.items()
    }


def _imported(tree: ast.AST, path: Path) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the row"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _module(text: str, modules: Mapping[str, Path]) -> str:
    """The longest part of a dotted name that is a module of this package; empty for none."""
    first, _, name = text.partition(".")
    while first == "nephoscope" and name and name not in modules:
        name = name.rpartition(".")[0]
    return name if first == "nephoscope" else ""


def row_of(module: str) -> int:
    """The number of the row in which a module lies."""
    for number, row in enumerate(ROWS):
        if any(module == name or module.startswith(f"{name}.") for name in row):
            return number
    assert module in ("", "cli"), f"{module} is in no row"
    return 0


def package_of(module: str) -> str:
    """The package that a module belongs to, as cycles are searched for."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] in SPLIT else 1])


def cycle_of(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Nodes of a cycle, the first one twice; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("row", range(len(ROWS)), ids=[" ".join(row) for row in ROWS])
def test_a_row_imports_no_row_above_it(row: int) -> None:
    upward = [
        f"{module} -> {imported}"
        for module, found in imports().items()
        for imported in found
        if row_of(module) == row and row_of(imported) > row
    ]
    assert not upward


def test_no_packages_import_each_other_in_a_cycle() -> None:
    graph: dict[str, set[str]] = {}
    for module, found in imports().items():
        own = package_of(module)
        graph.setdefault(own, set()).update({package_of(name) for name in found} - {own})
    assert not cycle_of(graph)


def test_no_modules_import_each_other_in_a_cycle() -> None:
    assert not cycle_of(imports())


def test_a_feature_imports_those_that_its_record_needs_and_no_other() -> None:
    imported: dict[str, set[str]] = {}
    for module, found in imports().items():
        own = package_of(module)
        if own.startswith("features."):
            others = {package_of(name) for name in found if name.startswith("features.")} - {own}
            imported.setdefault(own, set()).update(others)
    needed: dict[str, set[str]] = {name: set() for name in imported}
    for name in imported:
        for entry in vars(import_module(f"nephoscope.{name}.feature")).values():
            if isinstance(entry, Feature):
                needed[name].update(f"features.{other}" for other in entry.needs)
    assert needed == imported


def test_a_record_of_a_feature_imports_no_code_of_it() -> None:
    for module, found in imports().items():
        if module.endswith(".feature") and module != "results.feature":
            assert found <= {"results.feature", "results.run_data", "catalog"}, module


def test_statistics_neither_read_nor_write() -> None:
    wrong = [
        f"{module} -> {imported}"
        for module, found in imports().items()
        if module.startswith("stats.")
        for imported in found
        if not imported.startswith(("stats", *STATS_MAY_IMPORT))
    ]
    assert not wrong


def test_a_cycle_is_seen() -> None:
    assert set(cycle_of({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]})) == {"a", "b", "c"}
    assert cycle_of({"a": ["b"], "b": ["c"], "c": []}) == []
