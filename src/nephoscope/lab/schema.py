"""JSON Schema of a topology, so that editors complete it."""

from __future__ import annotations

from typing import Any

from nephoscope.lab.topology import Topology


def topology_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of contracts/topology.schema.json."""
    schema: dict[str, Any] = Topology.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Nephoscope lab topology"
    # `a:` with nothing behind it is a host, switch or link as it is by default.
    for kind in ("hosts", "switches"):
        named = schema["properties"][kind]
        for holder in ("additionalProperties", "patternProperties"):
            inner = named.get(holder)
            if isinstance(inner, dict) and "$ref" in inner:
                named[holder] = {"anyOf": [inner, {"type": "null"}]}
            elif isinstance(inner, dict):
                named[holder] = {
                    key: {"anyOf": [value, {"type": "null"}]} for key, value in inner.items()
                }
    return schema
