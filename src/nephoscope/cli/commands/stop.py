"""`nephoscope stop RUN`: ends a run that another process measures; what it measured is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Elsewhere, command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument


@dataclass(frozen=True, slots=True)
class _StopArguments:
    name: str = argument(RUN, metavar="[RUN]", default="latest")
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("stopped", ".measure.runs.stop:Stopped"),
    requests=Elsewhere("POST runs/RUN/stop"),
    examples=(
        "",
        "latest",
    ),
)
def stop(args: _StopArguments) -> None:
    """Stop a running measurement and keep its completed trials.

    RUN is a run id, a unique prefix of one, or `latest`.
    """
    from nephoscope.measure.runs import stop as stopping
    from nephoscope.store import Store

    run = Store(args.store).open(args.name)
    stopped = stopping.stop(run)
    trials = "1 trial is" if stopped.trials == 1 else f"{stopped.trials} trials are"
    if args.as_json:
        output.document(replace(stopped, waited_s=round(stopped.waited_s, 3)))
    elif stopped.pid is None:
        output.say(f"Run {stopped.run} is not running (state: {run.status}); {trials} kept.")
    else:
        output.say(
            f"Stopped run {stopped.run} (process {stopped.pid}) after {stopped.waited_s:.1f} s; "
            f"{trials} kept. Repeat its command to resume."
        )
