"""Findings as a whole: silence where nothing is odd, order, targets, the table of rules."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.model import (
    Severity,
    TrialKey,
    TrialRecord,
    TrialStatus,
)
from nephoscope.features.machine import findings as findings_machine
from nephoscope.features.machine import interference_findings, measured_findings
from nephoscope.results import findings
from nephoscope.results.machine_figures import MachineFigures
from stats.judging import GOOD, changed, judge


def test_a_good_machine_has_no_findings() -> None:
    assert judge(GOOD) == {}


def test_nothing_known_is_nothing_said() -> None:
    assert findings.findings({}, ()) == ()
    assert judge(None) == {}


def test_missing_facts_are_told_together_and_accuse_nobody() -> None:
    found = judge({"missing": [{"fact": "cpu.agree", "reason": "no cpuid instruction"}]})
    assert set(found) == {"unchecked"}
    assert found["unchecked"].severity is Severity.INFO
    assert any("no cpuid instruction" in evidence for evidence in found["unchecked"].evidence)
    assert any("Network" in e or "network" in e for e in found["unchecked"].evidence)


@pytest.mark.parametrize("rubbish", [[], 3, "text", {"cpu": 3}, {"nics": {"ports": [None, 4]}}])
def test_a_fingerprint_of_rubbish_raises_nothing(rubbish: Any) -> None:
    assert all(one.id in ("unchecked",) for one in judge(rubbish).values())


def record(round_: int, status: TrialStatus, failure: str = "") -> TrialRecord:
    return TrialRecord(
        TrialKey(round_, 0, "local"), "null", {}, {}, status, (), 0, 0.0, 1,
        {"steal_ratio": 0.5}, failure_name=failure,
    )  # fmt: skip


def test_records_are_summed_up_without_warm_up() -> None:
    records = [
        record(0, TrialStatus.FAILED, "exit"),
        record(1, TrialStatus.VALID),
        record(2, TrialStatus.INVALID),
        record(3, TrialStatus.FAILED, "no_direct_io"),
    ]
    trials = findings.summarise(records)["local"]
    assert (trials.valid, trials.invalid, trials.failed, trials.total) == (1, 1, 1, 3)
    assert trials.failures == {"no_direct_io": 1}
    assert trials.readings("steal_ratio") == [0.5] * 3


def test_the_gravest_comes_first_and_several_targets_are_named() -> None:
    quota = changed(limits__cpu_quota_cpus=0.5, hypervisor={"name": "KVM"})
    found = findings.findings({"a": quota, "b": GOOD}, (), parts=(MachineFigures(),))
    assert [one.severity for one in found] == [Severity.WARNING, Severity.INFO]
    assert all(one.sentence.startswith("a: ") for one in found)


@pytest.mark.parametrize("module", [interference_findings, findings_machine, measured_findings])
def test_every_rule_is_in_the_table_and_documented(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    rules = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and ast.unparse(node.returns or node) == "Answers"
    ]
    listed = {rule.__name__ for rule in findings.rules_of((MachineFigures(),))}
    assert rules
    assert set(rules) <= listed
    assert all(ast.get_docstring(node) for node in tree.body if isinstance(node, ast.FunctionDef)
               and node.name in rules)  # fmt: skip
