"""JSON Schema of a plan, with the catalogue's names in it, so that editors complete them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import BenchmarkSpec, ParamSpec
from nephoscope.plans.model import Plan

_UNITS_AS_TEXT = ("bytes", "ns", "ratio")


def plan_schema(known: catalog.Catalog | None = None) -> dict[str, Any]:
    """The schema (draft 2020-12) of contracts/plan.schema.json."""
    known = known or catalog.load()
    schema: dict[str, Any] = Plan.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Nephoscope plan"
    entry = schema["$defs"]["Entry"]
    entry["properties"]["benchmark"]["enum"] = list(known.benchmarks)
    entry["allOf"] = [_of_benchmark(spec) for spec in known.benchmarks.values()]
    return schema


def _of_benchmark(spec: BenchmarkSpec) -> dict[str, Any]:
    params = {param.id: _value(param) for param in spec.params}
    levels = {
        name: {"type": "array", "minItems": 1, "items": value} for name, value in params.items()
    }
    metrics = [metric.id for metric in spec.metrics]
    return {
        "if": {"properties": {"benchmark": {"const": spec.id}}},
        "then": {
            "properties": {
                "params": {"properties": params, "additionalProperties": False},
                "factors": {"properties": levels, "additionalProperties": False},
                "headline": {"items": {"enum": metrics}},
            }
        },
    }


def _value(param: ParamSpec) -> dict[str, Any]:
    described: dict[str, Any] = {"description": param.doc, "default": param.default}
    return {**described, **_type(param)}


def _type(param: ParamSpec) -> Mapping[str, Any]:
    bounds = {
        key: value
        for key, value in (("minimum", param.min), ("maximum", param.max))
        if value is not None
    }
    number = {"type": "integer" if param.type.startswith("int") else "number", **bounds}
    with_unit = {"anyOf": [number, {"type": "string"}]}
    plain = with_unit if param.unit in _UNITS_AS_TEXT else number
    words = {"type": "string", "enum": list(param.choices)}
    return {
        "int": plain,
        "float": plain,
        "bool": {"type": "boolean"},
        "choice": words,
        "text": {"type": "string"},
        "int_list": {"type": "array", "items": plain},
        "choice_list": {"type": "array", "items": words},
    }[param.type]
