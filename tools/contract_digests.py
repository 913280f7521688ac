"""The digest of each part of each contract, so that a reviewer sees which of them changed."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

import click
import man_page

from nephoscope import api, command_line

PROSE = frozenset({"description", "title", "doc", "summary", "page", "source", "overhead"})
"""Keys of a contract whose text explains: another wording is the same contract."""

OPTION = ("opts", "secondary_opts", "required", "nargs", "multiple", "default", "is_flag")
"""What of an option or argument a command line depends on."""


def digests(documents: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Returns the digest of each part of each contract, command and public Python name.

    A part is a record of a schema or a benchmark, so that a changed line of the committed file
    names what changed. Texts that explain do not count: whoever reads the contract by program sees
    no difference. `benchmarks.json` is committed itself.
    """
    parts = {
        name: dict(_parts(document))
        for name, document in sorted(documents.items())
        if name != "benchmarks.json"
    }
    parts["command line"] = dict(_commands())
    parts["python"] = dict(_python())
    return {
        name: {part: _digest(content) for part, content in contents.items()}
        for name, contents in parts.items()
    }


def _parts(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    listed = {"$defs", "adapters", "benchmarks"} & document.keys()
    yield "top", {key: value for key, value in document.items() if key not in listed}
    for key in sorted(listed):
        records = document[key]
        named = records if isinstance(records, dict) else {item["id"]: item for item in records}
        yield from sorted(named.items())


def _commands() -> Iterator[tuple[str, Any]]:
    top = click.Context(command_line.program, info_name="nephoscope", **command_line.SETTINGS)
    for context, name in man_page.commands(command_line.program, top):
        described = context.command.to_info_dict(context)["params"]
        yield (
            name,
            [
                {key: option.get(key) for key in OPTION}
                | {key: option["type"].get(key) for key in ("choices", "min", "max")}
                for option in described
                if "--help" not in option["opts"]  # click makes it, differently for each reader
            ],
        )


def _python() -> Iterator[tuple[str, Any]]:
    for name in api.__all__:
        member = getattr(api, name)
        methods = vars(member) if inspect.isclass(member) else {name: member}
        yield (
            name,
            {
                word: str(inspect.signature(method)) if inspect.isfunction(method) else ""
                for word, method in sorted(methods.items())
                if not word.startswith("_")
            },
        )


def _digest(content: Any) -> str:
    # As it is read from the file, where tuples are lists.
    content = json.loads(json.dumps(content))
    text = json.dumps(_without_prose(content), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _without_prose(value: Any) -> Any:
    """Drops the texts that explain; a property that is named like one of them has a record."""
    if isinstance(value, dict):
        return {
            key: _without_prose(content)
            for key, content in value.items()
            if key not in PROSE or not isinstance(content, str)
        }
    return [_without_prose(item) for item in value] if isinstance(value, list) else value
