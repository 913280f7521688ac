"""The commands of the guide to parallel work, and the plan that it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside

from nephoscope import catalog
from nephoscope.measure import plans
from nephoscope.measure.plans.files.load import from_text

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "parallel-work.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope (.*)$", TEXT, re.M)
SENTENCES = ("slowest rank's work", r"The slowest of n ranks takes .* times the harmonic number")


def test_every_command_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    assert len(COMMANDS) == len(SENTENCES)
    for command, sentence in zip(COMMANDS, SENTENCES, strict=True):
        done = run_inside(shlex.split(command))
        assert done.code == 0, (command, done.err)
        assert re.search(sentence, " ".join(done.out.split())), (command, done.out)


def test_the_plan_of_the_guide_expands() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.S)
    known = catalog.load()
    settings = plans.expand(from_text(text, "ranks.yaml", {}, known), known)
    assert sorted(setting.factors["ranks"] for setting in settings) == [2, 3]
