"""The lint refuses private words in names of every scope and in messages, and nothing else."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("one", "found", "told", "other", "given_up", "goes_on", "greets", "asked", "carried")
MORE_WORDS = ("taken", "look", "beside", "crowded", "sighting", "shelf", "quiet", "past", "turn")


@pytest.fixture(scope="module")
def lint() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_names", ROOT / "tools" / "check_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names_in(lint: ModuleType, source: str) -> list[str]:
    return [name for name, _ in lint.python_names(ast.parse(source))]


def rust_names_in(lint: ModuleType, source: str) -> list[str]:
    return [name for name, _ in lint.rust_names(source)]


@pytest.mark.parametrize(
    "source",
    [
        "{} = 1\n",
        "{}: int = 0\n",
        "def f():\n    for {} in []:\n        pass\n",
        "def f():\n    for number, ({}, rest) in []:\n        pass\n",
        "values = [{} for {} in []]\n",
        "values = {{{}: 1 for {} in []}}\n",
        "key = lambda {}: 0\n",
        "def _{}():\n    pass\n",
        "def f(*, {}):\n    pass\n",
        "def f(*{}):\n    pass\n",
        "class A:\n    {}: int = 0\n",
        "adapter.{}({{}})\n",
        "f({}=1)\n",
        "import a as {}\n",
        "with open('f') as {}:\n    pass\n",
        "if ({} := f()):\n    pass\n",
        "try:\n    pass\nexcept OSError as {}:\n    pass\n",
        "match x:\n    case {}:\n        pass\n",
    ],
)
def test_a_private_word_names_nothing_in_any_scope(lint: ModuleType, source: str) -> None:
    for word in (*WORDS, *MORE_WORDS):
        assert set(names_in(lint, source.replace("{}", word).replace("{{", "{").replace("}}", "}")))


@pytest.mark.parametrize(
    "source",
    [
        "let {} = 1;",
        "let (mut {}, rest) = pair;",
        "for {} in values {}",
        "values.map(|{}| 1)",
        "values.map(|(number, {})| 1)",
        "fn {}() {}",
        "fn f({}: u64) {}",
        "struct A { {}: u64 }",
        "match x { {} => 1 }",
    ],
)
def test_a_private_word_names_nothing_in_rust(lint: ModuleType, source: str) -> None:
    for word in (*WORDS, *MORE_WORDS):
        assert rust_names_in(lint, source.replace("{}", word, 1)) == [word]


def test_capitals_and_parts_are_private_words_too(lint: ModuleType) -> None:
    assert names_in(lint, "class Sighting:\n    pass\n") == ["Sighting"]
    assert names_in(lint, "_CARRIED = LOOK_EVERY_S = 1\n") == ["_CARRIED", "LOOK_EVERY_S"]
    assert names_in(lint, "found_names = looks_normal = 1\n") == ["found_names", "looks_normal"]
    assert rust_names_in(lint, "const LOOK_AROUND_NS: u64 = 1;") == ["LOOK_AROUND_NS"]


def test_public_names_and_words_inside_words_are_not(lint: ModuleType) -> None:
    source = (
        "def one_way(its_name, lookup, FileNotFoundError):\n    return its_name.carried_bytes\n"
    )
    assert not names_in(lint, source)
    assert not names_in(lint, "look_every = 5\nrecord.look_cost_ns = 1\n")
    public = "ErrorKind::NotFound; Error::other(); Kind::Other; fn a_word_is_found_there_again() {}"
    assert not rust_names_in(lint, public)
    assert not rust_names_in(lint, "// one\n/* told */ let text = \"found\"; let c = 'o';")


def test_a_private_word_in_a_message_is_reported_and_in_a_docstring_is_not(
    lint: ModuleType,
) -> None:
    message = 'def f(n):\n    raise ValueError(f"{n} mistakes in the plan")\n'
    docstring = '"""Mistakes."""\n\n\ndef f():\n    """Returns the mistakes."""\n'
    assert list(lint.python_phrases(ast.parse(message))) == [("mistakes", 2)]
    assert not list(lint.python_phrases(ast.parse(docstring)))
    rust = '/// Mistakes.\nfn f() { refuse("two mistakes", r#"a "shelf""#) }'
    assert list(lint.rust_phrases(rust)) == [("mistakes", 2), ("shelf", 2)]


@pytest.mark.parametrize(
    "phrase",
    [
        "in short: it works",
        "asked for and not given",
        "what stood beside the trials",
        "how sure it is",
        "measured finely",
        "cries wolf",
        "begin anew",
        "a crowded host",
        "ours and theirs",
        "the keeper of a lab",
        "by chance or luck",
    ],
)
def test_the_glossary_s_left_column_stands_in_no_message(lint: ModuleType, phrase: str) -> None:
    assert list(lint.python_phrases(ast.parse(f"raise E({phrase!r})")))


def test_the_sources_have_no_private_word(lint: ModuleType) -> None:
    assert not list(lint.refusals())
