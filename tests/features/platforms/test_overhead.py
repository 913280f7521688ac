"""The overhead of system calls, from times that the test sets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from tests.features.platforms.made import call_lines, line
from tests.results.made import run_data

from nephoscope.core.model import MetricResult, RunResult
from nephoscope.features.platforms import overhead, overhead_section
from nephoscope.features.platforms.records import SystemCallOverhead
from nephoscope.report.blocks import Chart

TIMES_NS = {
    "bare": {"getpid": 100.0, "fork": 60_000.0, "signal": 1_000.0},
    "uml": {"getpid": 2_500.0, "fork": 160_000.0, "signal": 21_000.0},
    "container": {"getpid": 100.0, "fork": 60_000.0, "signal": 1_000.0},
}
PLAN = {"plan": {"design": {"baseline": {"platform": "container"}}}}


def analysed(lines: Sequence[MetricResult], plan: object = None) -> SystemCallOverhead:
    found = overhead.analyse(run_data(metrics=lines, manifest=plan or {}))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_overheads_and_ratios_are_recovered() -> None:
    found = analysed(call_lines(TIMES_NS))
    assert found.reference == "bare"
    uml, container = found.platforms
    assert [call.call for call in uml.calls] == ["fork", "signal", "getpid"]
    for call in uml.calls:
        truth = TIMES_NS["uml"][call.call] - TIMES_NS["bare"][call.call]
        assert call.overhead is not None
        assert call.overhead.value == pytest.approx(truth, rel=0.1)
        assert call.overhead.low is not None
        assert call.overhead.low > 0
        assert call.overhead.n == 8
        assert call.ratio is not None
        ratio = TIMES_NS["uml"][call.call] / TIMES_NS["bare"][call.call]
        assert call.ratio.value == pytest.approx(ratio, rel=0.05)
    assert sum(call.share or 0 for call in uml.calls) == pytest.approx(1)
    assert uml.total is not None
    assert uml.total.value == pytest.approx(
        sum(call.overhead.value for call in uml.calls if call.overhead)
    )
    assert container.total is not None
    assert container.total.low is not None
    assert container.total.low < 0


def test_the_sentence_names_the_classes_that_make_the_difference() -> None:
    uml, container = analysed(call_lines(TIMES_NS)).platforms
    text = overhead_section.sentence(uml, "bare")
    assert text.startswith("uml: one operation of each class takes 12")
    assert "longer than on bare; fork 8" in text
    assert "signal" not in text, "fork alone makes more than 80 % of it"
    assert "The largest ratio that is proven is that of getpid: 2" in text
    text = overhead_section.sentence(container, "bare")
    assert "is not proven slower than on bare" in text
    assert "of the difference" not in text
    assert "largest ratio" not in text


def test_a_faster_platform_is_stated_as_faster() -> None:
    (found,) = analysed(call_lines({"bare": TIMES_NS["uml"], "qemu": TIMES_NS["bare"]})).platforms
    assert "takes less time than on bare: -1" in overhead_section.sentence(found, "bare")
    assert all(call.share is None for call in found.calls)


@pytest.mark.parametrize(
    ("names", "baseline", "reference"),
    [
        (["uml", "bare"], "uml", "bare"),
        (["uml", "qemu"], "qemu", "qemu"),
        (["uml", "qemu"], "lxc", "uml"),
        (["uml", "qemu"], None, "uml"),
    ],
)
def test_the_reference_is_bare_else_the_baseline(
    names: list[str], baseline: object, reference: str
) -> None:
    assert overhead.reference_of(names, baseline) == reference


def test_one_platform_has_no_overhead() -> None:
    assert overhead.analyse(run_data(metrics=call_lines({"bare": TIMES_NS["bare"]}))) is None
    rate = line("cpu.hash", "call_ns", "guest", {"platform": "uml", "call": "fork"}, [1.0] * 6)
    assert overhead.analyse(run_data(metrics=[rate])) is None


def test_other_factors_and_targets_are_apart_and_gaps_are_stated() -> None:
    lines = call_lines(TIMES_NS, factors={"duration_ns": 1}) + call_lines(
        {"uml": TIMES_NS["uml"]}, target="other"
    )
    found = analysed(lines, PLAN)
    assert {one.target for one in found.platforms} == {"guest"}
    assert found.platforms[0].factors == {"duration_ns": 1}
    assert found.notes == ("other: the reference platform bare has no values.",)


def test_rounds_without_the_other_side_are_left_out() -> None:
    base = line("sys.calls", "call_ns", "a", {"platform": "bare", "call": "fork"}, [10.0] * 6)
    late = line("sys.calls", "call_ns", "a", {"platform": "uml", "call": "fork"}, [30.0] * 6)
    object.__setattr__(late, "rounds", tuple(range(11, 17)))
    (found,) = analysed([base, late]).platforms
    assert found.calls[0].overhead is None
    assert found.calls[0].reason == "the two platforms have no round in common"
    assert found.total is None
    assert overhead_section.sentence(found, "bare").startswith("uml has no round in common")


def test_a_waterfall_ends_at_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    found = analysed(call_lines(TIMES_NS))
    monkeypatch.setattr(RunResult, "part", lambda self, kind: found)
    section = overhead_section.build(object.__new__(RunResult))
    assert section is not None
    charts = [block for block in section.blocks if isinstance(block, Chart)]
    assert [chart.id for chart in charts] == ["overhead-0", "overhead-1", "overhead-ratios"]
    assert len(charts[2].table.rows) == 6
    (axis,) = {chart.figure["layout"]["xaxis"]["range"][1] for chart in charts[:1]}
    bar = charts[0].figure["data"][1]
    assert bar["base"][0] + bar["x"][0] + bar["error_x"]["array"][0] <= axis
    bars = charts[0].figure["data"]
    assert len(bars) == 5
    last = bars[-1]["x"][0]
    assert last == pytest.approx(sum(TIMES_NS["uml"].values()), rel=0.1)
    assert bars[-2]["base"][0] + bars[-2]["x"][0] == pytest.approx(last)
    for before, bar in itertools.pairwise(bars[:-1]):
        assert bar["base"][0] == pytest.approx(before["base"][0] + before["x"][0])
        assert bar["error_x"]["array"][0] > 0
    assert charts[0].table.rows[0][0] == "fork"
    monkeypatch.setattr(RunResult, "part", lambda self, kind: None)
    assert overhead_section.build(object.__new__(RunResult)) is None
