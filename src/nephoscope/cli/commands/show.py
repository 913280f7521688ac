"""`nephoscope show RUN`: analyses a run again, writes its report again, prints it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import Document, Elsewhere, command
from nephoscope.cli.kit.documents import RESULT, Rows
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument
from nephoscope.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class RunJournal:
    """Events of a run in the order of time; each has `at` and `event`."""

    events: Rows


@dataclass(frozen=True, slots=True)
class _ShowArguments:
    name: str = argument(RUN, metavar="[RUN]", default="latest")
    journal: bool = options.flag("--journal", "Print the run's event log instead of its results.")
    to: Path | None = options.option(
        "-o --output",
        options.file_of(".svg", ".html", ".md", ".json"),
        "File to write: a card for a chat with the headline results (.svg), or the report (.html, "
        ".md or .json).",
        is_local=True,
    )
    store: Path | None = options.STORE
    full_report: bool = options.FULL_REPORT
    as_json: bool = options.JSON


@command(
    prints={"": RESULT, "--journal": Document("journal", RunJournal)},
    requests=Elsewhere("runs/RUN/result and runs/RUN/journal"),
    examples=(
        "",
        "latest -o card.svg",
    ),
)
def show(args: _ShowArguments) -> int:
    """Analyse a stored run again and print its summary.

    RUN is a run id, a unique prefix of one, or `latest`. Also rewrites the report's files.
    """
    from nephoscope.store import Store

    runs = Store(args.store)
    run = runs.open(args.name)
    newest = runs.newest() if args.name == "latest" else None
    if newest is not None and newest.id != run.id:
        output.warn(
            f"Run {newest.id} is newer, but {newest.status}; "
            f"`nephoscope show {newest.id}` shows it."
        )
    if not args.journal:
        return measuring.present(
            run, as_json=args.as_json, full=args.full_report, stored=True, to=args.to
        )
    if args.to is not None:
        raise UsageError("-o writes a report, and --journal prints none.", "Omit one of them.")
    if args.as_json:
        output.document({"events": run.events()})
    else:
        from nephoscope.measure.runs.journal import lines

        output.say("\n".join(lines(run.events())) or "The run has no events.")
    return 0
