"""`nephoscope import FILE`: another tool's samples into the store, then our analysis of them."""

from __future__ import annotations

from pathlib import Path

import click

from nephoscope.commands import measuring, options


@click.command("import")
@click.argument("file", type=options.PATH)
@options.STORE
@options.JSON
def import_(file: Path, store: Path | None, as_json: bool) -> int:
    """Import results from PerfKit Benchmarker.

    FILE is newline-delimited JSON (perfkitbenchmarker_results.json). The imported run is stored,
    analysed and printed like a measured run.
    """
    from nephoscope.store import Store
    from nephoscope.store.pkb import import_file

    return measuring.present(
        import_file(file, Store(store)), as_json=as_json, full=True, table=True
    )
