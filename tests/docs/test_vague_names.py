"""The lint of names refuses vague names that live long, and nothing else."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def lint() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_names", ROOT / "tools" / "check_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LONG = "def f(values):\n    found = []\n    a = 1\n    b = 2\n    c = 3\n    return found\n"
SHORT = "def f(values):\n    found = [one for one in values]\n    return found\n"


def test_a_name_that_lives_long_is_refused(lint: ModuleType) -> None:
    assert list(lint.python_names(ast.parse(LONG))) == [("found", 2)]
    assert list(lint.python_names(ast.parse("class A:\n    told: int = 0\n"))) == [("told", 2)]
    assert list(lint.python_names(ast.parse("def _told(x):\n    return x\n"))) == [("_told", 1)]
    assert list(lint.rust_names("let one = 1;\nlet a = 2;\nlet b = 3;\nlet c = 4;\nuse(one);\n"))


def test_a_name_of_three_lines_is_not(lint: ModuleType) -> None:
    assert not list(lint.python_names(ast.parse(SHORT)))
    assert not list(lint.rust_names("let one = 1;\nuse(one);\n"))


def test_a_count_may_only_shrink(lint: ModuleType) -> None:
    names = {"a.py": [("one", 1), ("found", 2)]}
    assert not list(lint.complaints(names, {"a.py": 2}))
    assert "1 allowed" in next(lint.complaints(names, {"a.py": 1}))
    assert "--update" in next(lint.complaints(names, {"a.py": 3}))
    assert "--update" in next(lint.complaints({}, {"gone.py": 1}))
