from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.results.made import make_run

from nephoscope import capabilities
from nephoscope.load import section
from nephoscope.load.result import Load
from nephoscope.model import Sample, Setting
from nephoscope.report.blocks import Chart

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
    result = capabilities.build(make_run(tmp_path, PLAN, answers, rounds=6))
    load = result.part(Load)
    assert load is not None
    assert [line.factors["connections"] for line in load.lines] == [2, 10]
    two, ten = load.lines
    assert (two.trials, two.sent_count, two.completed_count, two.errors_count) == (6, 600, 600, {})
    assert (ten.sent_count, ten.completed_count, ten.errors_count) == (600, 597, {"refused": 3})
    assert section.answer(result) == ["1,197 valid responses of 1,200 requests; errors: 3 refused."]


def test_errors_that_a_server_counts_beside_the_trial_are_not_the_generators(
    tmp_path: Path,
) -> None:
    def with_server(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        own = Sample("errors_count", 7, factors={"cause": "idle", "load": "server"})
        return [*answers(setting, round_number, target), own]

    load = capabilities.build(make_run(tmp_path, PLAN, with_server, rounds=6)).part(Load)
    assert load is not None
    assert [line.errors_count for line in load.lines] == [{}, {"refused": 3}]


def test_what_a_run_varies_is_drawn(tmp_path: Path) -> None:
    result = capabilities.build(make_run(tmp_path, PLAN, answers, rounds=6))
    built = section.build(result)
    assert built is not None
    titles = [block.title for block in built.blocks if isinstance(block, Chart)]
    assert titles == [
        "http.load: valid responses by connections",
        "http.load: requests of each trial by configuration",
    ]
