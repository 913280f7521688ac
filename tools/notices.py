"""Writes the licence notices of the third-party software inside the wheel.

usage: notices.py FILE

Sources: the crates that `cargo metadata` states as linked into the static programs, with the
licence files of their sources; the files `*.LICENSE` of what reports embed and the dashboard's page
contains; the standard library.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUNDLED = ROOT / "src" / "nephoscope" / "report" / "static"
PAGE_LICENCES = ROOT / "web" / "public" / "licences"
PROGRAMS = ("nephoscope-probe", "nephoscope-lab", "nephoscope-sim")
FILES = ("LICENSE*", "LICENCE*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*", "licen[cs]e*")

STANDARD_LIBRARY = """\
The static programs contain the Rust standard library, Apache-2.0 OR MIT, Copyright The Rust
Project Developers (https://thanks.rust-lang.org); its notices are COPYRIGHT-library.html of the
Rust distribution. Programs built for a musl target contain musl libc, MIT, Copyright 2005-2020
Rich Felker and contributors (https://musl.libc.org)."""


def linked_crates(*, storage: bool) -> list[Mapping[str, Any]]:
    """Returns the packages from other authors whose code is linked into the programs, by name.

    storage: whether nephoscope-storage is one of the programs.
    """
    target = f"{platform.machine()}-unknown-linux-musl"
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target]
    if storage:
        command += ["--features", "nephoscope-probe/storage"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    metadata = json.loads(output)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [id for id, package in packages.items() if package["name"] in PROGRAMS]
    linked: set[str] = set()
    while todo:
        id = todo.pop()
        # A procedural macro runs inside the compiler; nothing of it gets into the program.
        if id in linked or is_macro(packages[id]):
            continue
        linked.add(id)
        todo += [
            dependency["pkg"]
            for dependency in nodes[id]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    dependencies = [packages[id] for id in linked if packages[id]["source"] is not None]
    return sorted(dependencies, key=lambda package: (package["name"], package["version"]))


def storage_is_built() -> bool:
    """States whether nephoscope-storage is there, for any architecture."""
    return any((ROOT / "src" / "nephoscope" / "_probe").glob("*/nephoscope-storage"))


def is_macro(package: Mapping[str, Any]) -> bool:
    """States whether a package is a procedural macro."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


def licence_texts(folder: Path) -> Iterator[str]:
    """Yields the content of each licence file of a source folder, in order of name."""
    for path in sorted({path for pattern in FILES for path in folder.glob(pattern)}):
        if path.is_file():
            yield path.read_text(encoding="utf-8", errors="replace").strip()


def notices() -> str:
    """Returns the whole text; a licence text that several crates share stands there once."""
    crates = linked_crates(storage=storage_is_built())
    without_text: list[str] = []
    lines = ["Third-party software in Nephoscope", "=" * 34, "", "Rust crates", "-" * 11, ""]
    texts: dict[str, str] = {}
    users: dict[str, list[str]] = {}
    for crate in crates:
        name = f"{crate['name']} {crate['version']}"
        authors = f" ({', '.join(crate['authors'])})" if crate["authors"] else ""
        lines.append(f"{name}: {crate['license'] or 'see its licence file'}{authors}")
        own = list(licence_texts(Path(crate["manifest_path"]).parent))
        if not own and not crate["license"]:
            raise SystemExit(f"notices: {name} states no licence.")
        if not own and "Apache-2.0" in crate["license"].split(" OR "):
            without_text.append(name)
        for text in own:
            words = " ".join(text.split())
            texts.setdefault(words, text)
            users.setdefault(words, []).append(name)
    # A source without a licence file is used under a licence whose text others bring.
    for words in [words for words in texts if words.startswith("Apache License Version 2.0")][:1]:
        users[words] += without_text
    lines += ["", *STANDARD_LIBRARY.splitlines(), ""]
    for words, names in users.items():
        head = f"Licence of {', '.join(dict.fromkeys(names))}"
        lines += ["", head, "-" * 72, "", texts[words], ""]
    for path in sorted(BUNDLED.glob("*.LICENSE")):
        head = f"Embedded in reports: {path.name.removesuffix('.LICENSE')}"
        lines += ["", head, "-" * 72, "", path.read_text(encoding="utf-8").strip(), ""]
    for path in sorted(PAGE_LICENCES.glob("*.LICENSE")):
        head = f"Part of the dashboard's page: {path.name.removesuffix('.LICENSE')}"
        lines += ["", head, "-" * 72, "", path.read_text(encoding="utf-8").strip(), ""]
    return "\n".join(lines)


def main() -> int:
    """Writes the file that the command line names."""
    if len(sys.argv) != 2:
        sys.stderr.write(f"{__doc__}")
        return 2
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notices(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
