"""`compare --fail-on`: a change for the worse ends with 1, a machine against itself seldom does."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, TWO_TARGETS, Sampler, make_run

from nephoscope import command_line
from nephoscope.core.model import Sample, Setting

Make = Callable[[Path, int], list[str]]

METRICS = 12
ROUNDS = 15
NOISE = 0.01
BETWEEN_RUNS = 0.02
DEPENDENCE = 0.3
"""Correlation of a value with the one before it."""


def sampler(seed: int, slower: float = 0.0, dependence: float = DEPENDENCE) -> Sampler:
    """Returns values of METRICS metrics: noise of NOISE that depends on the round before, a shock
    of each round that both targets share, and `slower` times more for the target `two`."""
    noise: dict[tuple[str, int], float] = {}

    def sample(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        shock = random.Random(f"{seed} {number}").gauss(0, NOISE)
        found = []
        for metric in range(METRICS):
            drawn = random.Random(f"{seed} {number} {target} {metric}").gauss(0, NOISE)
            before = noise.get((target, metric), drawn)
            noise[target, metric] = now = dependence * before + drawn
            time = 100 * (metric + 1) * math.exp(shock + now)
            more = 1 + slower if target == "two" else 1
            found.append(Sample("null_ns", time * more, factors={"op": f"m{metric:02}"}))
        return found

    return sample


def interleaved(store: Path, seed: int, slower: float = 0.0) -> list[str]:
    """Stores a run that measured two targets in every round; returns the words that compare it."""
    run = make_run(store, TWO_TARGETS, sampler(seed, slower), rounds=ROUNDS)
    return [run.id, "--store", str(store)]


def apart(store: Path, seed: int, slower: float = 0.0) -> list[str]:
    """Stores five earlier runs of one machine and two more; returns the words for the latter."""
    level = random.Random(f"runs {seed}")
    ids = []
    for number in range(7):
        factor = math.exp(level.gauss(0, BETWEEN_RUNS)) * (1 + slower * (number == 6))
        inner = sampler(1000 * seed + number)

        def sample(
            setting: Setting, at: int, target: str, inner: Sampler = inner, factor: float = factor
        ) -> Sequence[Sample]:
            return [
                Sample(one.metric, one.value * factor, factors=one.factors)
                for one in inner(setting, at, target)
            ]

        ids.append(make_run(store, NULL_PLAN, sample, rounds=ROUNDS).id)
    return [*ids[-2:], "--store", str(store)]


def exit_code(words: Sequence[str], *conditions: str) -> int:
    options = [word for condition in conditions for word in ("--fail-on", condition)]
    return command_line.main(["compare", *words, *options])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.mark.parametrize("make", [interleaved, apart])
def test_one_machine_twice_passes(
    make: Make, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(make(store, 1), "worse") == 0
    captured = capsys.readouterr()
    assert captured.err == "nephoscope: --fail-on worse: passed, by none of 12 metrics.\n"
    assert "change of B" in captured.out


@pytest.mark.slow
@pytest.mark.parametrize("make", [interleaved, apart])
def test_one_machine_twice_passes_in_95_percent_of_40_runs(make: Make, tmp_path: Path) -> None:
    codes = [exit_code(make(tmp_path / str(seed), seed), "worse") for seed in range(40)]
    assert set(codes) <= {0, 1}
    assert codes.count(0) >= 38


@pytest.mark.slow
@pytest.mark.parametrize(("dependence", "margin"), [(0.0, "0.01%"), (0.3, "0.1%")])
def test_the_correction_for_many_metrics_holds_without_a_margin(
    tmp_path: Path, dependence: float, margin: str
) -> None:
    codes = []
    for seed in range(40):
        run = make_run(tmp_path, TWO_TARGETS, sampler(seed, dependence=dependence), rounds=ROUNDS)
        words = [run.id, "--store", str(tmp_path), "--margin", margin]
        codes.append(exit_code(words, "worse"))
    assert set(codes) <= {0, 1}
    assert codes.count(0) >= 38


def test_ten_percent_more_time_fails_and_the_line_names_the_metrics(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = interleaved(store, 2, slower=0.1)
    assert exit_code(words, "worse") == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(
        "nephoscope: --fail-on worse: failed, by 12 of 12 metrics: null (m00) worse (+"
    )
    assert captured.err.endswith(" and 7 more.\n")
    assert captured.out.startswith("B is slower than A in 12 of 12 results (most in ")
    assert captured.out.count("slower  15") == 12
    assert exit_code(words) == 0, "without the option a difference is no failure"


def test_ten_percent_in_one_metric_of_twelve_fails_too(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    equal, slow = sampler(3), sampler(3, slower=0.1)

    def sample(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        return [*equal(setting, number, target)[1:], slow(setting, number, target)[0]]

    run = make_run(store, TWO_TARGETS, sample, rounds=ROUNDS)
    assert exit_code([run.id, "--json"], "worse") == 1
    captured = capsys.readouterr()
    assert "by 1 of 12 metrics: null (m00) worse (" in captured.err
    assert captured.out.startswith("{")


def test_a_difference_and_an_open_question_fail_where_they_are_asked_for(store: Path) -> None:
    slower = interleaved(store, 4, slower=0.1)
    a, b = f"{slower[0]}:one", f"{slower[0]}:two"
    assert exit_code([b, a], "worse") == 0, "B is the faster one"
    assert exit_code([b, a], "different") == 1
    assert exit_code([b, a], "undecided") == 0
    assert exit_code([b, a, "--margin", "9.5%"], "undecided") == 1
    assert exit_code([b, a, "--margin", "9.5%"], "worse", "undecided") == 1


def test_a_check_that_could_not_fail_is_refused(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(store, TWO_TARGETS, sampler(5, slower=0.5), rounds=7)
    assert exit_code([run.id], "worse") == 2
    assert (
        "7 repetitions cannot show a difference among 12 metrics at 95 %. Measure at least 9"
        in (capsys.readouterr().err)
    )
    assert exit_code([run.id, "--metric", "null_ns"], "worse") == 2
    assert exit_code([run.id, "--metric", "null_ns", "--metric", "nul_ns"], "undecided") == 2
    assert "nul_ns of --metric was not compared" in capsys.readouterr().err
