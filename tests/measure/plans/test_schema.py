"""The schema of plans states each parameter once, and judges and explains as if it did not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.conftest import ROOT

from nephoscope import catalog
from nephoscope.core.reading import yamltext
from nephoscope.measure import plans

PLANS = sorted(
    [
        *(ROOT / "src" / "nephoscope").glob("**/builtin/*.yaml"),
        *ROOT.glob("studies/*/plan*.yaml"),
        ROOT / "benchmarks" / "same-machine-twice.yaml",
    ]
)
PLACES = ("params", "factors", "backgrounds", "before", "after")
MINIMAL = {"version": 1, "name": "p", "benchmarks": [{"benchmark": "null"}]}


def written_out(schema: dict[str, Any]) -> dict[str, Any]:
    """The same rules with the parameters repeated wherever they count, without a reference."""
    schema = copy.deepcopy(schema)
    records = schema["$defs"]
    declared = records.pop("BenchmarkParameters")["$defs"]
    for name, record in records.items():
        allowed = record.get("properties", {}).get("benchmark", {}).get("enum")
        if allowed is None:
            continue
        conditions = {
            rule["if"]["properties"]["benchmark"]["const"]: rule for rule in rules(record)
        }
        record["allOf"] = []
        for benchmark in allowed:
            properties = {"params": declared[benchmark]}
            if name == "Entry":
                levels = {
                    key: {"type": "array", "minItems": 1, "items": value}
                    for key, value in declared[benchmark]["properties"].items()
                }
                properties["factors"] = {"properties": levels, "additionalProperties": False}
                stated = conditions[benchmark]["then"]["properties"]
                properties["headline"] = stated["headline"]
            record["allOf"].append(
                {
                    "if": {"properties": {"benchmark": {"const": benchmark}}},
                    "then": {"properties": properties},
                }
            )
    return schema


def rules(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [rule for rule in record["allOf"] if "if" in rule]


@pytest.fixture(scope="module")
def schemas_of_plans() -> tuple[Any, Any]:
    schema = plans.plan_schema()
    return jsonschema_rs.validator_for(written_out(schema)), jsonschema_rs.validator_for(schema)


def values_of(param: catalog.ParamSpec) -> list[Any]:
    """Values of a parameter: its default, and others of which most break a rule."""
    others: list[Any] = [None, -1e300, 1e300, 0, 1.5, "word", True, [], [0], ["word"], {"a": 1}]
    bounds = [bound for bound in (param.min, param.max) if bound is not None]
    return [param.default, *bounds, *param.choices[:1], *others]


def plan_with(place: str, benchmark: str, name: str, value: Any) -> dict[str, Any]:
    entry = {"benchmark": benchmark, "params": {name: value}}
    if place == "factors":
        entry = {"benchmark": benchmark, "factors": {name: [value, value]}}
    if place in ("params", "factors"):
        return {**MINIMAL, "benchmarks": [entry]}
    return {**MINIMAL, place: [{"name": "b", **entry} if place == "backgrounds" else entry]}


def drawn_plans() -> Iterator[dict[str, Any]]:
    """The plans of the repository, and every parameter of every benchmark in every place."""
    for path in PLANS:
        yield yamltext.parse(path.read_text(encoding="utf-8"), path.name)
    for spec in catalog.load().benchmarks.values():
        yield {**MINIMAL, "benchmarks": [{"benchmark": spec.id, "headline": ["no_such"]}]}
        yield {**MINIMAL, "benchmarks": [{"params": {"no_such": 1}}]}
        for place in PLACES:
            yield plan_with(place, spec.id, "no_such", 1)
        # The places refer to one declaration: all values in one of them, some in the others.
        for position, param in enumerate(spec.params):
            for number, value in enumerate(values_of(param)):
                yield plan_with("params", spec.id, param.id, value)
                place = PLACES[(position + number) % len(PLACES)]
                yield plan_with(place, spec.id, param.id, value)


def test_both_forms_judge_every_plan_alike(schemas_of_plans: tuple[Any, Any]) -> None:
    old, new = schemas_of_plans
    counts = {True: 0, False: 0}
    for plan in drawn_plans():
        verdict = new.is_valid(plan)
        assert verdict == old.is_valid(plan), plan
        counts[verdict] += 1
    # Enough of either kind that a schema which takes, or refuses, everything would differ.
    assert min(counts.values()) > 1000, counts


def explanations(validator: Any, plan: dict[str, Any]) -> set[tuple[str, str]]:
    """What an editor shows: place in the plan, and its description, default, values or title."""
    return {
        (entry["instanceLocation"], json.dumps(entry["annotations"], sort_keys=True))
        for entry in validator.evaluate(plan).annotations()
        if isinstance(entry["annotations"], dict)
    }


def test_both_forms_explain_every_parameter_alike(schemas_of_plans: tuple[Any, Any]) -> None:
    old, new = schemas_of_plans
    for spec in catalog.load().benchmarks.values():
        params = {param.id: param.default for param in spec.params}
        entry = {"benchmark": spec.id, "params": params}
        entry["factors"] = {name: [value] for name, value in params.items()}
        plan = {**MINIMAL, "benchmarks": [entry]}
        shown = explanations(new, plan)
        assert shown == explanations(old, plan), spec.id
        places = {place for place, text in shown if '"description"' in text}
        for name in params:
            assert f"/benchmarks/0/params/{name}" in places, (spec.id, name)
            assert f"/benchmarks/0/factors/{name}/0" in places, (spec.id, name)


def test_each_parameter_is_stated_once() -> None:
    text = json.dumps(plans.plan_schema())
    for spec in catalog.load().benchmarks.values():
        for param in spec.params:
            stated = [
                other
                for benchmark in catalog.load().benchmarks.values()
                for other in benchmark.params
                if other.doc == param.doc
            ]
            assert text.count(json.dumps(param.doc)) == len(stated), (spec.id, param.id)


def test_editors_find_the_schema_that_a_plan_names() -> None:
    for path in PLANS:
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        named = first.removeprefix("# yaml-language-server: $schema=")
        if first != named and named != "plan.schema.json":
            assert (path.parent / named).resolve() == Path(
                catalog.contract_path("plan.schema.json")
            )
