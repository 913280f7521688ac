"""Refuses private words in names, in any scope, and in the messages of the program.

A word of `REFUSED` names nothing: no variable, parameter, attribute, keyword, target of a loop or
comprehension, function, class, type or module, however short it lives. A word of `REFUSED_PARTS` is
no part of a name either. Phrases of `REFUSED_PHRASES` stand in no message. There are no exceptions
but the names of `STORED`, which plans and stored runs have.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REFUSED = frozenset(
    {"also", "asked", "beside", "both", "called", "carried", "circumstances", "crowded", "crowding"}
    | {"flowed", "found", "given", "given_up", "goes_on", "greets", "hush", "its", "keeper", "kept"}
    | {"look", "looks", "luck", "mine", "mistake", "mistakes", "odd_target", "on_grid", "one"}
    | {"other", "others", "ours", "past", "quiet", "refills", "said", "shelf", "shown", "sighting"}
    | {"sightings", "stranger", "taken", "theirs", "toil", "told", "touches", "turn", "whose"}
)
REFUSED_PARTS = frozenset(
    {"beside", "crowded", "found", "greets", "look", "looks", "shelf", "sighting", "told"}
)
PUBLIC = "not_found"
"""Libraries have such names: FileNotFoundError, ErrorKind::NotFound."""
STORED = frozenset({"look_every", "look_cost_ns", "look_min_ns", "look_floor_ns"})
"""A key of plans, and metrics: they are read from files that exist."""
SENTENCE_WORDS = 5
"""A Rust function whose name has so many words is a test, and its name a sentence."""
REFUSED_PHRASES = re.compile(
    r"\b(?:shelf|sightings?|crowd(?:ed|ing)|strangers?|mistakes?|begin anew|cries wolf|in short"
    r"|luck|a look|finely|how sure|keepers?|ours|theirs|asked for and not given"
    r"|what stood beside|trials that do not count|what is odd about it"
    r"|loads that prove that they ran|a machine among others|tools? of others)\b",
    re.IGNORECASE,
)
_RUST = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'"""
    r"|'?\b[A-Za-z_]\w*",
    re.DOTALL,
)
"""Comments, texts, characters, and identifiers with lifetimes: the tokens that matter here."""
_RUST_VARIANTS = frozenset({"Other", "Both"})
"""The name that an enumeration has for the rest, and `Shutdown::Both`."""


@functools.cache
def is_refused(name: str) -> bool:
    """States whether a name is a private word or has one as a part."""
    words = snake_case(name)
    if words in STORED:
        return False
    parts = words.replace(PUBLIC, "").split("_")
    return words in REFUSED or not REFUSED_PARTS.isdisjoint(parts)


def snake_case(name: str) -> str:
    """Returns a name in lower case with `_` between its words, without `_` at its ends."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


def python_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yields each refused identifier of a module with its line."""
    for node in ast.walk(tree):
        for name in _identifiers(node):
            if is_refused(name):
                yield name, getattr(node, "lineno", 1)


def _identifiers(node: ast.AST) -> Iterator[str]:
    """Yields what a node names. A name that is only read was bound elsewhere."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg | ast.keyword):
        yield node.arg or ""
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        yield node.name or ""
    elif isinstance(node, ast.alias):
        yield from (node.asname or node.name).split(".")


def python_phrases(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yields each refused phrase in the texts of a module but its docstrings, with its line."""
    bodies = (body for node in ast.walk(tree) if isinstance(body := getattr(node, "body", 0), list))
    docstrings = {
        id(statement.value)
        for body in bodies
        for statement in body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        for phrase in REFUSED_PHRASES.findall(node.value if isinstance(node.value, str) else ""):
            yield phrase, node.lineno


def rust_names(text: str) -> Iterator[tuple[str, int]]:
    """Yields each refused identifier of a Rust file with its line."""
    for token, start in _rust_tokens(text):
        if not (token[0].isalpha() or token[0] == "_") or '"' in token or token in _RUST_VARIANTS:
            continue
        is_library_function = token == "other" and text.startswith("::", start - 2)
        if is_refused(token) and not is_library_function and token.count("_") < SENTENCE_WORDS - 1:
            yield token, text.count("\n", 0, start) + 1


def rust_phrases(text: str) -> Iterator[tuple[str, int]]:
    """Yields each refused phrase in the texts of a Rust file, with its line."""
    for token, start in _rust_tokens(text):
        for phrase in REFUSED_PHRASES.findall(token) if '"' in token[:4] else ():
            yield phrase, text.count("\n", 0, start) + 1


def _rust_tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yields the texts and words of a Rust file without its comments, each with its place."""
    for match in _RUST.finditer(text):
        if not match[0].startswith(("//", "/*")):
            yield match[0], match.start()


def refusals(files: Collection[Path] = ()) -> Iterator[str]:
    """Yields a sentence for each refused name, and each refused phrase in a message.

    files: absolute paths of the sources to read; none stands for all.
    """
    python = [*ROOT.glob("src/**/*.py"), *ROOT.glob("tools/*.py")]
    for path in sorted([*python, *ROOT.glob("crates/*/src/**/*.rs")]):
        if files and path not in files:
            continue
        text, file = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        if path.suffix == ".py":
            tree = ast.parse(text)
            names, phrases = python_names(tree), python_phrases(tree)
        else:
            names, phrases = rust_names(text), rust_phrases(text)
        if is_refused(path.stem):
            yield f"{file}: the module's name '{path.stem}' is a private word. Name its content."
        for name, line in names:
            yield f"{file}:{line}: '{name}' is a private word. Use the field's word for it."
        for phrase, line in phrases if file.parts[0] != "tools" else ():
            yield f"{file}:{line}: '{phrase}' in a message is a private word. Use the field's."


def main() -> int:
    """Prints what is refused, in the files of the command line or in all; returns 1 where something
    is."""
    lines = list(refusals({Path(word).resolve() for word in sys.argv[1:]}))
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
