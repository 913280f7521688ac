"""`nephoscope schema`: the JSON Schemas of plans, topologies and printed documents."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from nephoscope.cli.kit import documents, options, output
from nephoscope.cli.kit.command import command
from nephoscope.cli.kit.named import Named
from nephoscope.cli.kit.options import argument

SUFFIX = ".schema.json"


def names() -> list[str]:
    """Returns the names of the schemas that this package has."""
    from nephoscope import catalog

    files = catalog.contracts_folder().glob(f"*{SUFFIX}")
    return sorted(path.name.removesuffix(SUFFIX) for path in files)


@dataclass(frozen=True, slots=True)
class _SchemaArguments:
    name: str | None = argument(Named(names=lambda context: names()), required=False)
    path: bool = options.flag("--path", "Print the path of the schema's file instead.")


@command(
    examples=(
        "",
        "plan",
    )
)
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
    changed = None if args.path else _of_other_packages(args.name)
    if changed is not None:
        output.say(json.dumps(changed, indent=2, ensure_ascii=False))
    else:
        output.say(str(file) if args.path else file.read_text(encoding="utf-8").rstrip("\n"))


def _of_other_packages(name: str) -> dict[str, Any] | None:
    """Returns a schema to which installed packages may add; None where the file has all of it."""
    from nephoscope import catalog
    from nephoscope.core import plugins
    from nephoscope.results import feature

    if not any(map(plugins.entry_points, (feature.GROUP, catalog.ADAPTERS_GROUP))):
        return None
    if name == "plan":
        from nephoscope.measure import plans

        return plans.plan_schema(catalog.load(), with_topology=False)
    if name == "commands":
        return documents.commands_schema()
    return documents.RESULT.schema() if name == "result" else None
