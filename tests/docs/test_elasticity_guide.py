"""The commands of the guide to autoscalers make plans; its tables name every profile and rule."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside
from tests.features.sla.made import agreement

from nephoscope.features.elastic.profiles import KINDS
from nephoscope.features.elastic.rule_texts import RuleLimits, rule_of

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "measure-elasticity.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^[$#] nephoscope (elastic .*)$", TEXT.replace("\\\n", " "), re.M)


def test_every_command_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    assert len(COMMANDS) == 12
    terms = "measure: scaling_time, target: 90%, within: 10s, credits: [{below: 90%, credit: 10%}]"
    agreement(tmp_path / "agreement.yaml", terms)
    for command in COMMANDS:
        words = shlex.split(command)
        done = run_inside([*words, *(["--dry-run"] if "--dry-run" not in words else [])])
        assert done.code == 0, (command, done.err)
        assert re.search(r"Plan (elastic|growth): preview", done.out)


def test_the_tables_are_those_of_the_program() -> None:
    for kind in KINDS:
        assert f"| `{kind}` |" in TEXT
    rules = re.findall(r"^\| `((?:[a-z-]+=|control:|fixed)[^`]*)` \|", TEXT, re.M)
    rules += re.findall(r"`((?:rate=35,|step:)[^`]*)`", TEXT)
    assert len(rules) == 11
    for rule in rules:
        rule_of(rule, RuleLimits())
