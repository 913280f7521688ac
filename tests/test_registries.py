"""Tables that cannot lie: files of extensible folders are tested, benchmarks documented."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from nephoscope import catalog
from nephoscope.adapters import ADAPTERS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "nephoscope"


ANALYSIS = sorted(
    path.relative_to(PACKAGE)
    for path in (PACKAGE / "analysis").rglob("*.py")
    if not path.name.startswith("_")
)


@pytest.mark.parametrize("path", ANALYSIS, ids=str)
def test_every_analysis_has_a_test_file_and_a_docstring(path: Path) -> None:
    assert (ROOT / "tests" / path.with_name(f"test_{path.name}")).is_file()
    assert ast.get_docstring(ast.parse((PACKAGE / path).read_text(encoding="utf-8")))


def capabilities() -> list[str]:
    """Folders that the assembly of results, findings and reports takes something from."""
    names = set()
    for path in (PACKAGE / "capabilities").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names.update(node.module.split(".")[1:2])
    return sorted(name for name in names if (PACKAGE / name / "section.py").is_file())


@pytest.mark.parametrize("name", capabilities())
def test_every_capability_has_tests_of_its_results_and_findings(name: str) -> None:
    files = {path.stem for path in (ROOT / "tests" / name).rglob("test_*.py")}
    for stem in ("result", "findings"):
        assert not (PACKAGE / name / f"{stem}.py").is_file() or f"test_{stem}" in files, name
    assert files


@pytest.mark.parametrize("spec", catalog.load().benchmarks.values(), ids=lambda spec: spec.id)
def test_every_benchmark_has_a_reference_page(spec: catalog.BenchmarkSpec) -> None:
    page = ROOT / "docs" / "reference" / "benchmarks" / f"{spec.id}.md"
    text = page.read_text(encoding="utf-8")
    for metric in spec.metrics:
        assert metric.id in text
    for param in spec.params:
        assert param.id in text


def test_the_catalogue_is_the_contract() -> None:
    document = json.loads((ROOT / "contracts" / "benchmarks.json").read_text(encoding="utf-8"))
    native = [item["id"] for item in document["benchmarks"]]
    document = json.loads((ROOT / "contracts" / "simulations.json").read_text(encoding="utf-8"))
    simulated = [item["id"] for item in document["benchmarks"]]
    # Booting a host is the runner's work: no probe could declare it. Adapters declare themselves.
    assert list(catalog.load().benchmarks) == [*native, catalog.HOST_BOOT, *ADAPTERS, *simulated]
    assert all(name.startswith(catalog.SIMULATED) for name in simulated)


def test_versions_agree() -> None:
    import nephoscope

    cargo = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{nephoscope.__version__}"' in cargo
    assert f'version = "{nephoscope.__version__}"' in project
    assert catalog.load().probe == nephoscope.__version__
