"""Settings that differ among merged records are named, within bounds; what was asked for is not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.store.factory import filled, trial_record

from nephoscope.results import run_settings
from nephoscope.results.run_settings import HiddenSetting, hidden_settings, warnings_of
from nephoscope.store import StoredRun


def test_only_what_differs_and_was_not_asked_for_is_named() -> None:
    records = [
        {"kernel": "6.1", "CPU model": "X", "cpu.pi digits": "9"},
        {"kernel": "6.8", "CPU model": "Y", "cpu.pi digits": "9", "mem.stream threads": "1"},
        {},  # a record of a file has no settings, so it says nothing
    ]
    hidden = hidden_settings(records, compared={"CPU model"})
    assert hidden == (HiddenSetting("kernel", ("6.1", "6.8"), 2),)
    assert warnings_of(hidden) == ["The merged records differ in: kernel (6.1; 6.8)."]
    assert warnings_of(hidden_settings(records[:1])) == []


def test_a_fact_that_a_record_hides_is_unknown_and_a_parameter_of_no_benchmark_is_none() -> None:
    records = [{"kernel": "6.1", "cpu.pi digits": "9"}, {"nephoscope": "1.0"}]
    assert hidden_settings(records) == (
        HiddenSetting("kernel", ("6.1", "unknown"), 2),
        HiddenSetting("nephoscope", ("unknown", "1.0"), 2),
    )


def test_values_and_settings_are_bounded() -> None:
    records = [{"kernel": f"6.{n}", **{f"b p{i}": str(n) for i in range(9)}} for n in range(5)]
    (sentence,) = warnings_of(hidden_settings(records))
    assert "kernel (6.0; 6.1; 6.2; and 2 more), b p0 (0; 1; 2; and 2 more)" in sentence
    assert sentence.endswith("b p6 (0; 1; 2; and 2 more), and 2 more.")


def test_settings_of_a_stored_run_are_facts_versions_kind_and_parameters(tmp_path: Path) -> None:
    run, _ = filled(tmp_path)
    (target,) = run.manifest.target_names
    document: dict[str, Any] = {"kernel": {"release": "6.1\n"}, "cpu": {"microcode": None}}
    run.update(fingerprints={target: document}, probe="0.2.0", nephoscope="0.1.0")
    assert run_settings.settings_of(run.manifest, target) == {
        "kernel": "6.1",
        "nephoscope": "0.1.0",
        "nephoscope-probe": "0.2.0",
        "target kind": "local",
    }
    assert "kernel" not in run_settings.settings_of(run.manifest, target, {})


def test_parameters_are_those_that_no_factor_varies_and_the_version_of_the_tool() -> None:
    tool = {"tool": {"tool": "fio", "version": "3.36", "report": ""}}
    records = [
        trial_record(n, benchmark="fio", params=params, factors={"depth": n}, documents=tool)
        for n, params in enumerate(({"depth": 1, "size": 4}, {"depth": 2, "size": 8}), start=1)
    ]
    run = cast(StoredRun, SimpleNamespace(records=lambda: records))
    (target,) = {record.key.target for record in records}
    known = run_settings.parameters_of(run, target)
    assert known == {"fio tool version": "3.36", "fio size": "4, 8"}
    assert run_settings.parameters_of(run, target, {"fio": {"depth"}})["fio depth"] == "1, 2"
    assert run_settings.parameters_of(run, "another target") == {}
