"""`nephoscope size`: which server type, how many, where, for how much."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.options import argument
from nephoscope.cli.kit.section_output import present

NONE_KEEPS, TOO_THIN = 1, 5
"""Exit codes where no deployment keeps the objective, and where none can be recommended."""


@dataclass(frozen=True, slots=True)
class _SizeArguments:
    file: Path = argument(options.PATH)
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("size", ".features.sizing.records:SizeAnalysis"),
    requests=Query(),
    examples=("app.yaml", "app.yaml -o size.html"),
)
def size(args: _SizeArguments) -> int:
    """Find the cheapest deployment that keeps a response-time objective.

    FILE is a YAML file with demand, objective, users, regions and server types;
    docs/how-to/size-a-deployment.md describes it. Exits with 5 where the data are too thin to
    recommend a deployment, and with 1 where none keeps the objective.
    """
    from nephoscope.features.sizing import application
    from nephoscope.features.sizing.result import analyse
    from nephoscope.features.sizing.section import size_section

    analysis = analyse(application.load(args.file, args.store))
    page = size_section(analysis)
    code = present(analysis, page, as_json=args.as_json, to=args.to, source=str(args.file))
    if code or analysis.is_answered:
        return code
    return TOO_THIN if analysis.unknown else NONE_KEEPS
