"""`nephoscope import FILE`: another tool's results into the store, then our analysis of them."""

from __future__ import annotations

from pathlib import Path

import click

from nephoscope.commands import measuring, options


@click.command("import")
@click.argument("files", type=options.PATH, nargs=-1, required=True, metavar="FILE...")
@options.repeated(
    "--where", "KEY=VALUE", "Import only figures with this test, metric or factor, e.g. vendor=aws."
)
@options.STORE
@options.JSON
def import_(
    files: tuple[Path, ...], where: tuple[str, ...], store: Path | None, as_json: bool
) -> int:
    """Import results from other tools.

    FILE is a result file of PerfKit Benchmarker (newline-delimited JSON), the Phoronix Test Suite
    (composite.xml), Spare Cores (SQLite), hyperfine, iperf3, fio or k6 (JSON), or sysbench (its
    output). Several files of one tool are repetitions. The imported run is stored, analysed and
    printed like a measured run; what the files do not contain is stated.
    """
    from nephoscope.store import Store
    from nephoscope.store.imports import import_files

    run = import_files(files, Store(store), options.sets(where, "--where vendor=aws"))
    return measuring.present(run, as_json=as_json, full=True, table=True)
