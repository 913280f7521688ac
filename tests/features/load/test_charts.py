"""Charts and tables of load results: knee, objectives, trials by configuration, tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.results.made import make_run

from nephoscope.core.model import RunResult, Sample, Setting
from nephoscope.features.load import charts, section
from nephoscope.report import selection
from nephoscope.report.blocks import Chart, Heading, Table
from nephoscope.results import analyse_run

SERVICE_MS = 2.0
CAPACITY_PER_S = 500.0


def run(tmp_path: Path, plan: str) -> RunResult:
    return analyse_run.build(make_run(tmp_path, plan, answers, rounds=6))


def latency_ms(rate_per_s: float) -> float:
    """Mean response time of M/D/1."""
    load = rate_per_s / CAPACITY_PER_S
    return SERVICE_MS * (1 + load / (2 * (1 - load)))


def answers(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
    """A server as M/D/1 has it; every hundredth request takes ten times as long."""
    if setting.benchmark == "ab":
        times = {"latency_mean_ns": 2.5e6, "latency_p50_ns": 2e6, "latency_max_ns": 9e6}
        return [Sample("requests_per_s", 400.0 + round_number)] + [
            Sample(name, value + round_number) for name, value in times.items()
        ]
    rate = float(setting.factors.get("rate_per_s", 100.0))
    milliseconds = latency_ms(rate) * (1 + round_number / 1000)
    return [
        Sample("requests_per_s", rate + round_number),
        Sample("sent_count", 1000),
        Sample("completed_count", 1000),
        Sample("latency_ns", milliseconds * 1e6, count=980),
        Sample("latency_ns", milliseconds * 1e7, count=20),
    ]


def plan_of(rates: Sequence[int]) -> str:
    return f"""version: 1
name: web
benchmarks:
  - benchmark: http.load
    params: {{url: "http://127.0.0.1/", arrivals: poisson}}
    factors: {{rate_per_s: {list(rates)}}}
repeat: {{min: 6, max: 6}}
"""


def tables(result: RunResult) -> list[Table]:
    built = section.build(result)
    assert built is not None
    return [block for block in built.blocks if isinstance(block, Table)]


@pytest.mark.parametrize(
    ("rates", "expected"),
    [((100, 200, 300, 400), 300), ((100, 200, 300), None), ((300, 100), None)],
)
def test_the_knee_has_the_highest_ratio_of_rate_to_latency(
    tmp_path: Path, rates: Sequence[int], expected: float | None
) -> None:
    result = run(tmp_path, plan_of(rates))
    medians = [line for line in result.metrics if line.metric == "latency_p50_ns"]
    (sweep,) = selection.sweeps(medians, "rate_per_s")
    # Rate over latency is 44, 75, 86 and 67 at 100 to 400 requests a second.
    assert charts.knee(sweep) == expected


def test_knee_and_objectives_stand_below_the_curve(tmp_path: Path) -> None:
    result = run(tmp_path, plan_of((100, 200, 300, 400, 480)))
    (row,) = next(table for table in tables(result) if "knee" in str(table.columns[1])).rows
    # p99 is ten times the latency: 22.5, 26.7, 35, 60 and 260 ms.
    assert row[1:] == ("300 /s", "–", "–", "400 /s")
    built = section.build(result)
    assert built is not None
    chart = next(block for block in built.blocks if isinstance(block, Chart))
    assert len(chart.figure["layout"]["shapes"]) == 1


def test_trials_are_drawn_by_configuration(tmp_path: Path) -> None:
    drawn = charts.by_configuration(run(tmp_path, plan_of((100, 400))))
    # The rate of an open loop is the one that was set.
    assert [chart.title for chart in drawn] == [
        "http.load: latency p99 of each trial by configuration"
    ]
    assert [len(trace["y"]) for trace in drawn[0].figure["data"]] == [6, 6]


def test_tools_that_load_one_kind_of_server_are_compared(tmp_path: Path) -> None:
    plan = plan_of((100, 400)).replace(
        "repeat:", "  - benchmark: ab\n    peer: local\n    params: {requests: 10}\nrepeat:"
    )
    result = run(tmp_path, plan)
    built = section.build(result)
    assert built is not None
    assert any(isinstance(block, Heading) and block.text == "Tools" for block in built.blocks)
    table = next(table for table in tables(result) if "loop" in str(table.columns[1]))
    closed, low, high = table.rows
    assert [row[1] for row in table.rows] == ["closed", "open", "open"]
    assert str(closed[0]).startswith("ab")
    assert closed[6] == "–"  # ab made no 99th percentile here
    mean_ms = latency_ms(100) * (0.98 + 0.2)
    assert str(low[4]).startswith(f"{mean_ms:.3g}"[:3])
    assert str(high[0]).startswith("http.load")


def test_one_tool_is_no_comparison(tmp_path: Path) -> None:
    assert not any(
        "loop" in str(table.columns[1]) for table in tables(run(tmp_path, plan_of((100, 400))))
    )
