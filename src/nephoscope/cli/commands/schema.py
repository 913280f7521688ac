"""`nephoscope schema`: the JSON Schemas of plans, topologies and printed documents."""

from __future__ import annotations

from dataclasses import dataclass

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import command
from nephoscope.cli.kit.named import Named
from nephoscope.cli.kit.options import argument

SUFFIX = ".schema.json"


def names() -> list[str]:
    """Returns the names of the schemas that this package has."""
    from nephoscope import catalog

    files = catalog.source_folder("contracts").glob(f"*{SUFFIX}")
    return sorted(path.name.removesuffix(SUFFIX) for path in files)


@dataclass(frozen=True, slots=True)
class _SchemaArguments:
    name: str | None = argument(Named(names=lambda context: names()), required=False)
    path: bool = options.flag("--path", "Print the path of the schema's file instead.")


@command()
def schema(args: _SchemaArguments) -> None:
    """Print a JSON Schema; without NAME, list the schemas.

    For completion in editors, save the schema beside a plan and begin the plan with
    `# yaml-language-server: $schema=plan.schema.json`.
    """
    from nephoscope import catalog
    from nephoscope.core.reading.sentences import unknown_name

    known = names()
    if args.name is None:
        output.say("\n".join(known))
        return
    if args.name not in known:
        raise unknown_name(f"There is no schema '{args.name}'", args.name, known, "Schemas")
    file = catalog.contract_path(args.name + SUFFIX)
    output.say(str(file) if args.path else file.read_text(encoding="utf-8").rstrip("\n"))
