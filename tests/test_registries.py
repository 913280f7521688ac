"""Tables that cannot lie: files of extensible folders are tested, benchmarks documented."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from nephoscope import catalog
from nephoscope.app import FEATURES
from nephoscope.catalog.adapters import ADAPTERS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "nephoscope"


ANALYSIS = sorted(
    path.relative_to(PACKAGE)
    for path in (PACKAGE / "stats").rglob("*.py")
    if not path.name.startswith("_")
)


def test_every_analysis_has_a_test_file_and_a_docstring() -> None:
    for path in ANALYSIS:
        assert (ROOT / "tests" / path.with_name(f"test_{path.name}")).is_file(), path
        assert ast.get_docstring(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))), path


def test_every_feature_has_tests_of_its_results_and_findings() -> None:
    records = [entry.analyse for entry in FEATURES if entry.analyse.startswith(".features.")]
    folders = {PACKAGE / "features" / reference.split(".")[2] for reference in records}
    assert len(folders) >= 10
    for folder in sorted(folders):
        name = folder.name
        tests = list((ROOT / "tests" / "features" / name).rglob("test_*.py"))
        assert tests, name
        if (folder / "result.py").is_file():
            assert "test_result" in {path.stem for path in tests}, name
        if (folder / "findings.py").is_file():
            assert any("findings" in path.read_text(encoding="utf-8") for path in tests), name


def test_every_benchmark_has_a_reference_page() -> None:
    for spec in catalog.load().benchmarks.values():
        page = ROOT / "docs" / "reference" / "generated" / "benchmarks" / f"{spec.id}.md"
        text = page.read_text(encoding="utf-8")
        listed = [metric.id for metric in spec.metrics] + [param.id for param in spec.params]
        assert not [name for name in listed if name not in text], spec.id


def test_the_catalogue_is_the_contract() -> None:
    document = json.loads((ROOT / "contracts" / "benchmarks.json").read_text(encoding="utf-8"))
    native = [item["id"] for item in document["benchmarks"]]
    document = json.loads(catalog.contract_path("simulations.json").read_text(encoding="utf-8"))
    answered = [item["id"] for item in document["benchmarks"]]
    simulated = [name for name in answered if name.startswith(catalog.SIMULATED)]
    # Booting a host and restoring a volume are the runner's work: no probe could declare it.
    # Adapters declare themselves.
    assert list(catalog.load().benchmarks) == [
        *native,
        catalog.HOST_BOOT,
        catalog.VOLUME_RESTORE,
        *ADAPTERS,
        *simulated,
    ]
    assert simulated
    assert {*answered} - {*simulated} == {*catalog.ANSWERED}


MAY_EXCEED_1 = {
    "block_goodput_cv_ratio",
    "buffer_delay_ratio",
    "compressed_ratio",
    "little_ratio",
    "pace_ratio",
    "relative_time_ratio",
    "restore_first_to_second_ratio",
    "slowdown_ratio",
    "throttled_ratio",
    "transfer_time_ratio",
    "utilisation_ratio",
    "work_ratio",
}
MAY_BE_NEGATIVE = {
    "corrected_saving_ratio",
    "fleet_saving_ratio",
    "printed_saving_ratio",
    "saving_ratio",
}
OF_A_RATE = {"load_intensity_ratio", "interval_intensity_ratio"}
"""Of loads that may have a rate instead, of which they may reach more."""


def test_every_other_ratio_is_declared_as_a_share() -> None:
    rates = {"load.disk", "load.net", "load.packets", "load.switches"}
    for spec in catalog.load().benchmarks.values():
        for metric in spec.metrics:
            others = MAY_EXCEED_1 | MAY_BE_NEGATIVE
            if spec.id in rates:
                others |= OF_A_RATE
            is_share = metric.unit == "ratio" and metric.id not in others
            assert metric.share == is_share, f"{spec.id}: {metric.id}"


def test_versions_agree() -> None:
    import nephoscope

    cargo = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{nephoscope.__version__}"' in cargo
    assert f'version = "{nephoscope.__version__}"' in project
    assert catalog.load().probe == nephoscope.__version__
