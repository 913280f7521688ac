"""Components of variance against closed forms and against variances that the test sets."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.features.experiments.nested import components
from nephoscope.stats.statistics.values import Refused

INSTANCES = ((100, 102, 98, 100), (110, 112, 108, 110), (95, 97, 93, 95))
VALUES = [float(value) for group in INSTANCES for value in group]
OF = [i for i, group in enumerate(INSTANCES) for _ in group]


def test_instances_and_rounds_by_hand() -> None:
    """Mean squares 233.333 and 2.66667 worked out by hand."""
    found = components(VALUES, OF, [0] * 12, unit="ns")
    instance, rounds = found.components
    assert (instance.level, rounds.level) == ("instance", "round")
    assert instance.mean_square == pytest.approx(233.3333, rel=1e-4)
    assert rounds.mean_square == pytest.approx(2.66667, rel=1e-4)
    assert instance.variance == pytest.approx(57.6667, rel=1e-4)
    assert instance.share == pytest.approx(0.95580, rel=1e-4)
    assert (found.mean.low, found.mean.high) == pytest.approx((82.69, 120.64), abs=0.01)
    assert (found.pooled_low, found.pooled_high) == pytest.approx((97.42, 105.91), abs=0.01)
    assert found.mean.n == 3


def test_one_level_agrees_with_the_one_way_analysis_for_unequal_groups() -> None:
    groups = [[1.0, 2.0, 4.0], [7.0, 8.0], [3.0, 3.5, 2.0, 9.0]]
    values = [value for group in groups for value in group]
    of = [i for i, group in enumerate(groups) for _ in group]
    # Searle, Casella & McCulloch 1992: n0 stands for the size where sizes differ.
    sizes, centres = np.array([3, 2, 4]), np.array([np.mean(group) for group in groups])
    between = float(np.sum(sizes * (centres - np.mean(values)) ** 2)) / 2
    within = sum(float(np.sum((np.array(g) - np.mean(g)) ** 2)) for g in groups) / 6
    variance_between = (between - within) / ((9 - float(np.sum(sizes**2)) / 9) / 2)
    instance, rounds = components(values, of, [0] * len(values), unit="ns").components
    assert instance.variance == pytest.approx(variance_between)
    assert rounds.variance == pytest.approx(within)
    # One instance with several boots is the same design with another word.
    boot, _ = components(values, [0] * len(values), of, unit="ns").components
    assert (boot.level, boot.variance) == ("boot", pytest.approx(variance_between))


def test_three_levels_of_a_balanced_design_by_hand() -> None:
    # Instances 0 and 10; boots +-1 around them; rounds +-0.5 around those.
    values, instances, boots = [], [], []
    for i, instance in enumerate((0.0, 10.0)):
        for b, boot in enumerate((-1.0, 1.0)):
            for error in (-0.5, 0.5):
                values.append(instance + boot + error)
                instances.append(i)
                boots.append(b)
    found = {one.level: one for one in components(values, instances, boots, unit="ns").components}
    assert found["instance"].mean_square == pytest.approx(200.0)  # 8 * 25 / 1
    assert found["boot"].mean_square == pytest.approx(4.0)  # 8 * 1 / 2
    assert found["round"].variance == pytest.approx(0.5)  # 8 * 0.25 / 4
    assert found["boot"].variance == pytest.approx((4.0 - 0.5) / 2)
    assert found["instance"].variance == pytest.approx((200.0 - 4.0) / 4)


def test_unequal_designs_are_estimated_without_bias() -> None:
    rng = np.random.default_rng(7)
    truth = np.array([9.0, 4.0, 1.0])
    sums = np.zeros(3)
    trials = 600
    for _ in range(trials):
        values, instances, boots = [], [], []
        for i in range(8):
            a = rng.normal(0, 3)
            for b in range(int(rng.integers(2, 5))):
                c = rng.normal(0, 2)
                for _ in range(int(rng.integers(1, 6))):
                    values.append(100 + a + c + rng.normal(0, 1))
                    instances.append(i)
                    boots.append(b)
        found = components(values, instances, boots, unit="ns").components
        sums += [one.variance for one in found]
    # The standard error of the mean of 600 estimates of 9 with 7 degrees of freedom is 0.25.
    assert np.abs(sums / trials - truth) == pytest.approx(np.zeros(3), abs=0.9)
    assert sums[1] / trials == pytest.approx(4.0, abs=0.25)
    assert sums[2] / trials == pytest.approx(1.0, abs=0.03)


def test_a_level_without_variation_is_zero_and_said() -> None:
    values = [1.0, 3.0, 1.0, 3.0, 1.0, 3.0]
    boot, rounds = components(values, [0] * 6, [0, 0, 1, 1, 2, 2], unit="ns").components
    assert (boot.variance, boot.negative, rounds.share) == (0.0, True, 1.0)


@pytest.mark.parametrize(
    ("values", "instances", "boots", "words"),
    [
        ([1.0, 2.0, 3.0], [0, 0, 0], [0, 0, 0], "Neither instances nor boots"),
        ([1.0, 2.0, 3.0], [0, 1, 2], [0, 0, 0], "No boot has two rounds"),
        ([1.0, 2.0], [0, 1], [0, 0], "needs 3"),
        ([1.0, float("inf"), 3.0], [0, 0, 1], [0, 0, 0], "finite|timed out|infinite"),
    ],
)
def test_what_cannot_be_split_is_refused(
    values: list[float], instances: list[int], boots: list[int], words: str
) -> None:
    with pytest.raises(Refused, match=words):
        components(values, instances, boots, unit="ns")
