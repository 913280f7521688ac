"""Makes the reference page of JSON documents from the records that define them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nephoscope.cli.kit.command import Document

SCHEMAS = "../../../src/nephoscope/_contracts"
"""Folder of the schemas from the folder of the page."""

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


def page(commands_schema: Mapping[str, Any]) -> str:
    """The reference page of JSON documents: the document of each command, and the keys of each."""
    from nephoscope.cli.kit import command, documents, registered
    from nephoscope.core.format_versions import DOCUMENT

    lines = [
        "# JSON documents",
        "",
        f"`schema_version` is {DOCUMENT.version}.",
        "",
        "## Commands",
        "",
    ]
    lines += ["| command | with | document |", "|---|---|---|"]
    for name, record in command.records(registered.program()).items():
        for option, document in record.prints.items():
            option_text = f"`{option}`" if option else ""
            lines.append(
                f"| `nephoscope {name} --json` | {option_text} | {document_link(document)} |"
            )
    lines += ["", "## Files", "", "| schema | describes |", "|---|---|"]
    lines += [
        f"| [{name}]({SCHEMAS}/{name}.schema.json) | {meaning} |" for name, meaning in FILES.items()
    ]
    definitions = commands_schema["$defs"]
    for name in (
        document.name for document in documents.documents().values() if not document.title
    ):
        lines += ["", f"## {name}", "", definitions[name].get("description", ""), ""]
        lines += ["| key | type |", "|---|---|"]
        properties = definitions[name]["properties"].items()
        lines += [f"| {key} | {json_type(value)} |" for key, value in properties]
    return "\n".join(lines) + "\n"


def document_link(document: Document) -> str:
    """Returns the link to the schema of a document."""
    name = document.name
    return f"[{name}]({f'{SCHEMAS}/{name}.schema.json' if document.title else f'#{name}'})"


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
