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


@pytest.mark.parametrize(
    "source",
    [
        "shelf = 1\n",
        "touches: int = 0\n",
        "def f():\n    for mine in []:\n        pass\n",
        "values = [its for its in []]\n",
        "def _mistakes():\n    pass\n",
        "def f(*, theirs):\n    pass\n",
        "class Sighting:\n    pass\n",
        "adapter.called({})\n",
        "f(both=1)\n",
        "import a as shelf\n",
        "_CARRIED = 1\n",
    ],
)
def test_a_private_word_names_nothing_in_any_scope(lint: ModuleType, source: str) -> None:
    assert len(list(lint.refused_names(ast.parse(source)))) == 1


def test_a_word_that_is_part_of_a_name_is_no_private_word(lint: ModuleType) -> None:
    source = "def both_sides(its_name):\n    return its_name.carried_bytes\n"
    assert not list(lint.refused_names(ast.parse(source)))


def test_a_private_word_in_a_message_is_reported_and_in_a_docstring_is_not(
    lint: ModuleType,
) -> None:
    message = 'def f(n):\n    raise ValueError(f"{n} mistakes in the plan")\n'
    docstring = '"""Mistakes."""\n\n\ndef f():\n    """Returns the mistakes."""\n'
    assert list(lint.refused_phrases(ast.parse(message))) == [("mistakes", 2)]
    assert not list(lint.refused_phrases(ast.parse(docstring)))


def test_the_sources_have_no_private_word(lint: ModuleType) -> None:
    assert not list(lint.refusals())
