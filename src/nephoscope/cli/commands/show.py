"""`nephoscope show RUN`: analyses a run again, writes its report again, prints it."""

from __future__ import annotations

from pathlib import Path

import click

from nephoscope.cli.kit import measuring, options, output


@click.command()
@click.argument("name", metavar="[RUN]", default="latest")
@options.flag("--journal", "Print the run's event log instead of its results.")
@options.STORE
@options.FULL_REPORT
@options.JSON
def show(name: str, journal: bool, full_report: bool, store: Path | None, as_json: bool) -> int:
    """Analyse a stored run again and print its summary.

    RUN is a run id, a unique prefix of one, or `latest`. Also rewrites the report's files.
    """
    from nephoscope.store import Store

    runs = Store(store)
    run = runs.open(name)
    newest = runs.newest() if name == "latest" else None
    if newest is not None and newest.id != run.id:
        output.warn(
            f"Run {newest.id} is newer, but {newest.status}; "
            f"`nephoscope show {newest.id}` shows it."
        )
    if not journal:
        return measuring.present(run, as_json=as_json, full=full_report, stored=True)
    if as_json:
        output.document({"events": run.events()})
    else:
        from nephoscope.measure.runs.journal import lines

        output.say("\n".join(lines(run.events())) or "The run has no events.")
    return 0
