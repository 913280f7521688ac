"""One value a boot: the median of its trials, or its merged histogram."""

from __future__ import annotations

from statistics import median

from nephoscope.core.model import Better
from nephoscope.results.lines import Group, Histograms
from nephoscope.stats.statistics.histograms import merge


def test_trials_of_a_boot_become_its_median() -> None:
    group = Group("ns", Better.LOWER, "t", [9.0, 1.0, 2.0, 7.0, 5.0], [3, 1, 2, 4, 6])
    boots = group.by_boot(3, median)
    assert dict(zip(boots.rounds, boots.values, strict=True)) == {1: 2.0, 4: 6.0}
    assert group.values == [9.0, 1.0, 2.0, 7.0, 5.0], "the single trials stay as they are"
    assert (boots.unit, boots.trial) == ("ns", "t")


def test_histograms_of_a_boot_are_merged() -> None:
    trials = [([1.0, 2.0], [3, 1]), ([2.0, 4.0], [5, 1]), ([8.0], [2])]
    group = Histograms("ns", Better.LOWER, "t", list(trials), [1, 2, 3])
    boots = group.by_boot(2, merge)
    assert boots.rounds == [1, 3]
    values, counts = boots.values[0]
    assert dict(zip(values, counts, strict=True)) == {1.0: 3, 2.0: 6, 4.0: 1}
