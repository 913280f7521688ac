from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.results.made import make_run

from nephoscope.core.model import Sample, Setting
from nephoscope.features.load import section
from nephoscope.features.load.result import LoadAnalysis
from nephoscope.report.blocks import Chart, Sentence
from nephoscope.results import analyse_run

PLAN = """version: 1
name: web
benchmarks:
  - benchmark: http.load
    params: {url: "http://127.0.0.1/"}
    factors: {connections: [10, 2]}
repeat: {min: 6, max: 6}
"""


def answers(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
    """Ten connections refuse one request of 100 in every second round."""
    refused = int(setting.factors["connections"] == 10 and round_number % 2 == 0)
    errors = [Sample("errors_count", refused, factors={"kind": "refused"})] if refused else []
    return [
        Sample("requests_per_s", 1000.0 + round_number),
        Sample("sent_count", 100),
        Sample("completed_count", 100 - refused),
        Sample("errors_count", refused, factors={"kind": "any"}),
        *errors,
    ]


def test_counts_are_sums_over_the_trials_of_a_setting(tmp_path: Path) -> None:
    result = analyse_run.build(make_run(tmp_path, PLAN, answers, rounds=6))
    load = result.part(LoadAnalysis)
    assert load is not None
    assert [line.factors["connections"] for line in load.lines] == [2, 10]
    two, ten = load.lines
    assert (two.trials, two.sent_count, two.completed_count, two.errors_count) == (6, 600, 600, {})
    assert (ten.sent_count, ten.completed_count, ten.errors_count) == (600, 597, {"refused": 3})
    assert section.answer(result) == [
        "1,197 valid responses of 1,200 requests due; errors: 3 refused."
    ]


def test_errors_that_a_server_counts_beside_the_trial_are_not_the_generators(
    tmp_path: Path,
) -> None:
    def with_server(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        own = Sample("errors_count", 7, factors={"cause": "idle", "load": "server"})
        return [*answers(setting, round_number, target), own]

    load = analyse_run.build(make_run(tmp_path, PLAN, with_server, rounds=6)).part(LoadAnalysis)
    assert load is not None
    assert [line.errors_count for line in load.lines] == [{}, {"refused": 3}]


def test_what_a_run_varies_is_drawn(tmp_path: Path) -> None:
    result = analyse_run.build(make_run(tmp_path, PLAN, answers, rounds=6))
    built = section.build(result)
    assert built is not None
    titles = [block.title for block in built.blocks if isinstance(block, Chart)]
    assert titles == [
        "http.load: valid responses by connections",
        "http.load: requests of each trial by configuration",
    ]


OPEN_LOOP = """version: 1
name: web
benchmarks:
  - benchmark: http.load
    params: {url: "http://127.0.0.1/", arrivals: constant, rate_per_s: 200}
repeat: {min: 6, max: 6}
"""


def overloaded(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
    """20 of 200 requests per second are served; the others wait up to a second, unsent."""
    waits = [(5e6 * index, 1) for index in range(1, 181)]
    return [
        Sample("requests_per_s", 20.0),
        Sample("offered_per_s", 200.0),
        Sample("pace_ratio", 0.1),
        *(Sample("latency_ns", wait, count) for wait, count in [*waits, (500e6, 20)]),
        *(Sample("unanswered_ns", wait, count) for wait, count in waits),
        Sample("due_count", 200),
        Sample("sent_count", 20),
        Sample("completed_count", 20),
        Sample("errors_count", 180, factors={"kind": "unsent"}),
        Sample("errors_count", 180, factors={"kind": "any"}),
        Sample("errors_count", 1, factors={"kind": "unasked_bytes"}),
    ]


def test_overload_is_a_verdict_and_its_percentiles_are_lower_bounds(tmp_path: Path) -> None:
    result = analyse_run.build(make_run(tmp_path, OPEN_LOOP, overloaded, rounds=6))
    load = result.part(LoadAnalysis)
    assert load is not None
    (line,) = load.lines
    assert line.is_overloaded
    assert line.due_count == line.completed_count + sum(line.errors_count.values()) == 1200
    assert (line.unanswered_count, line.unasked_count) == (1080, 6)
    (verdict, counts) = section.answer(result)
    assert verdict.startswith(
        "Overloaded: served 20.0/s of 200/s offered; 1,080 of 1,200 requests due had no answer."
    )
    assert counts.startswith(
        "120 valid responses of 1,200 requests due; errors: 1,080 never sent (every connection was "
        "busy). The server sent bytes that no request asked for 6 times."
    )
    (found,) = (one for one in result.findings if one.id == "overloaded_server")
    assert found.sentence == verdict
    lines = {one.metric: one for one in result.metrics}
    assert not [metric for metric in lines if metric.startswith("unanswered")]
    for metric in ("latency_p50_ns", "latency_p90_ns"):
        assert lines[metric].estimate.censored
        assert lines[metric].estimate.high is None
        assert lines[metric].trial_values == ()
    page = section.build(result)
    assert page is not None
    words = " ".join(block.text for block in page.blocks if isinstance(block, Sentence))
    assert "Overloaded: served" in words
    assert "open triangle" in words


def test_a_server_that_keeps_up_is_not_overloaded_by_one_late_trial(tmp_path: Path) -> None:
    def late_once(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        if round_number == 3:
            return overloaded(setting, round_number, target)
        return [
            Sample("requests_per_s", 200.0),
            Sample("offered_per_s", 200.0),
            Sample("pace_ratio", 0.99),
            Sample("due_count", 200),
            Sample("completed_count", 200),
        ]

    load = analyse_run.build(make_run(tmp_path, OPEN_LOOP, late_once, rounds=6)).part(LoadAnalysis)
    assert load is not None
    assert (load.lines[0].overloaded_trials, load.lines[0].is_overloaded) == (1, False)
