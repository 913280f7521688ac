"""The rule that keeps a machine, and the saving that it predicts, on machines of planted speeds."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from features.cloud.planted import PlantedSource, drawn_seconds
from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.features.cloud.picking import MachineSearch, SpeedMix, limits, predicted
from nephoscope.features.cloud.search import Searched, carry_out
from nephoscope.stats.statistics.proportions import wilson

SEARCH = MachineSearch(hours=100.0, trial_h=0.05, at_most=5, price_per_h=0.1)
TWO = SpeedMix((1.0, 1.0, 0.5, 0.5), "two models, equally frequent")


def test_the_best_is_kept_where_a_wave_gains_what_it_costs() -> None:
    # Mean 0.75: times 2/3 and 4/3. With recall a further launch costs two trials; at b between the
    # two W (b - 2/3) / 2 = 2 t, so that b = 2/3 + 4 t / W.
    best, *_, last = limits(TWO, SEARCH)
    assert best == pytest.approx(2 / 3 + 4 * 0.05 / 100)
    assert last == float("inf")
    # Of two at once, at least one is fast in 3 of 4 waves, and three machines are billed.
    pairs = replace(SEARCH, at_once=2)
    assert limits(TWO, pairs)[0] == pytest.approx(2 / 3 + 4 / 3 * 3 * 0.05 / 100)


def test_without_recall_the_limit_rises_to_the_last_launch() -> None:
    search = replace(SEARCH, recall=False, at_most=3, trial_h=1.0)
    # One left: t + E x = 1.01 of W; two left: t + E min(x, 1.01) = 0.01 + (2/3 + 1.01) / 2.
    expected = (0.01 + (2 / 3 + 1.01) / 2, 1.01, float("inf"))
    assert limits(TWO, search) == pytest.approx(expected)


def test_a_search_that_is_dearer_than_the_work_keeps_the_first_machine() -> None:
    dear = replace(SEARCH, hours=0.1, trial_h=1.0)
    assert min(limits(TWO, dear)) > max(TWO.times)
    saving = predicted(TWO, dear)
    # Its own trial of 1 h, within 1.96 times the spread of its time.
    assert saving.value == pytest.approx(-0.1 * math.exp(0.3**2 / 2), rel=0.02)
    assert saving.low == pytest.approx(-0.1 * math.exp(1.96 * 0.3), rel=0.05)
    assert saving.high == pytest.approx(-0.1 * math.exp(-1.96 * 0.3), rel=0.05)


def test_the_mean_of_the_prediction_is_the_closed_form() -> None:
    """The best of two of 100 machines, half of them fast: no rule before the last launch."""
    many = SpeedMix((1.0,) * 50 + (0.5,) * 50, "100 machines")
    search = MachineSearch(hours=100.0, trial_h=0.0, at_most=2, price_per_h=0.1)
    # x1 - xK = 2/3 where the first is slow and the second fast: 1 in 4, less the variance of p.
    share = np.random.default_rng(1).beta(50, 50, 100_000)
    assert predicted(many, search).value == pytest.approx(
        10 * 2 / 3 * float(np.mean(share * (1 - share))), abs=0.1
    )


def searched(search: MachineSearch, seed: int, machines: int = 60) -> tuple[float, float, float]:
    """The real saving of a search on planted machines, and the ends of what was predicted."""
    rng = random.Random(seed)
    mix = SpeedMix(tuple(drawn_seconds(rng) for _ in range(machines)), "a census")
    prediction = predicted(mix, search, seed=seed)
    source = PlantedSource(rng, search)
    found: Searched = asyncio.run(
        carry_out(source, search, limits(mix, search), mix.mean_s, lambda line: None)
    )
    assert found.selected is not None
    assert source.kept == [found.selected.name]
    assert not source.up
    first = found.candidates[0]
    work = search.hours * (first.seconds - found.selected.seconds) / mix.mean_s
    assert prediction.low is not None
    assert prediction.high is not None
    return search.price_per_h * (work - source.billed_h), prediction.low, prediction.high


@pytest.mark.slow
@pytest.mark.parametrize(
    "search",
    [SEARCH, replace(SEARCH, recall=False), replace(SEARCH, at_once=2)],
    ids=["best", "one at a time", "two at once"],
)
def test_the_real_saving_of_200_searches_is_inside_its_interval(
    search: MachineSearch, record_property: Callable[[str, object], None]
) -> None:
    """Coverage at 95 %; the width is held against that of somebody who knows the mix."""
    found = [searched(search, seed) for seed in range(200)]
    covered = sum(low <= saving <= high for saving, low, high in found)
    rate = wilson(covered, len(found))
    width = float(np.median([high - low for _, low, high in found]))
    rng = random.Random(0)
    known = predicted(SpeedMix(tuple(drawn_seconds(rng) for _ in range(20_000)), "all"), search)
    assert known.low is not None
    assert known.high is not None
    least_width = known.high - known.low
    record_property("covered", f"{covered} of 200, {rate.low:.3f} to {rate.high:.3f}")
    record_property("width_usd", f"{width:.2f}, of the known mix {least_width:.2f}")
    assert rate.high is not None
    assert rate.high >= 0.95
    assert width <= 1.25 * least_width


def run(source: PlantedSource, search: MachineSearch = SEARCH) -> Searched:
    return asyncio.run(carry_out(source, search, None, 1.0, lambda line: None))


def test_without_a_mix_all_are_launched_and_the_best_is_kept() -> None:
    source = PlantedSource(random.Random(3), SEARCH)
    found = run(source)
    assert found.launches == len(found.candidates) == 5
    assert found.selected is min(found.candidates, key=lambda one: one.seconds)
    assert (source.kept, source.up) == ([found.selected.name], {})


def test_a_quota_in_the_middle_keeps_the_best_so_far() -> None:
    source = PlantedSource(random.Random(3), SEARCH, fails_at=4)
    found = run(source)
    assert found.stopped == "the quota is reached."
    assert (found.launches, len(found.candidates)) == (3, 3)
    assert (len(source.kept), source.up) == (1, {})


def test_a_first_launch_that_fails_leaves_nothing() -> None:
    source = PlantedSource(random.Random(3), SEARCH, fails_at=1)
    with pytest.raises(RunFailed, match="the quota is reached"):
        run(source)
    assert (source.kept, source.up) == ([], {})


def test_money_that_is_spent_ends_the_search_and_money_that_is_too_little_begins_none() -> None:
    source = PlantedSource(random.Random(3), SEARCH)
    source.limit = "1 more would make 3 USD, more than the limit of 2."
    with pytest.raises(UsageError, match="more than the limit"):
        run(source)
    assert source.launched == 0
