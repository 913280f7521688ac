"""`nephoscope engine`: does an engine give the same results as this machine?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command, group
from nephoscope.cli.kit.options import Count, argument, option
from nephoscope.core import leases
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.features.engines.conformance import EngineCheck

DIFFERENT = 1
"""Exit code where an answer differs, as of the other checks."""


@group()
def engine() -> None:
    """Check engines that read the store: this machine, Apache Spark."""


@dataclass(frozen=True, slots=True)
class _EngineCheckArguments:
    url: str = argument(options.ENGINE_URL, metavar="URL")
    samples: int = option(
        "--samples",
        Count(10_000, 10**9),
        "Number of samples in the synthetic store.",
        default=10**6,
    )
    folder: Path | None = option(
        "--folder",
        options.DIRECTORY,
        "Directory that all workers see, for the synthetic store [default: a temporary one].",
    )
    as_json: bool = options.JSON


@command(
    engine,
    prints=Document("engine_check", ".features.engines.conformance:EngineCheck"),
    requests=Excluded("writes a store"),
    examples=(
        "local",
        "spark://node1:7077 --folder /shared/nephoscope",
    ),
)
def check(args: _EngineCheckArguments) -> int:
    """Compare an engine's results with this process.

    URL is local:N, spark://HOST:PORT or sc://HOST:PORT. Makes a synthetic store, compares all
    bits of the answers to every question of the commands with --engine, and removes the store.
    Exits with 1 if one differs.
    """
    from nephoscope.features.engines import conformance, synthetic
    from nephoscope.store.engines import using

    if args.folder is not None and not args.folder.is_dir():
        raise UsageError(
            f"{args.folder} is no directory.", "Name one that all workers of the engine see."
        )
    with (
        leases.ScratchFolder(args.folder) as folder,
        using(args.url, str(folder)) as reader,
    ):
        result = conformance.check(reader, synthetic.made(folder, args.samples))
    if args.as_json:
        output.document(result)
    else:
        output.say(_text(result))
    return DIFFERENT if any(entry.difference for entry in result.questions) else 0


def _text(result: EngineCheck) -> str:
    rows = [
        (
            entry.question,
            f"{entry.answers:,}",
            f"{entry.here_s:.2f} s",
            f"{entry.engine_s:.2f} s",
            output.one_line(entry.difference) or "equal",
        )
        for entry in result.questions
    ]
    head = ("question", "answers", "here", "engine", "verdict")
    return f"{result.sentence}\n\n{output.table(head, rows, right=(1, 2, 3))}"
