"""What a run with checked objects states: losses, annual loss, findings, its answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.results.made import make_run

from nephoscope.core.model import RunResult, Sample, Setting, Severity
from nephoscope.features.durability import section
from nephoscope.features.durability.result import Durability
from nephoscope.report.blocks import Table
from nephoscope.results import analyse_run

PLAN = """version: 1
name: photos
benchmarks:
  - benchmark: storage.durability
    params: {name: photos}
repeat: {min: 2, max: 2}
"""
YEAR_NS = 31_557_600e9
OBJECT_YEARS = 200.0


def result_of(folder: Path, **values: float) -> RunResult:
    """A run of two checks; in the first one all objects are intact."""

    def answers(_: Setting, round_number: int, __: str) -> Sequence[Sample]:
        counts = {"lost": 0, "damaged": 0, "unreachable": 0, "returned": 0, "written": 0}
        counts |= values if round_number == 2 else {}
        counts.setdefault("intact", 100)
        samples = [Sample(f"{name}_count", float(value)) for name, value in counts.items()]
        return [*samples, Sample("exposure_ns", OBJECT_YEARS * YEAR_NS)]

    return analyse_run.build(make_run(folder, PLAN, answers, rounds=2))


def warnings(result: RunResult) -> dict[str, str]:
    return {
        finding.id: finding.sentence
        for finding in result.findings
        if finding.severity is Severity.WARNING
    }


def test_no_loss_is_a_bound(tmp_path: Path) -> None:
    result = result_of(tmp_path)
    # 1 - e^(-2.9957 / 200) is 1.49 %.
    assert section.answer(result) == [
        "photos: 100 of 100 objects intact, 0 lost, 0 damaged, 0 unreachable; annual loss at most "
        "1.49 % (200 object-years, 95%)."
    ]
    assert warnings(result) == {}
    built = section.build(result)
    assert built is not None
    (table,) = [block for block in built.blocks if isinstance(block, Table)]
    assert len(table.rows) == 1


def test_lost_damaged_and_unreachable_are_three_warnings(tmp_path: Path) -> None:
    result = result_of(tmp_path, intact=97, lost=1, damaged=2, unreachable=4)
    part = result.part(Durability)
    assert part is not None
    (entry,) = part.sets
    assert (entry.objects, entry.lost, entry.damaged, entry.unreachable) == (100, 1, 2, 4)
    assert entry.loss is not None
    assert entry.loss.value == pytest.approx(-math.expm1(-3 / OBJECT_YEARS))
    sentences = warnings(result)
    assert set(sentences) == {"objects_lost", "objects_damaged", "objects_unreachable"}
    assert sentences["objects_lost"].startswith("1 of 100 objects of photos is lost")
    assert "None of them counts as lost" in sentences["objects_unreachable"]


def test_the_newest_check_counts(tmp_path: Path) -> None:
    """Counts of a check are of all checks before it; those of two are not averaged."""
    result = result_of(tmp_path, lost=10, intact=90)
    part = result.part(Durability)
    assert part is not None
    assert part.sets[0].lost == 10
