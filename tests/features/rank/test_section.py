"""The page of a ranking: shared ranks, gaps, one chart an alternative, the lead."""

from __future__ import annotations

import numpy as np
import pytest
from tests.features.rank.test_result import measurement, noisy, ranking

from nephoscope.features.rank.records import Ranking
from nephoscope.features.rank.section import lead, ranks_section, section
from nephoscope.report.blocks import Chart, Items, Table


@pytest.fixture(scope="module")
def platforms() -> Ranking:
    rng = np.random.default_rng(9)
    levels = {"bare": 1.0, "container": 1.0, "qemu": 8.0}
    rows = [
        *noisy(rng, levels, "cpu.hash"),
        *noisy(rng, levels, "mem.stream", kernel="copy"),
        *noisy(rng, levels, "mem.stream", kernel="add"),
        *noisy(rng, {"bare": 1.0, "container": 1.5}, "disk.sync"),
    ]
    return ranking(rows, reasons={"qemu": "the guest did not boot."})


def test_rank_intervals_and_gaps_are_marked(platforms: Ranking) -> None:
    tables = [block for block in section(platforms).blocks if isinstance(block, Table)]
    by_metric = next(table for table in tables if table.columns[0].title == "Metric")
    rows = {row[0]: [str(cell).split()[0] for cell in row[1:]] for row in by_metric.rows}
    assert rows["cpu.hash value"] == ["1–2", "1–2", "3"]
    assert rows["mem.stream value (copy)"] == ["1–2", "1–2", "3"]
    assert rows["disk.sync value"] == ["1", "2", "–"]


def test_each_alternative_has_a_chart_and_each_gap_a_reason(platforms: Ranking) -> None:
    blocks = section(platforms).blocks
    titles = [block.title for block in blocks if isinstance(block, Chart)]
    assert titles == ["container relative to bare", "qemu relative to bare"]
    texts = [item.text for block in blocks if isinstance(block, Items) for item in block.items]
    assert "qemu has no disk.sync value: the guest did not boot." in texts


def test_ranks_alone_have_average_and_consistency(platforms: Ranking) -> None:
    (table, *_) = ranks_section(platforms).blocks
    assert isinstance(table, Table)
    memory = table.rows[2:6]
    assert [row[1] for row in memory] == [
        "mem.stream value (copy)",
        "mem.stream value (add)",
        "Average",
        "Performance consistency",
    ]
    assert memory[0][0] == "Memory"
    assert memory[2][2:] == ("1–2", "1–2", "3")


def test_the_lead_states_who_is_first_or_that_it_is_open(platforms: Ranking) -> None:
    assert lead(platforms).startswith("Rank 1 over 2 benchmarks is open between ")
    rng = np.random.default_rng(1)
    rows = [
        item
        for number in range(12)
        for item in noisy(rng, {"a": 1.0, "b": 1.5, "c": 2.0}, f"b{number}")
    ]
    assert lead(ranking(rows)).startswith(
        "a is first over 12 benchmarks: b, the next one, costs 1.5"
    )
    few = [measurement(name, "null", [value, value]) for name, value in (("a", 1.0), ("b", 2.0))]
    text = lead(ranking(few))
    assert text == (
        "Overall order of values without intervals (n = 2), by the geometric mean: a, then b."
    )
    equal = [item for name in "ab" for item in noisy(rng, {name: 1.0}, "null")]
    assert lead(ranking(equal)).startswith("No alternative can be told apart over 1 benchmark: ")
