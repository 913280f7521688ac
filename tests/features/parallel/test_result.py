"""Parallel work of a stored run: the planted law, the straggler, and what the report states."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.results.made import make_run

from nephoscope.core.model import RunResult, Sample, Setting
from nephoscope.features.parallel import section
from nephoscope.features.parallel.records import ParallelWork
from nephoscope.report.blocks import Sentence, Table
from nephoscope.results.analyse_run import build
from nephoscope.stats.stragglers import harmonic_number

FIXED_NS, DELAY_NS = 2e6, 5e6
PLAN = """
name: ranks
benchmarks:
  - {benchmark: net.collective, factors: {ranks: [2, 4, 8]}}
"""


def steps(setting: Setting, number: int, target: str) -> list[Sample]:
    """A trial whose slowest rank obeys the law, and whose last rank is slowest in 9 of 10 steps."""
    ranks = int(setting.factors["ranks"])
    # Rounds differ by a part in a thousand, so that intervals have a width.
    slowest = (FIXED_NS + DELAY_NS * harmonic_number(ranks)) * (1 + 1e-3 * (number % 3 - 1))
    samples = [
        Sample("step_ns", slowest + 1e5, count=10),
        Sample("operation_ns", 1e5),
        Sample("slowest_work_ns", slowest, count=10),
        Sample("expected_slowest_ns", slowest / 0.9),
        Sample("efficiency_ratio", 1 / ranks),
    ]
    for rank in range(ranks):
        is_last = rank == ranks - 1
        factors = {"rank": rank}
        share = 0.9 if is_last else 0.1 / (ranks - 1)
        samples += [
            Sample("work_ns", slowest if is_last else 1e6, count=10, factors=factors),
            Sample("wait_ns", 1e5 if is_last else slowest, count=10, factors=factors),
            Sample("slowest_ratio", share, factors=factors),
        ]
    return samples


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    run = make_run(Path(tmp_path_factory.mktemp("store")), PLAN, steps, rounds=6)
    return build(run)


def test_the_planted_law_is_recovered(result: RunResult) -> None:
    work = result.part(ParallelWork)
    assert work is not None
    assert [line.ranks for line in work.steps] == [2, 4, 8]
    for line in work.steps:
        slowest = FIXED_NS + DELAY_NS * harmonic_number(line.ranks)
        assert line.slowest.value == pytest.approx(slowest, rel=1e-2)
        assert line.step.value == pytest.approx(slowest + 1e5, rel=1e-2)
        assert line.efficiency.value == pytest.approx(1 / line.ranks)
        assert line.independence is not None
        assert line.independence.value == pytest.approx(0.9, rel=1e-2)
    (law,) = work.laws
    assert law.fixed.value == pytest.approx(FIXED_NS, rel=0.02)
    assert law.delay.value == pytest.approx(DELAY_NS, rel=0.02)


def test_ranks_have_their_own_work_and_waiting(result: RunResult) -> None:
    work = result.part(ParallelWork)
    assert work is not None
    of_four = [line for line in work.ranks if line.ranks == 4]
    assert [line.rank for line in of_four] == [0, 1, 2, 3]
    assert of_four[0].work.value == pytest.approx(1e6)
    assert of_four[3].slowest_share.value == pytest.approx(0.9)
    assert of_four[3].wait.value < of_four[0].wait.value


def test_the_straggler_is_named(result: RunResult) -> None:
    sentences = [finding.sentence for finding in result.findings if finding.id == "straggler"]
    assert [sentence.split(" had")[0] for sentence in sentences] == [
        "Rank 1 of 2",
        "Rank 3 of 4",
        "Rank 7 of 8",
    ]


def test_the_section_states_the_law_and_both_tables(result: RunResult) -> None:
    built = section.build(result)
    assert built is not None
    (sentence,) = [block for block in built.blocks if isinstance(block, Sentence)]
    assert sentence.text.startswith("The slowest of n ranks takes 2")
    tables = [block for block in built.blocks if isinstance(block, Table)]
    assert [len(table.rows) for table in tables] == [3, 14]
