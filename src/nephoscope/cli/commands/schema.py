"""`nephoscope schema`: the JSON Schemas of plans, topologies and printed documents."""

from __future__ import annotations

import click

from nephoscope.cli.kit import options, output

SUFFIX = ".schema.json"


def names() -> list[str]:
    """Returns the names of the schemas that this package has."""
    from nephoscope import catalog

    files = catalog.contracts_folder().glob(f"*{SUFFIX}")
    return sorted(path.name.removesuffix(SUFFIX) for path in files)


@click.command()
@click.argument("name", required=False)
@options.flag("--path", "Print the path of the schema's file instead.")
def schema(name: str | None, path: bool) -> None:
    """Print a JSON Schema; without NAME, list the schemas.

    For completion in editors, save the schema beside a plan and begin the plan with
    `# yaml-language-server: $schema=plan.schema.json`.
    """
    from nephoscope import catalog
    from nephoscope.core.reading.sentences import unknown_name

    known = names()
    if name is None:
        output.say("\n".join(known))
        return
    if name not in known:
        raise unknown_name(f"There is no schema '{name}'", name, known, "Schemas")
    file = catalog.contract_path(name + SUFFIX)
    output.say(str(file) if path else file.read_text(encoding="utf-8").rstrip("\n"))
