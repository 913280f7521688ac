"""Several targets as one system: sums of rates and longest times of each round."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.results.made import make_run

from nephoscope.core.model import RunResult, Sample, Setting
from nephoscope.features.clusters import section
from nephoscope.features.clusters.result import ClusterFigure, Clusters
from nephoscope.report.blocks import Table
from nephoscope.results.analyse_run import build

PLAN = """
name: cluster
targets:
  - {name: a, kind: ssh, address: 192.0.2.1}
  - {name: b, kind: ssh, address: 192.0.2.2}
benchmarks:
  - {benchmark: cpu.hash, on: [a, b], TOGETHERparams: {threads: 1}}
  - {benchmark: disk.sync, on: [a, b], TOGETHERparams: {}}
"""
RATES = {"a": 100.0, "b": 300.0}


def observe(setting: Setting, number: int, target: str) -> list[Sample]:
    """Target b is three times as fast, and odd rounds are a tenth faster on a and slower on b."""
    shift = (0.1 if number % 2 else -0.1) * (1 if target == "a" else -1)
    if setting.benchmark == "cpu.hash":
        return [Sample("hash_bytes_per_s", RATES[target] + 10 * shift)]
    return [Sample("sync_latency_ns", 1e6 * (2 if target == "a" else 1), count=100)]


def result(folder: Path, together: str) -> RunResult:
    plan = PLAN.replace("TOGETHER", together)
    return build(make_run(folder, plan, observe, rounds=8))


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> tuple[ClusterFigure, ...]:
    clusters = result(tmp_path_factory.mktemp("store"), "together: true, ").part(Clusters)
    assert clusters is not None
    return clusters.figures


def test_rates_of_a_round_are_added_before_their_interval(
    figures: tuple[ClusterFigure, ...],
) -> None:
    (rate,) = [figure for figure in figures if figure.benchmark == "cpu.hash"]
    assert rate.combination == "sum"
    # The shifts of both members cancel in every round.
    ends = (rate.system.low, rate.system.value, rate.system.high)
    assert ends == pytest.approx((400, 400, 400))
    assert rate.imbalance is not None
    assert rate.imbalance.value == pytest.approx(3, rel=0.05)
    assert rate.targets == ("a", "b")


def test_a_time_of_the_system_is_that_of_its_slowest_member(
    figures: tuple[ClusterFigure, ...],
) -> None:
    times = [figure for figure in figures if figure.benchmark == "disk.sync"]
    assert times
    for figure in times:
        assert figure.combination == "slowest"
        assert figure.system.value == pytest.approx(2e6, rel=0.01)


def test_targets_that_run_alternately_are_no_system(tmp_path: Path) -> None:
    assert result(tmp_path, "").part(Clusters) is None


def test_the_section_has_a_row_for_each_figure(tmp_path: Path) -> None:
    whole = result(tmp_path, "together: true, ")
    clusters, built = whole.part(Clusters), section.build(whole)
    assert clusters is not None
    assert built is not None
    (table,) = [block for block in built.blocks if isinstance(block, Table)]
    assert len(table.rows) == len(clusters.figures)
    assert "a and b" in str(table.rows[0])
