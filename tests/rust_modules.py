"""The modules of a Rust crate and the modules that each one uses, from paths in the source.

A module is a file. `crate::`, `self::` and `super::` paths, child modules and imported names are
resolved; a name that a module only re-exports leads to the file that defines it, so that a folder's
`mod.rs` may re-export without being a part of every cycle. Tests inside modules are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

Module = tuple[str, ...]

NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""", re.DOTALL
)
TESTS = re.compile(r"#\[cfg\((?:all\()?test[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])(?:\w+::)+\w+")


def block_end(text: str, start: int) -> int:
    """Returns the position after the block whose first brace is at or after `start`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def code_of(path: Path) -> str:
    """Returns the text of a file without comments, literals and tests.

    Paths in inline modules are those that the file itself would write.
    """
    text = NO_CODE.sub(" ", path.read_text(encoding="utf-8"))
    while match := TESTS.search(text):
        end = re.compile(r"[;{]").search(text, match.end())
        assert end is not None, path
        after = end.end() if end[0] == ";" else block_end(text, end.start())
        text = text[: match.start()] + text[after:]
    position = 0
    while match := re.compile(r"\bmod\s+\w+\s*\{").search(text, position):
        end_of_module = block_end(text, match.end() - 1)
        body = re.sub(r"\bsuper::", "self::", text[match.end() : end_of_module])
        text = text[: match.end()] + body + text[end_of_module:]
        position = match.end()
    return text


def use_leaves(tree: str, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields each imported path of a `use` tree with its local name."""
    depth, item = 0, ""
    for character in tree + ",":
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character != "," or depth:
            item += character
            continue
        head, brace, rest = item.strip().partition("{")
        parts = tuple(part for part in re.split(r"\s*::\s*", head.strip()) if part)
        if brace:
            yield from use_leaves(rest.rstrip().removesuffix("}"), prefix + parts)
        elif parts:
            *path, last = parts
            name, _, alias = last.partition(" as ")
            whole = (*prefix, *path) if name == "self" else (*prefix, *path, name)
            yield whole, alias.strip() or whole[-1]
        item = ""


class Crate:
    """The modules of a program or library from its root file on."""

    def __init__(self, root: Path) -> None:
        self.bodies: dict[Module, str] = {}
        self.exports: dict[Module, dict[str, tuple[str, ...]]] = {}
        self.imports: dict[Module, dict[str, tuple[str, ...]]] = {}
        self._read((), root, root.parent)

    def _read(self, module: Module, path: Path, folder: Path) -> None:
        text = code_of(path)
        exports: dict[str, tuple[str, ...]] = {}
        imports: dict[str, tuple[str, ...]] = {}
        for public, tree in USE.findall(text):
            for imported, name in use_leaves(tree):
                (exports if public else imports)[name] = imported
        self.bodies[module] = USE.sub("", text)
        self.exports[module], self.imports[module] = exports, imports
        for child in re.findall(r"\bmod\s+(\w+)\s*;", text):
            for file in (folder / f"{child}.rs", folder / child / "mod.rs"):
                if file.exists():
                    self._read((*module, child), file, folder / child)

    def _absolute(self, module: Module, path: tuple[str, ...]) -> tuple[str, ...] | None:
        """Returns a path from the crate's root; none for another crate's."""
        head, *rest = path
        match head:
            case "crate":
                return tuple(rest)
            case "self":
                return (*module, *rest)
            case "super":
                start = rest if rest[:1] == ["super"] else ["self", *rest]
                return self._absolute(module[:-1], tuple(start))
        if (*module, head) in self.bodies:
            return (*module, *path)
        for names in (self.imports[module], self.exports[module]):
            if head in names and names[head] != path:
                return self._absolute(module, (*names[head], *rest))
        return None

    def _definition(self, path: tuple[str, ...]) -> Module:
        """Returns the module that defines what a path from the root names."""
        depth = 0
        while depth < len(path) and path[: depth + 1] in self.bodies:
            depth += 1
        module, rest = path[:depth], path[depth:]
        if rest and rest[0] in self.exports[module]:
            target = self._absolute(module, (*self.exports[module][rest[0]], *rest[1:]))
            if target is not None and target != path:
                return self._definition(target)
        return module

    def uses(self) -> dict[Module, set[Module]]:
        """Returns the modules that each module uses."""
        used: dict[Module, set[Module]] = {}
        for module, body in self.bodies.items():
            paths = [tuple(path.split("::")) for path in PATH.findall(body)]
            # An imported module counts where something of it is used.
            imported = self.imports[module].values()
            absolute = {self._absolute(module, path) for path in (*paths, *imported)}
            named = {path for path in absolute if path is not None and path not in self.bodies}
            used[module] = {self._definition(path) for path in named} - {module}
        return used


def cycles(used: Mapping[Module, set[Module]]) -> list[list[str]]:
    """Returns the groups of modules that use each other, the largest first."""
    modules = sorted(used)
    number = {module: index for index, module in enumerate(modules)}
    pairs = np.array([(number[a], number[b]) for a in modules for b in used[a]] or [(0, 0)])
    graph = csr_array((np.ones(len(pairs)), pairs.T), shape=(len(modules), len(modules)))
    _, groups = connected_components(graph, directed=True, connection="strong")
    members = [
        ["::".join(modules[index]) for index in np.flatnonzero(groups == group)]
        for group in np.unique(groups)
    ]
    return sorted((group for group in members if len(group) > 1), key=len, reverse=True)
