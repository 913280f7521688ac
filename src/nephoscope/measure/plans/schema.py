"""JSON Schema of a plan, with the catalogue's names in it, so that editors complete them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import BenchmarkSpec, ParamSpec
from nephoscope.core.documents import DRAFT
from nephoscope.measure.plans.check import SCENARIO
from nephoscope.measure.plans.model import Plan

_UNITS_AS_TEXT = ("bytes", "ns", "ratio")


def plan_schema(
    known: catalog.Catalog | None = None, *, with_topology: bool = True
) -> dict[str, Any]:
    """The schema (draft 2020-12) of plan.schema.json.

    with_topology: the records of a topology that stands in the plan itself are in it as well.
    """
    known = known or catalog.load()
    schema: dict[str, Any] = Plan.model_json_schema(by_alias=True)
    schema["$schema"] = DRAFT
    schema["title"] = "Nephoscope plan"
    records = schema["$defs"]
    specs = list(known.benchmarks.values())
    loads = [spec for spec in specs if spec.load]
    records["BenchmarkParameters"] = _parameters(specs)
    _completed(records["Entry"], specs)
    records["Entry"]["allOf"] += [_measured(spec) for spec in specs]
    _completed(records["BackgroundEntry"], loads or specs)
    _completed(records["HookEntry"], [spec for spec in specs if not spec.needs_peer])
    targets = schema["properties"]["targets"]["items"]
    for record in targets["oneOf"]:
        record["properties"]["roles"]["items"]["examples"] = list(ROLES)
    records |= {record["title"]: record for record in targets["oneOf"]}
    targets["oneOf"] = [{"$ref": f"#/$defs/{target['title']}"} for target in targets["oneOf"]]
    for name in ("Entry", "BackgroundEntry"):
        records[name]["properties"]["peer"]["examples"] = ["server", "self"]
    records["Entry"]["properties"]["client"]["examples"] = ["client"]
    records["Factor"]["properties"]["path"] |= {"pattern": _PATH, "examples": list(_PATHS)}
    if with_topology:
        schema["properties"]["lab"]["anyOf"] = _lab(records)
    return schema


ROLES = ("victim", "aggressor", "client", "server", "balancer", "generator")
"""Roles that editors offer; a plan may have words of its own."""

_PATH = (
    r"^(lab\.(links|hosts|geo)\..+|backgrounds|backgrounds\.[a-z0-9_-]+\.(active|params\..+)"
    r"|backgrounds\.\*\.(count|params\..+)|benchmarks\.[0-9]+\.params\..+)$"
)
_PATHS = (
    "lab.links.wan.delay",
    "lab.links.wan.loss",
    "lab.links.wan.rate",
    "lab.hosts.a.cpu.cap",
    "lab.hosts.a.platform",
    "backgrounds",
    "backgrounds.noise.active",
    "backgrounds.noise.params.threads",
    "benchmarks.0.params.threads",
    "backgrounds.*.params.intensity_ratio",
    "backgrounds.*.count",
)


def _lab(records: dict[str, Any]) -> list[dict[str, Any]]:
    """A file's name, a topology, or nothing; the topology's records join those of the plan."""
    from nephoscope.measure.lab.topology import Topology

    topology = Topology.model_json_schema(by_alias=True)
    for name, record in topology.pop("$defs").items():
        if name in records:
            raise ValueError(f"two records of a plan are named {name}")
        records[name] = record
    records["Topology"] = topology
    return [{"type": "string"}, {"$ref": "#/$defs/Topology"}, {"type": "null"}]


def _completed(record: dict[str, Any], specs: Sequence[BenchmarkSpec]) -> None:
    """The ids of benchmarks, and for each of them its parameters."""
    record["properties"]["benchmark"]["enum"] = [spec.id for spec in specs]
    record["allOf"] = [{"$ref": PARAMETERS}]


PARAMETERS = "#/$defs/BenchmarkParameters"
"""The only place that states the parameters of each benchmark; everything else refers to it."""


def _parameters(specs: Sequence[BenchmarkSpec]) -> dict[str, Any]:
    """The parameters of each benchmark, and the rule which of them `params` may have."""
    declared = {
        spec.id: {
            "properties": {param.id: _value(param) for param in spec.params},
            "additionalProperties": False,
        }
        for spec in specs
    }
    allowed = [_if(spec, {"params": {"$ref": f"{PARAMETERS}/$defs/{spec.id}"}}) for spec in specs]
    return {"$defs": declared, "allOf": allowed}


def _measured(spec: BenchmarkSpec) -> dict[str, Any]:
    """What a measured benchmark may vary, and the metrics that may decide when it stops."""
    levels = {
        param.id: {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": f"{PARAMETERS}/$defs/{spec.id}/properties/{param.id}"},
        }
        for param in spec.params
    }
    factors = {"properties": levels, "additionalProperties": False}
    headline = {"items": {"enum": [metric.id for metric in spec.metrics]}}
    return _if(spec, {"factors": factors, "headline": headline})


def _if(spec: BenchmarkSpec, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "if": {"properties": {"benchmark": {"const": spec.id}}},
        "then": {"properties": properties},
    }


def _value(param: ParamSpec) -> dict[str, Any]:
    described: dict[str, Any] = {"description": param.doc, "default": param.default}
    if param.id == SCENARIO:
        return {**described, "type": ["string", "object"]}
    return {**described, **_type(param, param.type)}


def _type(param: ParamSpec, kind: str) -> Mapping[str, Any]:
    if kind.endswith("_list"):
        return {"type": "array", "items": _type(param, kind.removesuffix("_list"))}
    if kind == "bool":
        return {"type": "boolean"}
    if kind in ("text", "choice"):
        return {"type": "string"} | ({"enum": list(param.choices)} if kind == "choice" else {})
    bounds = {
        key: value
        for key, value in (("minimum", param.min), ("maximum", param.max))
        if value is not None
    }
    number = {"type": "integer" if kind == "int" else "number", **bounds}
    return {"anyOf": [number, {"type": "string"}]} if param.unit in _UNITS_AS_TEXT else number
