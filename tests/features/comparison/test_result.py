"""Comparisons of targets, runs and numbers, on samples that the test set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests import schemas
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run

from nephoscope.core import documents
from nephoscope.core.documents import schema_of
from nephoscope.core.model import Better, Sample, Setting
from nephoscope.features.comparison import result as comparing
from nephoscope.features.comparison.history import LineHistory
from nephoscope.features.comparison.result import ComparisonRules, Comparisons
from nephoscope.results import analyse_run
from nephoscope.store import Store

RULES = ComparisonRules(margin=0.03, confidence=0.95)
A = [102, 98, 101, 97, 103, 99, 100, 104, 96, 100]  # the tutorial's before.txt


def noise(number: int) -> float:
    """-0.5 % … +0.5 % without a trend: position in a fixed shuffle of eleven."""
    return (number * 7 % 11 - 5) / 1000


def valid(told: Comparisons) -> Comparisons:
    schemas.validate(documents.versioned(told), schema_of(Comparisons, "comparison"))
    return told


def two(factor: float) -> Callable[[Setting, int, str], Sequence[Sample]]:
    """Target two is `factor` times target one; both share the round's weather of ±20 %."""

    def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        weather = 1 + 0.2 * ((number * 5 % 7) / 3 - 1)
        own = 1 + noise(number + (3 if target == "two" else 0))
        value = 100 * weather * own * (factor if target == "two" else 1.0)
        return [Sample("null_ns", value), Sample("null_per_s", value)]

    return sampler


@pytest.mark.parametrize(
    ("factor", "ns", "per_s"),
    [
        (1.1, "worse", "better"),
        (0.9, "better", "worse"),
        # 1.002 against a shared weather of 20 %: only pairs can tell, and it does not matter.
        (1.002, "different but negligible", "different but negligible"),
    ],
)
def test_two_targets_are_paired_by_round_so_shared_weather_cancels(
    tmp_path: Path, factor: float, ns: str, per_s: str
) -> None:
    result = analyse_run.build(make_run(tmp_path, TWO_TARGETS, two(factor), rounds=20))
    told = valid(comparing.of_targets(result, "one", "two", RULES))
    words = {line.metric: line.comparison.verdict.word for line in told.comparisons}
    assert words == {"null_ns": ns, "null_per_s": per_s}
    for line in told.comparisons:
        assert line.design == "paired by round"
        assert line.comparison.ratio is not None
        assert line.comparison.ratio.value == pytest.approx(factor, rel=0.005)
        assert line.comparison.p_holm is not None


def test_only_the_asked_metric_is_compared(tmp_path: Path) -> None:
    result = analyse_run.build(make_run(tmp_path, TWO_TARGETS, two(1.1)))
    rules = ComparisonRules(0.03, 0.95, frozenset({"null_per_s"}))
    told = comparing.of_targets(result, "one", "two", rules)
    assert [line.metric for line in told.comparisons] == ["null_per_s"]


def shifted(level: float) -> Callable[[Setting, int, str], Sequence[Sample]]:
    def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", level * (1 + noise(number)))]

    return sampler


def test_separate_runs_say_so_and_take_the_variance_between_runs_into_the_interval(
    tmp_path: Path,
) -> None:
    # This machine moves by ±10 % from run to run; a difference of 8 % is then no news.
    for level in (90, 110, 95, 105, 100, 92):
        make_run(tmp_path, NULL_PLAN, shifted(level))
    a = make_run(tmp_path, NULL_PLAN, shifted(100))
    b = make_run(tmp_path, NULL_PLAN, shifted(108))
    make_run(tmp_path, NULL_PLAN, shifted(1000), machine="another")
    left, right = analyse_run.build(a), analyse_run.build(b)
    ids = {a.id, b.id}
    history = (LineHistory(Store(tmp_path), a, ids), LineHistory(Store(tmp_path), b, ids))
    told = valid(comparing.of_runs(left, right, ("local", "local"), history, RULES))
    (line,) = told.comparisons
    assert "not interleaved" in told.warnings[0]
    assert line.design == "separate runs"
    assert line.comparison.verdict.word == "inconclusive"
    apart = line.comparison.ratio
    plain = comparing.of_numbers(
        left.metrics[0].trial_values,
        right.metrics[0].trial_values,
        labels=("a", "b"),
        better=Better.LOWER,
        paired=False,
        rules=RULES,
    )
    near = plain.comparisons[0].comparison
    assert near.verdict.word == "worse"
    assert apart is not None
    assert near.ratio is not None
    assert apart.low is not None
    assert near.ratio.low is not None
    assert apart.low < near.ratio.low


