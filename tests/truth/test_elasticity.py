"""The reference autoscaler in a lab: planted delays are recovered, and a planted swing is found."""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.attempts import attempt
from tests.hardware import Feature
from tests.hardware import needs as needs_of_machine
from tests.tools import needs
from trials import probe_path

from nephoscope.core.model import RunResult
from nephoscope.features.elastic.plan import ElasticRequest, MachineTimes, plan_elastic
from nephoscope.features.elastic.profiles import LoadProfile, profile_of
from nephoscope.features.elastic.records import AutoscalerSummary, Elasticity
from nephoscope.features.elastic.rule_texts import RuleLimits
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.measure import runs
from nephoscope.measure.targets.kinds import parse
from nephoscope.results import analyse_run
from nephoscope.store import Store, StoredRun

pytestmark = [
    pytest.mark.slow,
    needs("haproxy"),
    needs_of_machine(Feature.ROOT, os.geteuid() == 0),
]
MS = 1_000_000
TEXT = "p99 < 500ms"
PLANTED = MachineTimes(
    metric_interval_ns=100 * MS,
    metric_lag_ns=4000 * MS,
    decision_interval_ns=2000 * MS,
    boot_ns=4000 * MS,
    warm_up_ns=3000 * MS,
)
QUICK = MachineTimes(
    metric_interval_ns=500 * MS, decision_interval_ns=1000 * MS, boot_ns=500 * MS, warm_up_ns=0
)
REQUEST = ElasticRequest(
    profile_of("step", 20, 140, 75),
    LatencyObjective.of(TEXT),
    TEXT,
    capacity_per_s=45.0,
    limits=RuleLimits(maximum=4),
    times=PLANTED,
    rounds=1,
    connections=500,
)


def measured(request: ElasticRequest, store: Path) -> tuple[RunResult, Elasticity]:
    run = runs.execute(plan_elastic(request), Store(store))
    result = analyse_run.build(run)
    elastic = result.part(Elasticity)
    assert elastic is not None
    return result, elastic


def within(value: float, planted: float, share: float = 0.05) -> bool:
    return abs(value / planted - 1) <= share


def test_planted_delays_are_recovered_within_5_percent(tmp_path: Path) -> None:
    """A lag ends with the interval of the metric, so that half of one belongs to it."""
    numbers = itertools.count()

    def measure() -> tuple[str, bool]:
        _, elastic = measured(REQUEST, tmp_path / str(next(numbers)))
        (summary,) = elastic.autoscalers
        values = {name: estimate.value / 1e9 for name, estimate in summary.out_segments.items()}
        assert summary.decision_interval is not None
        values["interval"] = summary.decision_interval.value / 1e9
        planted = {"metric_lag": 4.05, "interval": 2.0, "boot": 4.0, "warm_up": 3.0}
        return str((values, summary.problems)), all(
            within(values[name], planted_s) for name, planted_s in planted.items()
        )

    attempt("delays of an autoscaler", measure)


def test_areas_are_those_of_the_log_and_the_planned_rates(tmp_path: Path) -> None:
    """Counted millisecond by millisecond."""
    request = replace(REQUEST, profile=profile_of("step", 20, 140, 30), times=QUICK)
    run = runs.execute(plan_elastic(request), Store(tmp_path))
    elastic = analyse_run.build(run).part(Elasticity)
    assert elastic is not None
    (trial,) = elastic.trials
    begun_ns, log = log_of(run)
    counts = [((at_ns - begun_ns) / 1e9, count) for at_ns, count in log]
    missing = spare = 0.0
    for place in range(30_000):
        at_s = (place + 0.5) / 1000
        needed = 4 if 10 <= at_s < 20 else 1  # 140/45, 20/45
        there = [count for counted_s, count in counts if counted_s <= at_s][-1]
        missing, spare = missing + max(needed - there, 0), spare + max(there - needed, 0)
    # Each change is a millisecond off at most.
    allowed = 4 * len(counts) * 0.001 / 30
    assert trial.measures.under_provisioned == pytest.approx(missing / 30_000, abs=allowed)
    assert trial.measures.over_provisioned == pytest.approx(spare / 30_000, abs=allowed)
    assert missing > 0


