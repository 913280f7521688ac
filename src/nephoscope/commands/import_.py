"""`nephoscope import FILE`: another tool's samples into the store, then our analysis of them."""

from __future__ import annotations

from pathlib import Path

from nephoscope.commands import measuring


def run(file: Path, *, store: Path | None, as_json: bool) -> int:
    """Takes in a file of PerfKit Benchmarker and prints its analysis; returns the exit code."""
    from nephoscope.store import Store
    from nephoscope.store.imports import import_file

    return measuring.present(import_file(file, Store(store)), as_json=as_json, brief=True)
