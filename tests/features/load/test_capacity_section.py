"""The report of a search: each trial is drawn where it was measured, and the limit beside it."""

from __future__ import annotations

import pytest

from nephoscope.core.model import Estimate
from nephoscope.features.load.capacity_section import section
from nephoscope.features.load.records import CapacityResult, SearchStage, TrialOutcome, Tried
from nephoscope.report import html_output, terminal_output
from nephoscope.report.blocks import Chart

STAGES = (
    SearchStage(
        (TrialOutcome(300.0, True, 4e6), TrialOutcome(900.0, False, None)), 520.0, 300.0, 900.0
    ),
    SearchStage(
        (TrialOutcome(500.0, True, 9e6), TrialOutcome(600.0, False, 7e7)), 540.0, 500.0, 590.0
    ),
)


def result(known: bool = True) -> CapacityResult:
    capacity = Estimate(540.0, 500.0, 590.0, 0.95, 4, "per_s", "posterior")
    return CapacityResult(
        url="http://127.0.0.1/",
        objective="p99 < 20.0 ms",
        connections=10,
        capacity_per_s=capacity if known else None,
        sentence="p99 < 20.0 ms holds up to 540 requests per second.",
        closed_loop_per_s=1000.0,
        tried=(Tried(300.0, 1, 1), Tried(900.0, 1, 0)),
        excluded_trials=0,
        runs=("a", "b"),
        limit_ns=20_000_000,
        stages=STAGES,
    )


def charts(of: CapacityResult) -> dict[str, Chart]:
    return {block.id: block for block in section(of).blocks if isinstance(block, Chart)}


def test_stages_show_trials_and_the_interval_so_far() -> None:
    chart = charts(result())["capacity-stages"]
    so_far, met, missed = chart.figure["data"]
    assert so_far["y"] == [520.0, 540.0]
    assert so_far["error_y"]["array"] == [380.0, 50.0]
    assert (met["x"], met["y"]) == ([0.12, 1.12], [300.0, 500.0])
    assert (missed["x"], missed["y"]) == ([0.12, 1.12], [900.0, 600.0])
    assert chart.table.rows[1] == ("2", "500 /s", "600 /s", "540 /s [500 /s, 590 /s]")


def test_latencies_stand_beside_the_limit() -> None:
    chart = charts(result())["capacity-latency"]
    met, missed, limit = chart.figure["data"]
    assert (met["y"], missed["y"], limit["y"]) == ([4e6, 9e6], [7e7], [2e7, 2e7])
    assert "1 trial" in chart.caption
    assert [shape["x0"] for shape in chart.figure["layout"]["shapes"]] == [540.0]


@pytest.mark.parametrize("known", [True, False])
def test_it_is_a_page_and_a_text(known: bool) -> None:
    built = section(result(known))
    assert "540 requests" in html_output.render("Capacity", "", [built])
    assert "540 requests" in terminal_output.render("Capacity", [built], colour=False, width=80)
