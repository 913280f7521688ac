"""A class name stands for one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def shared_names(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns each name that more than one class statement has, with the files of these classes.

    An import or an assignment that exports a class again defines none.
    """
    places: dict[str, list[str]] = defaultdict(list)
    for file, text in sources.items():
        for name in _classes(ast.walk(ast.parse(text))):
            places[name].append(file)
    return {name: files for name, files in sorted(places.items()) if len(files) > 1}


def _classes(nodes: Iterable[ast.AST]) -> Iterable[str]:
    return (node.name for node in nodes if isinstance(node, ast.ClassDef))


def test_a_class_name_is_used_once() -> None:
    files = sorted((ROOT / "src" / "nephoscope").rglob("*.py"))
    assert len(files) > 500
    sources = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
    assert shared_names(sources) == {}


def test_a_second_definition_is_reported_and_an_export_is_not() -> None:
    sources = {
        "a.py": "class Load:\n    pass\n",
        "b.py": "def f():\n    class Load:\n        pass\n",
        "c.py": "from a import Load as Load\nBackground = Load\n",
    }
    assert shared_names(sources) == {"Load": ["a.py", "b.py"]}
