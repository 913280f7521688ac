"""Turns records into JSON documents and states the JSON Schema of such documents.

A record is a dataclass, and its definition is the only one: the keys of its document are its
fields (but those with the metadata `model.INTERNAL`) and its `model.stated` properties. Pydantic is
needed for schemas only, so that no command has to load it to print a document.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping, Set
from enum import Enum
from typing import Any, get_type_hints

from nephoscope.core.format_versions import DOCUMENT
from nephoscope.core.model import stated

LARGE = 4_000_000
"""Characters from which a document is not indented."""

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_KEYS: dict[type[Any], tuple[str, ...]] = {}


def to_json(value: Any) -> Any:
    """Returns the JSON document of a record; a number that JSON does not have becomes null."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(name): to_json(content) for name, content in value.items()}
    if isinstance(value, list | tuple | Set):
        return [to_json(content) for content in value]
    if dataclasses.is_dataclass(value):
        record: type[Any] = type(value)
        return {name: to_json(getattr(value, name)) for name in keys(record)}
    if hasattr(value, "model_dump"):  # of pydantic, which is not loaded for this
        return to_json(value.model_dump(by_alias=True))
    return value


def versioned(content: Any) -> dict[str, Any]:
    """Returns the document of a record or mapping with the version of its schema in front."""
    return {"schema_version": DOCUMENT.version, **to_json(content)}


def is_of_this_version(text: bytes) -> bool:
    """States whether the text of a versioned document has the version that this program writes."""
    match = re.match(rb'\{\s*"schema_version":\s*(\d+)\s*[,}]', text)
    return match is not None and int(match[1]) == DOCUMENT.version


def to_text(document: Any) -> str:
    """Returns a JSON document as it is printed and written to files; a large one on one line."""
    line = json.dumps(document, ensure_ascii=False, allow_nan=False)
    if len(line) > LARGE:  # indenting takes ten times as long
        return line
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def keys(record: type[Any]) -> tuple[str, ...]:
    """Returns the keys of the documents of a record type, in their order."""
    if record not in _KEYS:
        fields = dataclasses.fields(record)
        public = [field.name for field in fields if not field.metadata.get("internal")]
        _KEYS[record] = (*public, *_stated(record))
    return _KEYS[record]


def _stated(record: type[Any]) -> dict[str, Any]:
    """Returns the stated properties of a record type by name."""
    return {
        name: value
        for base in reversed(record.__mro__)
        for name, value in vars(base).items()
        if isinstance(value, stated)
    }


def schema_of(record: type[Any], title: str) -> dict[str, Any]:
    """Returns the JSON Schema of the documents of a record type, with their version."""
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class RecordSchema(GenerateJsonSchema):
        def dataclass_schema(self, schema: Any) -> dict[str, Any]:
            document = super().dataclass_schema(schema)
            document = self.resolve_ref_schema(document)
            record = schema["cls"]
            for name, value in _stated(record).items():
                returned = get_type_hints(value.fget)["return"]
                document["properties"][name] = self.generate_inner(
                    TypeAdapter(returned).core_schema
                )
            properties = {name: document["properties"][name] for name in keys(record)}
            for content in properties.values():
                content.pop("title", None)
                content.pop("default", None)
            document.pop("title", None)
            return {
                **document,
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            }

    document = TypeAdapter(record).json_schema(mode="serialization", schema_generator=RecordSchema)
    version = {"const": DOCUMENT.version, "description": "Version of the document's schema."}
    document["properties"] = {"schema_version": version, **document["properties"]}
    document["required"] = ["schema_version", *document["required"]]
    return {"$schema": DRAFT, "title": title, **document}