def test_the_history_is_of_the_same_machine_and_leaves_out_both_runs(tmp_path: Path) -> None:
    kept = make_run(tmp_path, NULL_PLAN, shifted(90))
    make_run(tmp_path, NULL_PLAN, shifted(1000), machine="another")
    make_run(tmp_path, NULL_PLAN, shifted(2000), state="running")
    a = make_run(tmp_path, NULL_PLAN, shifted(100))
    history = LineHistory(Store(tmp_path), a, {a.id})
    found = history(("null", "null_ns", "{}"), "local")
    assert len(found) == 1
    assert found[0] == pytest.approx(90, rel=0.01)
    assert kept.id != a.id


def test_a_machine_without_an_identity_has_no_history(tmp_path: Path) -> None:
    make_run(tmp_path, NULL_PLAN, shifted(90), machine="")
    a = make_run(tmp_path, NULL_PLAN, shifted(100), machine="")
    assert LineHistory(Store(tmp_path), a, {a.id})(("null", "null_ns", "{}"), "local") == []


def test_lines_on_one_side_only_are_counted(tmp_path: Path) -> None:
    def uneven(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        more = [Sample("null_per_s", 5.0)] if target == "two" else []
        return [Sample("null_ns", 100 * (1 + noise(number))), *more]

    result = analyse_run.build(make_run(tmp_path, TWO_TARGETS, uneven))
    told = comparing.of_targets(result, "one", "two", RULES)
    assert told.warnings == ("1 metric of one side only, excluded: null.",)


@pytest.mark.parametrize("paired", [True, False])
def test_plain_numbers_have_a_direction_and_no_unit(paired: bool) -> None:
    b = [value * 1.1 for value in A]
    for better, word in ((Better.LOWER, "worse"), (Better.HIGHER, "better")):
        told = valid(
            comparing.of_numbers(
                A, b, labels=("a.txt", "b.txt"), better=better, paired=paired, rules=RULES
            )
        )
        (line,) = told.comparisons
        assert line.comparison.verdict.word == word
        assert line.label == ""


def test_two_runs_of_a_model_have_no_drift_between_them(tmp_path: Path) -> None:
    """A thousand seconds apart or a year: a simulation is the same. Of machines it is not."""
    model = NULL_PLAN + "targets:\n  - {name: model, kind: sim}\n"

    def rising(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", 100 + number)]

    def higher(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", 115 + number)]

    found = {}
    for name, plan, target in (("machine", NULL_PLAN, "local"), ("model", model, "model")):
        left = analyse_run.build(make_run(tmp_path / name / "a", plan, rising))
        right = analyse_run.build(make_run(tmp_path / name / "b", plan, higher))
        alone = (lambda key, own: (), lambda key, own: ())
        found[name] = valid(comparing.of_runs(left, right, (target, target), alone, RULES))
    assert found["machine"].comparisons[0].design == comparing.SEPARATE_RUNS
    assert found["machine"].warnings
    assert found["machine"].comparisons[0].comparison.verdict.word == "inconclusive"
    (line,) = found["model"].comparisons
    assert (line.design, found["model"].warnings) == (comparing.INDEPENDENT, ())
    assert line.comparison.verdict.word == "worse"
    assert not any("depend" in one for one in line.comparison.warnings)
