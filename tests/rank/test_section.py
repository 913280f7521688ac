"""The page of a ranking: shared ranks, gaps, one chart an alternative, the lead."""

from __future__ import annotations

import numpy as np
import pytest
from tests.rank.test_result import measurement, noisy, ranking

from nephoscope.rank.records import Ranking
from nephoscope.rank.section import lead, ranks_section, section
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


def test_shared_ranks_and_gaps_are_marked(platforms: Ranking) -> None:
    tables = [block for block in section(platforms).blocks if isinstance(block, Table)]
    by_metric = next(table for table in tables if table.columns[0].title == "Metric")
    rows = {row[0]: [str(cell).split()[0] for cell in row[1:]] for row in by_metric.rows}
    assert rows["cpu.hash value"] == ["1=", "1=", "3"]
    assert rows["mem.stream value (copy)"] == ["1=", "1=", "3"]
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
    assert memory[2][2:] == ("1=", "1=", "3")


def test_the_lead_states_the_order_or_that_there_is_none(platforms: Ranking) -> None:
    assert "can be told apart" in lead(platforms)
    rng = np.random.default_rng(1)
    rows = [
        item
        for number in range(12)
        for item in noisy(rng, {"a": 1.0, "b": 1.5, "c": 2.0}, f"b{number}")
    ]
    assert lead(ranking(rows)).startswith("Overall order: a, then b, then c (Friedman p = ")
    few = [measurement(name, "null", [1.0, 2.0]) for name in "ab"]
    assert lead(ranking(few)).startswith("No overall order")
    assert "only these pairs are told apart: a and c" in lead(ranking(rows[: 4 * 3]))
