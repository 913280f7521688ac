"""The scenarios of the guide are accepted as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from nephoscope.catalog import scenarios

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "simulate.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
WHOLE = [block for block in BLOCKS if block.startswith("version:")]


def kind_of(block: str) -> scenarios.SimulationKind:
    keys = yaml.safe_load(block)
    if "sites" in keys:
        return scenarios.GEO
    return scenarios.SCHEDULER if "vms" in keys else scenarios.SELECTION


def test_there_is_one_of_each_kind() -> None:
    assert [kind_of(block) for block in WHOLE] == list(scenarios.KINDS)


@pytest.mark.parametrize("block", WHOLE, ids=lambda block: kind_of(block).word)
def test_it_is_accepted(block: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(block)
    assert scenarios.load(kind_of(block), str(file)).values["version"] == 1
