"""Refuses names that say nothing, such as `one` or `found`, for anything but short-lived variables.

Such a name may live on at most three lines: a comprehension, a short loop. Beyond that, and in
fields and functions, a name has to state the quantity. Files that are not clean yet are listed with
their counts in tools/vague_names.json; a count may only shrink, and an entry that no longer matches
is an error. `--update` lowers the counts of that file.

Words of `REFUSED` name nothing in Python at all, however short they live: no variable, parameter,
attribute, keyword, function, class or module. Phrases of `REFUSED_PHRASES` stand in no message.
Neither has exceptions.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINE = ROOT / "tools" / "vague_names.json"
MAX_LINES = 3
VAGUE = frozenset(
    {"one", "other", "others", "found", "told", "both", "its", "mine", "said", "given", "ours"}
    | {"theirs", "beside", "whose", "also", "shown", "carried", "flowed", "kept", "asked"}
)
REFUSED = frozenset(
    {"both", "carried", "flowed", "greets", "its", "mine", "theirs", "whose", "toil", "hush"}
    | {"shelf", "sighting", "sightings", "refills", "mistake", "mistakes", "stranger", "luck"}
    | {"touches", "called", "circumstances", "keeper", "odd_target", "on_grid"}
)
REFUSED_PHRASES = re.compile(
    r"\b(?:shelf|sightings?|crowd(?:ed|ing)|strangers?|mistakes?|begin anew|cries wolf|in short"
    r"|luck|a look|finely|how sure|keepers?|ours|theirs|asked for and not given"
    r"|what stood beside)\b",
    re.IGNORECASE,
)
RUST = re.compile(r"\b(?:let(?: mut)?|fn|for|pub|struct)\s+\(?(\w+)\b")


def python_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yields each vague name of a module with the line where it is bound."""
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            if scope.name.strip("_") in VAGUE:
                yield scope.name, scope.lineno
            yield from _long_lived(scope)
        elif isinstance(scope, ast.ClassDef):
            yield from _fields(scope)


def refused_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yields each identifier of a module that is a refused word, with its line."""
    for node in ast.walk(tree):
        for name in _identifiers(node):
            if _snake_case(name) in REFUSED:
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
    elif isinstance(node, ast.alias):
        yield from (node.asname or node.name).split(".")


def _snake_case(name: str) -> str:
    """Returns a name in lower case with `_` between its words, without `_` at its ends."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


def refused_phrases(tree: ast.AST) -> Iterator[tuple[str, int]]:
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


def refusals() -> Iterator[str]:
    """Yields a sentence for each refused word in a name, and each refused phrase in a message."""
    for path in sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("tools/*.py")]):
        tree, file = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT)
        if path.stem in REFUSED:
            yield f"{file}: the module's name '{path.stem}' is a private word. Name its content."
        for name, line in refused_names(tree):
            yield f"{file}:{line}: '{name}' is a private word. Use the field's word for it."
        if file.parts[0] == "src":
            for phrase, line in refused_phrases(tree):
                yield f"{file}:{line}: '{phrase}' in a message is a private word. Use the field's."


def _fields(scope: ast.ClassDef) -> Iterator[tuple[str, int]]:
    for statement in scope.body:
        target = statement.target if isinstance(statement, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id in VAGUE:
            yield target.id, statement.lineno


def _long_lived(scope: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, int]]:
    """Yields the vague names of a function that are bound and used more than three lines apart.

    A loop's variable lives as long as its loop; a name that two loops share lives twice.
    """
    inside = {
        id(node)
        for child in ast.walk(scope)
        if isinstance(child, ast.comprehension | ast.Lambda | ast.GeneratorExp | ast.ListComp)
        for node in ast.walk(child)
    }
    uses: dict[str, list[int]] = defaultdict(list)
    bindings: dict[str, list[int]] = defaultdict(list)
    arguments = [*scope.args.args, *scope.args.kwonlyargs, scope.args.vararg, scope.args.kwarg]
    for argument in arguments:
        if argument is not None and argument.arg in VAGUE:
            bindings[argument.arg].append(argument.lineno)
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and node.id in VAGUE and id(node) not in inside:
            line = node.lineno
            (bindings if isinstance(node.ctx, ast.Store) else uses)[node.id].append(line)
    for name, starts in bindings.items():
        starts.sort()
        for start, following in zip(starts, [*starts[1:], sys.maxsize], strict=True):
            last = max((line for line in uses[name] if start <= line < following), default=start)
            if last - start >= MAX_LINES:
                yield name, start


def rust_names(text: str) -> Iterator[tuple[str, int]]:
    """Yields each vague name of a Rust file whose last use is more than three lines below."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        for name in RUST.findall(line.split("//")[0]):
            if name in VAGUE:
                later = "\n".join(lines[number + MAX_LINES - 1 : number + 20])
                if re.search(rf"\b{name}\b", later.split("\n}\n")[0]):
                    yield name, number


def findings() -> dict[str, list[tuple[str, int]]]:
    """Returns the vague names of every source file that has some."""
    found_names: dict[str, list[tuple[str, int]]] = {}
    for path in sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("tools/*.py")]):
        names = list(python_names(ast.parse(path.read_text(encoding="utf-8"))))
        found_names[str(path.relative_to(ROOT))] = names
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        names = list(rust_names(path.read_text(encoding="utf-8")))
        found_names[str(path.relative_to(ROOT))] = names
    return {file: names for file, names in found_names.items() if names}


def complaints(names: dict[str, list[tuple[str, int]]], allowed: dict[str, int]) -> Iterator[str]:
    """Yields a sentence for each file whose count differs from what is allowed."""
    counts = Counter({file: len(entries) for file, entries in names.items()})
    for file in sorted({*counts, *allowed}):
        count, limit = counts[file], allowed.get(file, 0)
        if count > limit:
            places = ", ".join(f"line {line}: {name}" for name, line in names[file])
            yield f"{file}: {count} vague names, {limit} allowed. Name the quantity ({places})."
        elif count < limit:
            yield f"{file}: {count} vague names left; run `tools/check_names.py --update`."


def main() -> int:
    """Compares the sources with the allowed counts; returns 1 where they differ."""
    names = findings()
    if "--update" in sys.argv:
        counts = {file: len(entries) for file, entries in names.items()}
        if BASELINE.exists():
            allowed = json.loads(BASELINE.read_text(encoding="utf-8"))
            counts = {
                file: min(count, allowed[file]) for file, count in counts.items() if file in allowed
            }
        BASELINE.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
        return 0
    allowed = json.loads(BASELINE.read_text(encoding="utf-8"))
    lines = [*complaints(names, allowed), *refusals()]
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
