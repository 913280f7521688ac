"""Makes the reference page of JSON documents from the records that define them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

INTRODUCTION = """Every document that `--json` prints, and every JSON file of a report, begins with
`"schema_version": {version}`. Each line of `nephoscope export --format jsonl` has that key as well.
The version rises when a key is removed or changes its meaning. New keys do not raise it, so
readers have to ignore keys that they do not know. Estimates have `value`, `low`, `high`,
`confidence`, `n`, `unit`, `method` and `note`; what is not known is null, never 0.

`nephoscope schema` lists the schemas (JSON Schema, draft 2020-12); `nephoscope schema NAME` prints
one.
"""

FILES = {
    "result": "result of a run; `report/result.json` too",
    "compare": "comparison of two sides",
    "repeats": "repeated runs, analysed together",
    "census": "census of CPU models",
    "commands": "the other documents, each under `$defs`",
    "plan": "plan files",
    "topology": "topology files of labs",
    "sample": "lines that the probe writes",
}


def page() -> str:
    """The reference page of JSON documents: the document of each command, and the keys of each."""
    from nephoscope.cli.commands import json_documents
    from nephoscope.core.documents import SCHEMA_VERSION

    lines = ["# JSON documents", "", INTRODUCTION.format(version=SCHEMA_VERSION), "## Commands", ""]
    lines += ["| command | with | document |", "|---|---|---|"]
    for command, variants in json_documents.COMMANDS.items():
        for option, name in variants.items():
            given = f"`{option}`" if option else ""
            lines.append(f"| `nephoscope {command} --json` | {given} | {document_link(name)} |")
    lines += ["", "## Files", "", "| schema | describes |", "|---|---|"]
    lines += [
        f"| [{name}](../../contracts/{name}.schema.json) | {meaning} |"
        for name, meaning in FILES.items()
    ]
    definitions = json_documents.commands_schema()["$defs"]
    for name in json_documents.RECORDS:
        lines += ["", f"## {name}", "", definitions[name].get("description", ""), ""]
        lines += ["| key | type |", "|---|---|"]
        properties = definitions[name]["properties"].items()
        lines += [f"| {key} | {json_type(value)} |" for key, value in properties]
    return "\n".join(lines) + "\n"


def document_link(name: str) -> str:
    """Returns the link to the schema of a document."""
    from nephoscope.cli.commands.json_documents import CONTRACTS

    target = f"../../contracts/{name}.schema.json" if name in CONTRACTS else f"#{name}"
    return f"[{name}]({target})"


def json_type(schema: Mapping[str, Any]) -> str:
    """Returns the type of a value in words."""
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(json_type(choice) for choice in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {json_type(schema.get('items', {}))}"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    return reference or str(schema.get("type", "any"))
