"""Quiet, noisy, quiet: what holds for every order of such a round, and what a plan may ask."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.core.errors import PlanError
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan, baseline_of, order_aba_round
from nephoscope.measure.plans.design.baselines import Pair
from nephoscope.measure.plans.design.order import Step
from nephoscope.measure.plans.estimate import estimate

from .factory import CATALOG

seeds = st.integers(0, 2**63 - 1)


@st.composite
def rounds(draw: st.DrawFn) -> tuple[list[Pair], dict[Pair, Pair], dict[Pair, str]]:
    """Active alternatives, the quiet one of each noisy one, what is dear to change."""
    calm = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, unique=True))
    quiet: dict[Pair, Pair] = {}
    for number in range(1, 1 + draw(st.integers(0, 8))):
        target = draw(st.sampled_from(calm))
        quiet[number, target] = (0, target)
    every = [*((0, name) for name in calm), *quiet]
    active = draw(st.lists(st.sampled_from(every), unique=True))
    blocks = {pair: draw(st.sampled_from(["", "x", "y"])) for pair in every}
    return active, quiet, blocks


def pairs_of(steps: list[Step]) -> list[Pair]:
    return [step.pair for step in steps]


@settings(deadline=None)
@given(seeds, st.integers(1, 10_000), rounds())
def test_every_noisy_trial_stands_between_two_quiet_ones_of_its_own(
    seed: int, number: int, drawn: tuple[list[Pair], dict[Pair, Pair], dict[Pair, str]]
) -> None:
    active, quiet, blocks = drawn
    steps = order_aba_round(seed, number, active, quiet, blocks)
    # Each alternative is there, each noisy one once, and nothing twice as the same turn.
    assert set(pairs_of(steps)) == set(active)
    counts = Counter(pairs_of(steps))
    assert all(counts[pair] == 1 for pair in active if pair in quiet)
    assert len({(step.pair, step.repeat_index) for step in steps}) == len(steps)
    for at, step in enumerate(steps):
        calm = quiet.get(step.pair)
        if calm not in active:
            assert step.baseline is None
            continue
        assert step.baseline == calm
        assert (steps[at - 1].pair, steps[at - 1].repeat_index) == (calm, step.before)
        assert (steps[at + 1].pair, steps[at + 1].repeat_index) == (calm, step.after)
    # Turns of a quiet one count from 0 in the order of execution.
    for calm in set(quiet.values()) & set(active):
        turns = [step.repeat_index for step in steps if step.pair == calm]
        assert turns == list(range(len(turns)))


@settings(deadline=None)
@given(seeds, st.integers(1, 10_000), rounds())
def test_a_victims_trials_and_what_is_dear_to_change_stay_together(
    seed: int, number: int, drawn: tuple[list[Pair], dict[Pair, Pair], dict[Pair, str]]
) -> None:
    active, quiet, blocks = drawn
    steps = order_aba_round(seed, number, active, quiet, blocks)
    noisy = [step for step in steps if step.baseline is not None]
    runs = [(blocks[step.pair], step.baseline) for step in noisy]
    assert _changes(runs) == len(set(runs))
    assert _changes([block for block, _ in runs]) == len({block for block, _ in runs})


def _changes(values: list[Any]) -> int:
    return sum(at == 0 or value != values[at - 1] for at, value in enumerate(values))


@settings(deadline=None)
@given(seeds, st.integers(1, 10_000), rounds(), st.randoms())
def test_the_order_is_a_function_of_seed_and_round(
    seed: int,
    number: int,
    drawn: tuple[list[Pair], dict[Pair, Pair], dict[Pair, str]],
    random: Any,
) -> None:
    active, quiet, blocks = drawn
    shuffled = random.sample(active, len(active))
    assert order_aba_round(seed, number, active, quiet, blocks) == order_aba_round(
        seed, number, shuffled, quiet, blocks
    )


def test_rounds_and_seeds_give_fresh_orders_of_noisy_ones_and_of_victims() -> None:
    quiet = {(n, name): (0, name) for name in "ab" for n in range(1, 6)}
    active = [(0, "a"), (0, "b"), *quiet]
    orders = {
        tuple(pairs_of(order_aba_round(seed, number, active, quiet, {})))
        for seed in range(10)
        for number in range(1, 11)
    }
    # 100 draws out of 2 x 120 x 120: more than two pairs that are equal has a chance under 1e-3.
    assert len(orders) >= 98
    assert {order[0] for order in orders} == {(0, "a"), (0, "b")}


def test_without_baselines_the_order_is_random_as_ever() -> None:
    active = [(n, "a") for n in range(6)]
    steps = order_aba_round(3, 1, active, {}, {})
    assert {step.repeat_index for step in steps} == {0}
    assert Counter(pairs_of(steps)) == Counter(active)


NOISY: dict[str, Any] = {
    "name": "p",
    "targets": [{"name": "v", "roles": ["victim"]}, {"name": "n", "roles": ["aggressor"]}],
    "benchmarks": [{"benchmark": "cpu.work"}],
    "backgrounds": [{"name": "burn", "benchmark": "load.work"}],
    "factors": {"resource": {"path": "backgrounds", "levels": ["none", "burn"]}},
    "design": {"baseline": {"resource": "none"}, "around": True},
    "repeat": {"min": 4, "max": 4},
    "warmup": 1,
}


def plan_of(**more: Any) -> Plan:
    return Plan.model_validate({**NOISY, **more})


def test_a_plan_says_which_alternative_is_quiet() -> None:
    found = plans.expand(plan_of(), CATALOG)
    assert baseline_of(plan_of(), found) == {(1, "v"): (0, "v")}
    assert baseline_of(plan_of(design={"baseline": {"resource": "none"}}), found) == {}


def test_the_estimate_counts_the_quiet_trials() -> None:
    plan = plan_of()
    found = estimate(plan, plans.expand(plan, CATALOG), CATALOG)
    # Warm-up: one of each. Four rounds: quiet, noisy, quiet.
    assert (found.trials_least, found.trials_most) == (2 + 4 * 3, 2 + 4 * 3)
    quiet, noisy = (found.settings[index].seconds for index in (0, 1))
    assert found.round_s == pytest.approx(2 * quiet + noisy)
    assert (found.rounds_least, found.rounds_most) == (5, 5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"design": {"around": True}}, "no baseline to return to"),
        ({"design": {"around": True, "baseline": {"target": "v"}}}, "another target"),
        ({"concurrent": True}, "no baseline while another one runs"),
    ],
)
def test_what_cannot_be_gone_around_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words) as caught:
        plans.expand(plan_of(**changes), CATALOG)
    assert caught.value.hint
