"""Scenarios are read from files and built-in names, changed, and checked by the simulator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nephoscope.catalog import scenarios
from nephoscope.core.errors import PlanError, UnknownName, UsageError

MINE = """\
version: 1
name: mine
types:
  fast: {share: 0.5, speed: 2}
  slow: {share: 0.5, speed: 1}
instances: 4
hours: 100
price_usd_per_h: 1
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return path


def test_a_file_becomes_the_simulator_s_json(mine: Path) -> None:
    found = scenarios.load(scenarios.SELECTION, str(mine), {"hours": "7", "types.fast.speed": "3"})
    assert found.name == "mine"
    values = json.loads(found.text)
    assert (values["hours"], values["types"]["fast"]) == (7, {"share": 0.5, "speed": 3})


@pytest.mark.parametrize("kind", scenarios.KINDS, ids=lambda kind: kind.word)
def test_every_built_in_scenario_is_accepted(kind: scenarios.SimulationKind) -> None:
    known = scenarios.builtin(kind)
    assert known
    for name, values in known.items():
        assert scenarios.load(kind, name).name == name
        assert values["note"]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("speed: 2}", "sped: 2}"), "mine.yaml:4:22: unknown field `sped` (did you mean 'speed'?)"),
        (("hours: 100", "hours: many"), "mine.yaml:7:1: found 'many', but this key takes a number"),
        (("share: 0.5, speed: 2", "speed: 2"), "mine.yaml:4:3: missing field `share`"),
        (("fast: {share: 0.5", "fast: {share: 0.9"), "mine.yaml:3:1: types: the shares sum to 1.4"),
        (("speed: 1}", "speed: -1}"), "mine.yaml:5:22: types.slow.speed is -1"),
        (
            ("version: 1", "version: 2"),
            "mine.yaml:1:1: the scenario has format version 2; this program reads versions up to 1",
        ),
        (("hours: 100", "hours: 100\nhours: 3"), "mine.yaml:8:1: this is no valid YAML"),
    ],
)
def test_an_error_names_the_line_of_the_file(
    mine: Path, change: tuple[str, str], wanted: str
) -> None:
    mine.write_text(MINE.replace(*change))
    with pytest.raises(PlanError) as caught:
        scenarios.load(scenarios.SELECTION, str(mine))
    assert wanted in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_in_a_set_names_the_set(mine: Path) -> None:
    with pytest.raises(PlanError, match=r"^--set types.slow.speed=0: types.slow.speed is 0"):
        scenarios.load(scenarios.SELECTION, str(mine), {"types.slow.speed": "0"})


def test_what_is_no_scenario_is_told(mine: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'zhuang-2012'\?"):
        scenarios.load(scenarios.SELECTION, "zhuang-2021")
    with pytest.raises(UsageError, match="there is no such file"):
        scenarios.load(scenarios.SELECTION, str(tmp_path / "none.yaml"))
    mine.write_text("- a list\n")
    with pytest.raises(PlanError, match="a scenario is a mapping of keys"):
        scenarios.load(scenarios.SELECTION, str(mine))
