"""A run that ends once its comparison is decided: when, and how often wrongly."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.profiles import by_profile
from tests.rates import holds_rate

from nephoscope import catalog
from nephoscope.core.errors import PlanError
from nephoscope.core.model import TrialKey, TrialRecord
from nephoscope.measure.plans import Plan
from nephoscope.measure.plans.files.load import from_text
from nephoscope.measure.runs.schedule.progress import Progress

from .test_progress import Trial, drive, plan_of, record

TARGETS = [{"name": "a", "kind": "local"}, {"name": "b", "kind": "local"}]


def of_targets(**repeat: Any) -> Plan:
    return plan_of(targets=TARGETS, repeat={"until": "decided", "max": 300, **repeat})


def sides(seed: int, ratio: float, noise: float = 0.04) -> Trial:
    """Trials of b take `ratio` times as long as those of a; so do those of later settings."""

    def trial(key: TrialKey) -> tuple[TrialRecord, float]:
        draw = random.Random(f"{seed}/{key.name}")
        slower = ratio if key.target == "b" or key.setting else 1.0
        return record(key), 100 * slower * draw.lognormvariate(0, noise)

    return trial


def ends(progress: Progress) -> list[tuple[str, int]]:
    return [(outcome.word, outcome.n) for outcome in progress.outcomes()]


def test_a_large_difference_ends_it_early_and_both_sides_at_once() -> None:
    progress, _ = drive(of_targets(), sides(1, 1.2))
    (word, n), other = ends(progress)
    assert (word, n) == other
    assert word == "decided"
    assert n < 15
    reasons = [outcome.reason for outcome in progress.outcomes()]
    assert f"null_ns: the sides differ by more than the margin after {n} rounds" in reasons


def test_equal_sides_end_it_when_they_are_equivalent() -> None:
    progress, _ = drive(of_targets(), sides(2, 1.0, 0.02))
    assert {word for word, _ in ends(progress)} == {"decided"}
    assert "are equivalent" in " ".join(outcome.reason for outcome in progress.outcomes())


def test_what_stays_open_goes_on_to_the_end() -> None:
    # A difference of the margin itself is neither more nor less than it.
    progress, _ = drive(of_targets(max=40), sides(3, 1.03, 0.05))
    assert ends(progress) == [("max_reached", 40)] * 2


def test_settings_are_compared_with_the_baseline_and_end_one_by_one() -> None:
    plan = plan_of(3, design={"baseline": {"value": 1.0}}, repeat={"until": "decided", "max": 60})

    def trial(key: TrialKey) -> tuple[TrialRecord, float]:
        draw = random.Random(key.name)
        return record(key), 100 * (1.0, 1.3, 1.03)[key.setting] * draw.lognormvariate(0, 0.05)

    progress, _ = drive(plan, trial)
    (base, at_base), (decided, early), (still_open, late) = ends(progress)
    assert (base, decided, still_open) == ("max_reached", "decided", "max_reached")
    assert early < 20 < at_base == late == 60


def test_sides_with_parameters_of_their_own_are_compared() -> None:
    """As `compare --interleave` makes them of two plans: one program of each target."""
    plan = Plan.model_validate(
        {
            "name": "p",
            "targets": TARGETS,
            "repeat": {"until": "decided", "max": 300},
            "benchmarks": [
                {"benchmark": "null", "factors": {"value": [value]}, "on": [name]}
                for name, value in (("a", 1.0), ("b", 2.0))
            ],
        }
    )
    progress, _ = drive(plan, sides(5, 1.2))
    assert {word for word, _ in ends(progress)} == {"decided"}


def test_alike_sides_are_rarely_told_apart() -> None:
    """A/A with a look after every round, where looks at a classical interval mislead."""
    right = []
    for seed in range(by_profile(quick=20, whole=300)):
        progress, _ = drive(of_targets(max=60), sides(seed, 1.0, 0.15))
        right.append(not any("differ" in outcome.reason for outcome in progress.outcomes()))
    holds_rate("alike sides", right, 0.95)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("", "`decided` needs something to decide: the plan has neither a baseline nor two"),
        (
            "design: {baseline: {value: 1.0}, around: true}\n",
            "`decided` cannot end trials that have baseline trials around them.",
        ),
    ],
)
def test_a_plan_without_a_comparison_is_refused(more: str, message: str) -> None:
    text = (
        "version: 1\nname: p\nrepeat: {until: decided}\n"
        f"{more}benchmarks:\n  - {{benchmark: 'null', factors: {{value: [1.0, 2.0]}}}}\n"
    )
    with pytest.raises(PlanError, match=message):
        from_text(text, "plan.yaml", {}, catalog.load())
