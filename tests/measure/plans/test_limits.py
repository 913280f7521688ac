"""Plans that ask for too much: one sentence, before anything is expanded."""

from __future__ import annotations

from pathlib import Path

import pytest

from nephoscope.core import limits
from nephoscope.core.errors import PlanError
from nephoscope.measure import plans


def plan(targets: int, levels: int = 1, entries: int = 1) -> str:
    machines = "".join(f"  - {{name: h{n}, kind: ssh, address: h{n}}}\n" for n in range(targets))
    numbers = ",".join(map(str, range(1, levels + 1)))
    entry = f"  - {{benchmark: 'null', factors: {{value: [{numbers}]}}}}\n"
    return f"name: x\ntargets:\n{machines}benchmarks:\n{entry * entries}"


def test_a_thousand_targets_are_a_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(plan(limits.TARGETS))
    assert len(plans.load(tmp_path / "plan.yaml").targets) == 1000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (plan(limits.TARGETS + 1), "targets: .*at most 1000 items"),
        (plan(1, limits.LEVELS + 1), "value: .*at most 1000 items"),
        (plan(100, 700), "has 70000 settings on targets; 64000 are run"),
        (plan(1) + "budget: 31d\n", "budget"),
        (plan(1) + "repeat: {max: 100001}\n", "repeat.max"),
    ],
)
def test_more_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(PlanError, match=words):
        plans.load(tmp_path / "plan.yaml")
