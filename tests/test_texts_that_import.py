"""What programs in the texts of tests import exists: no type checker reads it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator

from tests.conftest import ROOT

IMPORT = re.compile(r"\bfrom (nephoscope[\w.]*) import (\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)")


def imports() -> Iterator[tuple[str, str, str]]:
    """Yields the place of each text, the module and the name that it imports."""
    for folder in ("tests", "tools", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    for module, names in IMPORT.findall(node.value):
                        for name in names.split(", "):
                            where = f"{path.relative_to(ROOT)}:{node.lineno}"
                            yield where, module, name.partition(" as ")[0]


def test_what_a_text_imports_exists() -> None:
    places = list(imports())
    assert places
    for where, module, name in places:
        assert hasattr(importlib.import_module(module), name) or importlib.util.find_spec(
            f"{module}.{name}"
        ), where