@contextmanager
def service(seconds: float, mean_ns: int = MS) -> Iterator[str]:
    """A service that dies after so many seconds; yields its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    params = {
        "address": "127.0.0.1",
        "port": port,
        "workers": 4,
        "service_mean_ns": mean_ns,
        "duration_ns": round(seconds * 1e9),
    }
    command = [probe_path(), "run", "http.serve", "--params", json.dumps(params)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}/service"
        finally:
            process.kill()


def following(folder: Path) -> str:
    """A command that prints 1, and 4 from 5 to 9 s after its first call, as the demand does."""
    began = folder / "began"
    return (
        f"test -e {began} || date +%s > {began}; t=$(( $(date +%s) - $(cat {began}) )); "
        "test $t -ge 5 && test $t -le 9 && echo 4 || echo 1"
    )


def observed(url: str, command: str, store: Path, **more: Any) -> AutoscalerSummary:
    request = replace(
        REQUEST,
        profile=profile_of("step", 20, 140, 12),
        url=url,
        observe=command,
        observe_interval_ns=200 * MS,
        target=parse("local"),
        **more,
    )
    (summary,) = measured(request, store)[1].autoscalers
    return summary


def test_what_is_not_elastic_is_named(tmp_path: Path) -> None:
    """A service that dies, and an autoscaler that never acts."""
    with service(10) as url:
        (problem, *_) = observed(url, following(tmp_path), tmp_path / "dies").problems
    assert re.match(r"The service died: no request was answered after [0-9]+ s\.", problem), problem
    with service(60) as url:
        (problem, *_) = observed(url, "echo 2", tmp_path / "still").problems
    assert problem == (
        "The autoscaler never changed the number of instances, while the demand went from 1 to 4."
    )


def test_a_generator_without_free_connections_is_its_own_limit(tmp_path: Path) -> None:
    """One connection, which a request takes for 20 ms: 50 of 140 requests per second."""
    with service(60, 20 * MS) as url:
        problems = observed(url, following(tmp_path), tmp_path / "one", connections=1).problems
    assert any("generator was at its limit" in problem for problem in problems), problems


def test_a_cap_that_is_reached_is_named(tmp_path: Path) -> None:
    request = replace(
        REQUEST,
        profile=profile_of("step", 20, 140, 24),
        limits=RuleLimits(maximum=2),
        times=QUICK,
    )
    result, elastic = measured(request, tmp_path)
    notes = [note for summary in elastic.autoscalers for note in summary.notes]
    assert any(note.startswith("The cap of 2 instances was reached") for note in notes), notes
    assert "autoscaler_capped" in {finding.id for finding in result.findings}


def log_of(run: StoredRun) -> tuple[int, list[tuple[int, float]]]:
    """When the generator began, and each number in rotation of the log, in ns since the epoch."""
    (record, table), *_ = [pair for pair in run.tables() if pair[0].benchmark == "http.load"]
    columns = (table.column(name).to_pylist() for name in ("metric", "value", "at_ns", "factors"))
    rows = [
        (metric, value, at_ns, json.loads(factors))
        for metric, value, at_ns, factors in zip(*columns, strict=True)
    ]
    started_ns = next(
        int(value)
        for metric, value, _, factors in rows
        if metric == "started_wall_ns" and factors["load"] == "rate-40"
    )
    counts = [
        (started_ns + at_ns, value)
        for metric, value, at_ns, factors in rows
        if metric == "instances_count" and factors["state"] == "in_rotation"
    ]
    return int(record.started_at * 1e9) + record.timeline["measure"][0], sorted(counts)


def test_a_planted_oscillation_is_found_and_a_steady_rule_has_none(tmp_path: Path) -> None:
    """Steps whose bounds lie between the rates of one and of two instances swing for ever."""
    request = replace(
        REQUEST,
        profile=LoadProfile("two levels", 15.0, (20, 40, 40)),
        rule_texts=("rate=22..35", "rate=50"),
        capacity_per_s=30.0,
        times=QUICK,
    )
    result, elastic = measured(request, tmp_path)
    swings = {each.autoscaler: each.oscillating_rounds for each in elastic.autoscalers}
    assert swings == {"rate-22-35": 1, "rate-50": 0}
    assert "autoscaler_oscillates" in {finding.id for finding in result.findings}
