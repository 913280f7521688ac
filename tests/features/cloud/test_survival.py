"""Survival of spot machines: from their lives in a file to what a job expects."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.cloud.survival import analyse, job_sentence
from nephoscope.features.cloud.survival_section import section
from nephoscope.measure.cloud.machine_lives import MachineLife
from nephoscope.report import terminal_output
from nephoscope.report.blocks import Chart


def _life(hours: float, *, end: str = "interrupted", **more: str) -> MachineLife:
    place = {"zone": "a", "type": "small", "market": "spot", **more}
    return MachineLife(
        "r", "i", "ec2", "east", place["zone"], place["type"], place["market"],
        0.0, 3600 * hours, end,
    )  # fmt: skip


def test_a_planted_hazard_is_measured_and_zones_are_compared() -> None:
    draws = np.random.default_rng(4)
    lives = [_life(float(each), zone="a") for each in draws.exponential(2, 40)]
    lives += [_life(float(each), zone="b") for each in draws.exponential(20, 40)]
    lives += [_life(5.0, end="removed", zone="b"), _life(9.0, market="on demand")]
    result = analyse(lives, job_h=(1.0,))
    assert (result.whole.machines, result.whole.interruptions) == (81, 80)
    by_name = {group.name: group for group in result.groups}
    rate = by_name["zone a"].rate
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low <= 0.5 <= rate.high
    (comparison,) = result.comparisons
    assert comparison.level == "zone"
    assert comparison.p is not None
    assert comparison.p < 0.001
    assert result.left_out == {"of machines on demand": 1}
    text = job_sentence(result.jobs[0], per_h=0.1)
    assert text.startswith("A job of 1 h ends without an interruption with probability ")
    assert "which cost 0.1" in text


def test_few_interruptions_are_not_compared_and_long_jobs_are_refused() -> None:
    lives = [_life(2.0, end="removed"), _life(3.0, end="removed", zone="b")]
    result = analyse(lives, job_h=(1.0, 24.0))
    assert result.whole.median is None
    assert result.comparisons[0].p is None
    assert [job.length for job in result.jobs] == [1.0]
    assert any(note.startswith("A job of 24 h") for note in result.notes)


@pytest.mark.parametrize("lives", [[], [_life(1.0, market="on demand")]])
def test_without_spot_machines_one_sentence_says_how_to_get_some(lives: list[MachineLife]) -> None:
    with pytest.raises(UsageError, match="No machine of the spot market has ended here"):
        analyse(lives)


def test_the_page_has_the_curve_of_all_machines_and_of_each_group() -> None:
    lives = [_life(hours, zone=zone) for hours in (1.0, 2.0, 4.0) for zone in "ab"]
    page = section(analyse(lives, job_h=(1.0, 100.0)), price=0.5)
    text = terminal_output.render(page.title, [page], colour=False, width=100)
    assert "6 machines of the spot market in 14 machine-hours: 6 interruptions." in text
    assert "which cost" in text
    assert "A job of 100 h" in text
    (chart,) = (block for block in page.blocks if isinstance(block, Chart))
    curves = [trace for trace in chart.figure["data"] if trace.get("mode") == "lines"]
    assert {"all", "zone a", "zone b"} <= {curve.get("name") for curve in curves}
