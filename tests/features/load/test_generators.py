"""Generators that share a load: merged quantiles of planted latencies, counts that add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.results.made import make_run

from nephoscope.core.documents import to_json
from nephoscope.core.errors import PlanError, UsageError
from nephoscope.core.model import Sample, Setting, TrialKey, TrialRecord, TrialStatus
from nephoscope.core.shared_load import STARTED, UNTIL_FAILURE
from nephoscope.features.load import section, sentences
from nephoscope.features.load.generators import GeneratorTrial, SharedLoadCounts, shared_counts
from nephoscope.features.load.options import generator_hosts
from nephoscope.features.load.plan import plan_of
from nephoscope.features.load.result import LoadAnalysis
from nephoscope.measure.targets.kinds import parse
from nephoscope.report.blocks import Heading, Sentence
from nephoscope.results import analyse_run
from nephoscope.store import StoredRun, query

PLAN = """version: 1
name: web
targets: [{name: a, kind: local}, {name: b, kind: local}]
benchmarks:
  - benchmark: http.load
    on: [a, b]
    together: true
    params:
      {url: "http://127.0.0.1/", arrivals: constant, rate_per_s: 1100, duration_ns: 1s,
       warmup_ns: 0, generators: 2, connections: 10}
repeat: {min: 6, max: 6}
"""
FAST, SLOW = 10e6, 500e6
COUNTS = {"a": (95, 5), "b": (995, 5)}
"""Requests of each trial at FAST and SLOW. The p99 of a is SLOW, of b FAST: 255 ms on average. Of
the union it is FAST."""


def bimodal(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    fast, slow = COUNTS[target]
    refused = {"kind": "refused"}
    return [
        Sample("requests_per_s", fast + slow - 1),
        Sample("offered_per_s", fast + slow),
        Sample("latency_ns", FAST, fast),
        Sample("latency_ns", SLOW, slow),
        Sample("due_count", fast + slow + 1),
        Sample("sent_count", fast + slow + 1),
        Sample("completed_count", fast + slow),
        Sample("errors_count", 1, factors=refused),
        Sample("errors_count", 1, factors={"kind": "any"}),
        Sample("error_ratio", 1 / (fast + slow + 1)),
        Sample("generator_busy_ratio", 0.1 if target == "a" else 0.97),
        Sample("late_sends_ratio", 0.0),
        Sample("pace_ratio", 1.0),
        Sample("generator_cpus", 0.25),
    ]


def made(path: Path, **more: Any) -> StoredRun:
    return make_run(path, PLAN, bimodal, rounds=6, **more)


def test_percentiles_are_those_of_all_requests(tmp_path: Path) -> None:
    result = analyse_run.build(made(tmp_path))
    lines = {(line.metric, line.target): line.estimate for line in result.metrics}
    assert {target for _, target in lines} == {"2 generators"}
    whole = "2 generators"
    # 10 of 1,100 requests are slow: the 99th percentile is a fast one, the 99.9th a slow one.
    assert lines["latency_p99_ns", whole].value == FAST
    assert lines["latency_p999_ns", whole].value == SLOW
    assert lines["requests_per_s", whole].value == 99 + 999
    assert lines["generator_cpus", whole].value == 0.5
    assert lines["generator_busy_ratio", whole].value == 0.97
    assert lines["error_ratio", whole].value == pytest.approx(2 / 1102)
    assert lines["requests_per_s", whole].n == 6
    key = ("http.load", "latency_ns", whole, "{}")
    assert result.histograms[key] == ([FAST, SLOW], [6 * 1090, 6 * 10])


def test_readers_of_shares_of_a_run_see_each_merged_trial_once(tmp_path: Path) -> None:
    run = made(tmp_path)
    whole = query.histograms(run)
    for parts in (2, 3, 5):
        shares = [query.histograms(run, share=(part, parts)) for part in range(parts)]
        assert sum(map(len, shares)) == len(whole) == 6
    only = query.trial_medians(run, lambda _, metric: metric == "error_ratio")
    assert [row.metric for row in only] == ["error_ratio"] * 6
    assert only[0].value == pytest.approx(2 / 1102)


def test_a_round_in_which_one_generator_does_not_count_is_left_out(tmp_path: Path) -> None:
    def late(number: int, target: str) -> str:
        return "late_sends" if (number, target) == (3, "b") else ""

    run = made(tmp_path, cause_of=late)
    result = analyse_run.build(run)
    assert {line.estimate.n for line in result.metrics if line.metric == "requests_per_s"} == {5}
    load = result.part(LoadAnalysis)
    assert load is not None
    (line,) = load.lines
    assert (line.target, line.trials, line.due_count) == ("2 generators", 5, 5 * 1102)
    (shared,) = load.shared
    assert (shared.trials, shared.excluded_trials) == (6, 1)
    # Counted over all trials, because the server saw them.
    assert shared.completed_count == 6 * 1100


def test_the_report_has_each_generator_beside_the_whole(tmp_path: Path) -> None:
    result = analyse_run.build(made(tmp_path))
    built = section.build(result)
    assert built is not None
    assert "Generators" in [block.text for block in built.blocks if isinstance(block, Heading)]
    text = " ".join(block.text for block in built.blocks if isinstance(block, Sentence))
    # The schedule of 1,100 requests per second has 1,100 in a second, and 1,102 were due.
    assert "The counts do not add up" in text
    (shared,) = result.part(LoadAnalysis).shared  # type: ignore[union-attr]
    a, b = shared.generators
    assert (a.latency_p99_ns, b.latency_p99_ns) == (SLOW, FAST)
    limits = " ".join(sentences.limits(shared))
    assert "b used 97 % of a CPU" in limits
    assert "a used" not in limits
    document = to_json(shared)
    assert document["is_conserved"] is False
    assert document["generators"][0]["name"] == "a"


DEFAULTS = {
    "arrivals": "closed",
    "duration_ns": 1_000_000_000,
    "warmup_ns": 0,
    "step_rates_per_s": [],
    "ramp_end_per_s": 0.0,
}


def trial(
    target: str,
    values: dict[str, float] | None,
    *,
    number: int = 1,
    params: dict[str, Any] | None = None,
    documents: dict[str, Any] | None = None,
    phase: str = "measure",
) -> GeneratorTrial:
    """A trial of a generator; one without values failed."""
    known = {"arrivals": "constant", "rate_per_s": 7.0, **(params or {})}
    record = TrialRecord(
        key=TrialKey(number, 0, target),
        benchmark="http.load",
        params=known,
        factors={},
        status=TrialStatus.VALID if values else TrialStatus.FAILED,
        reasons=() if values else ("the probe was ended by SIGKILL.",),
        position=number,
        started_at=0.0,
        elapsed_ns=0,
        counters={},
        documents=documents or {},
        timeline={phase: (0, 1)},
    )
    latency = ([1e6], [3]) if values else ([], [])
    return GeneratorTrial(record, values or {}, Counter(), 0, latency)


def counted(*trials: GeneratorTrial) -> SharedLoadCounts:
    return shared_counts("2 generators", ("a", "b"), trials, DEFAULTS)


def test_the_part_of_a_dead_generator_is_accounted_for() -> None:
    alive = {"due_count": 4, "sent_count": 4, "completed_count": 4}
    reported = {UNTIL_FAILURE: {"completed_count": 1, "errors_count": 1, "at_ns": 5}}
    whole = counted(trial("a", alive), trial("b", None, documents=reported))
    a, b = whole.generators
    # Seven requests are due: a sends the first, third, fifth and seventh of them, b three.
    assert (a.due_count, b.due_count, whole.scheduled_count) == (4, 3, 7)
    assert (b.completed_count, b.failed_count, b.lost_count) == (1, 1, 1)
    assert whole.is_conserved
    assert sentences.conservation(whole) == (
        "7 requests due on 2 generators = 5 answered + 1 failed + 1 lost, as many as the schedule "
        "has."
    )
    (sentence,) = sentences.limits(whole)
    assert "b failed in 1 trial of 1, and 1 requests with it: the probe was ended" in sentence


def test_what_a_random_schedule_loses_is_estimated_and_a_closed_loop_unknown() -> None:
    alive = {"due_count": 40, "sent_count": 40, "completed_count": 40}
    poisson = {"arrivals": "poisson"}
    whole = counted(trial("a", alive, params=poisson), trial("b", None, params=poisson))
    assert (whole.lost_count, whole.is_lost_estimated, whole.is_conserved) == (40, True, True)
    assert "estimated from the other generators" in sentences.conservation(whole)
    closed = {"arrivals": "closed"}
    whole = counted(trial("a", alive, params=closed), trial("b", None, params=closed))
    assert (whole.lost_count, whole.is_conserved) == (None, None)
    assert "an unknown number" in sentences.conservation(whole)


def test_a_trial_that_never_began_has_sent_nothing() -> None:
    whole = counted(
        *(trial(name, None, phase="start") for name in "ab"),
        *(
            trial(name, {"due_count": due, "completed_count": due}, number=2)
            for name, due in (("a", 4), ("b", 3))
        ),
    )
    assert (whole.due_count, whole.lost_count, whole.scheduled_count) == (7, 0, 7)
    assert whole.is_conserved
    assert whole.excluded_trials == 1


def test_a_late_start_and_a_skewed_clock_are_stated() -> None:
    alive = {"due_count": 4, "completed_count": 4}
    starts = {STARTED: {"late_ns": 3_000_000, "clock_offset_ns": -25_000_000}}
    whole = counted(
        trial("a", alive, documents={STARTED: {"late_ns": 0, "clock_offset_ns": 10}}),
        trial("b", {"due_count": 3, "completed_count": 3}, documents=starts),
    )
    assert sentences.starts(whole) == "They began within 3.00 ms of each other."
    clock, late = sentences.limits(whole)
    assert "The clock of b appeared 25.0 ms behind that of this machine" in clock
    assert "b began up to 3.00 ms after the first generator" in late


def test_hosts_of_generators() -> None:
    names = [host.name for host in generator_hosts("3", "local", 10)]
    assert names == ["local-1", "local-2", "local-3"]
    hosts = generator_hosts("local, ssh:a,ssh:b,local", "local", 10)
    assert [host.name for host in hosts] == ["local-1", "a", "b", "local-2"]
    assert [host.kind for host in hosts] == ["local", "ssh", "ssh", "local"]
    assert [host.name for host in generator_hosts("", "local", 10)] == ["local"]
    plan = plan_of({"url": "u", "timeout_ns": 10**9}, hosts, trials=2, trial_s=1.0)
    (entry,) = plan.benchmarks
    assert entry.together
    assert entry.params["generators"] == 4
    alone = plan_of({"url": "u", "timeout_ns": 10**9}, [parse("local")], trials=2, trial_s=1.0)
    assert not alone.benchmarks[0].together
    assert "generators" not in alone.benchmarks[0].params


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("0", {}, "0 generators are out of range"),
        ("999999999999", {}, "out of range"),
        ("11", {}, "11 generators cannot share 10 connections"),
        ("2", {"target": "ssh:a"}, "--target and --generators exclude each other"),
        ("nonsense:x", {}, "is no target"),
    ],
)
def test_refusals_of_hosts(text: str, more: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        generator_hosts(text, **{"target": "local", "connections": 10, **more})


def test_a_plan_with_another_number_of_generators_is_refused(tmp_path: Path) -> None:
    plan = PLAN.replace("generators: 2", "generators: 3")
    with pytest.raises(PlanError, match="3 generators are to share the load, and 2 targets"):
        make_run(tmp_path, plan, bimodal)


@pytest.mark.parametrize("rate_per_s", [0.5, 1.0, 3.0, 7.0, 333.3, 1100.0, 1e6 / 3, 49_999.9])
def test_the_length_of_a_schedule_is_that_of_its_times(rate_per_s: float) -> None:
    alive = {"due_count": 0, "completed_count": 0}
    whole = counted(trial("a", alive, params={"rate_per_s": rate_per_s, "warmup_ns": 200_000_000}))
    assert whole.scheduled_count is not None
    exact = 1.2 * rate_per_s
    # At a whole number, the request that is due at the end may be rounded into the trial.
    assert exact - 1e-6 <= whole.scheduled_count <= exact + 1
