"""What the record of a machine's noise states, from runs of which every sample is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.results.made import TWO_TARGETS, make_run

from nephoscope.core.model import RunResult, Sample, Setting
from nephoscope.features.comparison import noise
from nephoscope.features.comparison.noise_section import section
from nephoscope.measure import plans
from nephoscope.results import analyse_run
from nephoscope.stats.detectable import NeededRepetitions


def result(folder: Path, sd: float, rounds: int = 40) -> RunResult:
    """A run of two targets whose values differ by random numbers alone."""
    rng = np.random.default_rng(2)

    def samples(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", float(100 * np.exp(rng.normal(0, sd))))]

    return analyse_run.build(make_run(folder, TWO_TARGETS, samples, rounds=rounds))


def analysed(run: RunResult, repetitions: int = 10) -> noise.Noise:
    return noise.analyse(
        run, "local", difference=0.02, repetitions=repetitions, confidence=0.95, margin=0.03
    )


def test_the_first_sentence_has_the_difference_and_the_repetitions(tmp_path: Path) -> None:
    found = analysed(result(tmp_path, 0.02), repetitions=15)
    (line,) = found.results
    assert [row.n for row in line.comparisons] == [6, 10, 15, 20, 50, 100]
    assert re.fullmatch(
        r"With 15 interleaved repetitions a side, this machine decides differences of "
        r"[\d.]+ % \[[\d.]+, [\d.]+\] and more; 2 % needs \d+ \[\d+, \d+\]\.",
        found.conclusion,
    )
    assert section(found).title == found.conclusion
    assert line.rounds == 40


def test_more_noise_takes_larger_differences_and_more_repetitions(tmp_path: Path) -> None:
    needed = []
    for number, sd in enumerate((0.01, 0.04)):
        (line,) = analysed(result(tmp_path / str(number), sd)).results
        assert line.repetitions_needed is not None
        assert line.repetitions_needed.n is not None
        needed.append(line.repetitions_needed.n)
    assert needed[0] < needed[1]


def test_a_difference_out_of_reach_is_named(tmp_path: Path) -> None:
    found = analysed(result(tmp_path, 0.9))
    assert found.conclusion.endswith("2 % needs more than 1000.")
    assert "×" in found.conclusion, "differences of more than twice are factors"


@pytest.mark.parametrize(
    ("needed", "text"),
    [
        (NeededRepetitions(24, 15, 40), "24 [15, 40]"),
        (NeededRepetitions(900, 500, None), "900 [500, more than 1000]"),
        (NeededRepetitions(None, 700, None), "more than 1000"),
        (None, "an unknown number"),
    ],
)
def test_repetitions_as_text(needed: NeededRepetitions | None, text: str) -> None:
    assert noise.needed_text(needed) == text


def test_too_few_rounds_name_the_time_that_they_take(tmp_path: Path) -> None:
    run = result(tmp_path, 0.02, rounds=4)
    found = analysed(run)
    assert not found.results
    assert noise.reason_of_nothing(run, found, 10) == (
        "10 s allowed 4 rounds, and the noise takes at least 8.",
        "Use --for 30s or more, or a shorter benchmark.",
    )


def test_both_sides_of_the_plan_are_alike_and_the_time_ends_it() -> None:
    plan = noise.plan_of(plans.noise(), 27, 5)
    assert [target.name for target in plan.targets] == ["local-a", "local-b"]
    assert all(entry.on == ("local-a", "local-b") for entry in plan.benchmarks)
    assert (plan.budget_s, plan.seed, plan.repeat.max) == (27, 5, 1000)
