"""`nephoscope stop RUN`: ends a run that another process measures; what it measured is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from nephoscope.cli.kit import options, output


@click.command()
@click.argument("name", metavar="[RUN]", default="latest")
@options.STORE
@options.JSON
def stop(name: str, store: Path | None, as_json: bool) -> None:
    """Stop a running measurement and keep its completed trials.

    RUN is a run id, a unique prefix of one, or `latest`.
    """
    from nephoscope.measure.runs import stop as stopping
    from nephoscope.store import Store

    run = Store(store).open(name)
    stopped = stopping.stop(run)
    trials = "1 trial is" if stopped.trials == 1 else f"{stopped.trials} trials are"
    if as_json:
        output.document(replace(stopped, waited_s=round(stopped.waited_s, 3)))
    elif stopped.pid is None:
        output.say(f"Run {stopped.run} is not running (state: {run.status}); {trials} kept.")
    else:
        output.say(
            f"Stopped run {stopped.run} (process {stopped.pid}) after {stopped.waited_s:.1f} s; "
            f"{trials} kept. Repeat its command to resume."
        )
