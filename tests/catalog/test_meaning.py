"""What benchmarks are about: stated by each of them, and known by name nowhere else."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from nephoscope import catalog
from nephoscope.catalog import adapters, instruments
from nephoscope.catalog.meaning import Resource
from nephoscope.measure.plans.resources import IDLE, RESOURCES
from nephoscope.report import summary
from nephoscope.store.store import spec_json

SOURCE = Path(catalog.__file__).parents[1]
SPECS = catalog.load().benchmarks
NAMES = frozenset(
    spec.id for spec in SPECS.values() if spec.kind != catalog.ADAPTER and "." in spec.id
)
"""Names of native benchmarks and simulations; `null` and `command` are common words, too."""


def literals(path: Path) -> Iterator[str]:
    """Yields the names of native benchmarks that stand as texts in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in NAMES:
            yield node.value


def owner(path: Path) -> str:
    """Returns the folder of a feature that a file lies in; '' outside of all features."""
    parts = path.relative_to(SOURCE).parts
    return parts[1] if parts[0] == "features" else ""


def test_native_benchmarks_are_named_in_the_catalogue_only() -> None:
    outside: list[str] = []
    by_folder: Counter[tuple[str, str]] = Counter()
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] == "catalog":
            continue
        for name in literals(path):
            if folder := owner(path):
                by_folder[folder, name] += 1
            else:
                outside.append(f"{path.relative_to(SOURCE)}: '{name}'")
    assert not outside, (
        "Read an attribute of the declaration (catalog/meaning.py) instead of the name of a "
        f"benchmark, or take the constant in catalog/instruments.py: {'; '.join(outside)}"
    )
    repeated = [f"{folder}: '{name}'" for (folder, name), count in by_folder.items() if count > 1]
    assert not repeated, f"A feature names its own benchmark once, in a constant: {repeated}"


def test_every_constant_names_a_benchmark() -> None:
    constants = {name: value for name, value in vars(instruments).items() if name.isupper()}
    assert set(constants.values()) <= SPECS.keys()
    assert len(set(constants.values())) == len(constants)


def test_every_benchmark_states_its_resource() -> None:
    for spec in SPECS.values():
        assert isinstance(spec.resource, Resource), spec.id


def test_a_benchmark_without_a_resource_is_refused() -> None:
    nameless = replace(next(iter(SPECS.values())), id="toy.silent", resource=None)
    known = catalog.Catalog("", 1, {})
    with pytest.raises(ValueError, match=r"toy\.silent states no resource\. Add `resource`"):
        catalog.complete(known, [nameless])
    with pytest.raises(ValueError, match="toy"):
        catalog.complete(replace(known, benchmarks={nameless.id: nameless}), [])


def test_an_unknown_word_is_refused() -> None:
    item = next(one for one in adapters.document()["adapters"])
    with pytest.raises(ValueError, match="'magic' is not a valid Resource"):
        catalog.parse_spec({**item, "resource": "magic"})


def test_what_a_declaration_names_exists() -> None:
    for spec in SPECS.values():
        params = {param.id for param in spec.params}
        for loop in spec.closed_loops:
            assert spec.metric(loop.rate).unit == "per_s"
            assert spec.metric(loop.latency).unit == "ns"
            assert not loop.depth or spec.param(loop.depth).type == "int"
        if spec.response_counter:
            assert spec.metric(spec.response_counter).unit == "count"
        assert spec.thread_param in ("threads", *params)
        for victim in spec.victim_for:
            assert spec.metric(victim.metric).id
            assert victim.params.keys() <= params
        for aggressor in spec.aggressor_for:
            assert spec.load
            assert aggressor.params.keys() <= params
        for metric in spec.metrics:
            assert not metric.scales_with_threads or "threads" in params


def test_every_contended_resource_has_one_aggressor_and_one_victim() -> None:
    for role in ("aggressor_for", "victim_for"):
        stated = Counter(one.resource for spec in SPECS.values() for one in getattr(spec, role))
        assert stated == Counter(name for name in RESOURCES if name != IDLE)


def test_the_summary_shows_what_benchmarks_declare() -> None:
    titles = {(one.benchmark, one.metric): one.headline.title for one in summary.choices()}
    assert titles[instruments.DISK_SYNC, "sync_latency_p50_ns"] == "Synced write, median"
    assert titles[instruments.SIM_GEO, "within_objective_ratio"] == "Requests within objective"
    assert len(titles) == 13


def test_a_stored_copy_has_no_meaning() -> None:
    known = SPECS[instruments.MEM_STREAM]
    stored = spec_json(known)
    assert not stored.keys() & set(catalog.MEANING)
    assert {*catalog.MEANING} < {field.name for field in fields(known)}
    read = catalog.parse_spec(stored)
    assert read.resource is None
    assert [metric.id for metric in read.metrics] == [metric.id for metric in known.metrics]
    assert catalog.spec_of(read.id) is known
