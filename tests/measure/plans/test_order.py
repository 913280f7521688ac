from __future__ import annotations

import math
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.measure.plans import nest_of, order_round, trial_seed, warmup_rounds
from nephoscope.measure.plans.model import Nest

pairs = st.lists(
    st.tuples(st.integers(0, 999), st.sampled_from(["a", "b", "host-1"])),
    max_size=40,
    unique=True,
)
seeds = st.integers(0, 2**63 - 1)


@settings(deadline=None)
@given(seeds, st.integers(-3, 10_000), pairs)
def test_each_alternative_exactly_once_a_round(
    seed: int, number: int, active: list[tuple[int, str]]
) -> None:
    order = order_round(seed, number, active)
    assert Counter(order) == Counter(active)
    assert order == order_round(seed, number, list(reversed(active)))


@settings(deadline=None)
@given(seeds, st.integers(1, 1000), pairs, st.data())
def test_who_drops_out_leaves_the_order_of_the_others(
    seed: int, number: int, active: list[tuple[int, str]], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(active), unique=True)) if active else []
    order = order_round(seed, number, active)
    assert order_round(seed, number, kept) == [pair for pair in order if pair in kept]


def test_the_order_is_the_same_on_every_machine() -> None:
    # Written down once: a change here changes what a resumed run does next.
    assert order_round(7, 1, [(0, "a"), (1, "a"), (2, "a"), (0, "b")]) == EXPECTED


EXPECTED = [(1, "a"), (2, "a"), (0, "b"), (0, "a")]


def test_rounds_and_seeds_give_fresh_orders() -> None:
    active = [(index, "a") for index in range(8)]
    orders = {tuple(order_round(seed, r, active)) for seed in range(10) for r in range(1, 11)}
    # 100 draws out of 8! = 40320: more than two pairs that are equal has a chance under 1e-3.
    assert len(orders) >= 98


def test_every_place_is_equally_likely() -> None:
    active = [(index, "a") for index in range(4)]
    rounds = 4000
    first = Counter(order_round(1, number, active)[0] for number in range(rounds))
    expected = rounds / 4
    # Five standard errors of a binomial count.
    bound = 5 * math.sqrt(rounds * 0.25 * 0.75)
    assert all(abs(first[pair] - expected) < bound for pair in active)


def test_warm_up_rounds_end_at_zero() -> None:
    assert list(warmup_rounds(0)) == []
    assert list(warmup_rounds(3)) == [-2, -1, 0]


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 6))
def test_rounds_fill_boots_and_boots_fill_instances(instance: int, boot: int, rounds: int) -> None:
    nest = Nest(instance=instance, boot=boot, rounds=rounds)
    places = [nest_of(nest, number) for number in range(1, nest.total + 1)]
    counts = Counter((place["instance"], place["boot"]) for place in places)
    assert counts == {(i, b): rounds for i in range(instance) for b in range(boot)}
    assert places == sorted(places, key=lambda place: (place["instance"], place["boot"]))


def test_every_trial_has_a_seed_of_its_own_and_always_the_same() -> None:
    keys = [
        (seed, round, *alternative)
        for seed in (0, 1, 2)
        for round in range(100)
        for alternative in ((), ("0", "local"), ("1", "local"), ("0", "far"))
    ]
    drawn = [trial_seed(*key) for key in keys]
    assert len(set(drawn)) == len(drawn)
    assert all(0 < seed < 2**63 for seed in drawn)
    assert drawn == [trial_seed(*key) for key in keys]
