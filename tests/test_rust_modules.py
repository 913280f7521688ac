"""The modules of the Rust crates: no large cycles, and folders of the probe in layers."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from rust_modules import Crate, Module, cycles

CRATES = Path(__file__).resolve().parents[1] / "crates"
ROOTS = sorted(root for name in ("lib.rs", "main.rs") for root in CRATES.glob(f"*/src/{name}"))
MAX_CYCLE = 3

# A folder of the probe may use those before it, and itself.
FOLDERS = [
    "timing",
    "machine",
    "trial",
    "threads",
    "memory",
    "load",
    "net",
    "disk",
    "http",
    "storage",
    "instruments",
    "unattended",
]


@functools.cache
def modules_of(root: Path) -> dict[Module, set[Module]]:
    return Crate(root).uses()


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: str(root.relative_to(CRATES)))
def test_no_more_than_three_modules_use_each_other(root: Path) -> None:
    large = [group for group in cycles(modules_of(root)) if len(group) > MAX_CYCLE]
    assert not large, f"modules that use each other: {large}"


def test_folders_of_the_probe_use_only_those_before_them() -> None:
    uses = modules_of(CRATES / "probe/src/main.rs")
    assert {module[0] for module in uses if len(module) > 1} == set(FOLDERS)
    upward = [
        f"{'::'.join(module)} uses {'::'.join(target)}"
        for module, targets in uses.items()
        for target in targets
        if module and target and {module[0], target[0]} <= set(FOLDERS)
        if FOLDERS.index(target[0]) > FOLDERS.index(module[0])
    ]
    assert not upward, "\n".join(upward)


def test_every_file_of_a_crate_is_read() -> None:
    # A module that is missing here would be missing from the cycles too.
    modules = modules_of(CRATES / "probe/src/main.rs")
    files = [path for path in (CRATES / "probe/src").rglob("*.rs") if "tests" not in path.stem]
    assert len(modules) >= len(files) - 3


def test_cycles_are_found_through_imports_inline_paths_and_re_exports(tmp_path: Path) -> None:
    for name, text in {
        "main.rs": "mod a; mod b; mod c; mod d; mod e;",
        "a.rs": "use crate::b::{self, Thing as Other};\nfn f() { b::g() }",
        "b.rs": "pub fn g() { super::c::h::<u8>() } pub struct Thing;",
        "c/mod.rs": "mod inner; pub use inner::Deep; pub fn h<T>() { crate::d::run() }",
        "c/inner.rs": "pub struct Deep; // crate::e::unused",
        "d.rs": "pub fn run() { crate::a::f() } mod x { use super::run; }",
        "e.rs": 'use crate::c::Deep; const A: &str = "crate::a::f";'
        "#[cfg(test)] mod tests { use crate::a::f; }",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    uses = Crate(tmp_path / "main.rs").uses()
    assert cycles(uses) == [["a", "b", "c", "d"]]
    assert uses["e",] == {("c", "inner")}
