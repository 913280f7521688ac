"""Every metric of every native benchmark has a test that holds it to a truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import truth_marks

pytestmark = pytest.mark.together

CONTRACT = Path(__file__).parents[2] / "contracts/benchmarks.json"
DECLARED = {
    (benchmark["id"], metric["id"])
    for benchmark in json.loads(CONTRACT.read_text("utf-8"))["benchmarks"]
    for metric in benchmark["metrics"]
}
STATED = list(truth_marks.stated(Path(__file__).parent))


def test_every_declared_metric_has_a_truth() -> None:
    missing = sorted(DECLARED - {claim for claim, _ in STATED})
    assert not missing, (
        f"{len(missing)} of {len(DECLARED)} metrics have no truth. Write a test in tests/truth "
        f"that plants a value and compares, and mark it `truth`: {missing}"
    )


def test_every_mark_names_a_declared_metric() -> None:
    unknown = [f"{where}: {claim}" for claim, where in STATED if claim not in DECLARED]
    assert not unknown, f"Correct the mark, or run `make generate` if the metric is new: {unknown}"
