"""One value a boot: the median of its trials, or its merged histogram."""

from __future__ import annotations

from nephoscope.model import Better
from nephoscope.results.lines import Group, Histograms, Key, by_boot, histograms_by_boot

KEY = Key("cpu.hash", "hash_bytes_per_s", "guest", "{}")


def test_trials_of_a_boot_become_its_median() -> None:
    group = Group("ns", Better.LOWER, "t", [9.0, 1.0, 2.0, 7.0, 5.0], [3, 1, 2, 4, 6])
    boots = by_boot({KEY: group}, 3)[KEY]
    assert dict(zip(boots.rounds, boots.values, strict=True)) == {1: 2.0, 4: 6.0}
    assert group.values == [9.0, 1.0, 2.0, 7.0, 5.0], "the single trials stay as they are"
    assert (boots.unit, boots.trial) == ("ns", "t")


def test_histograms_of_a_boot_are_merged() -> None:
    trials = [([1.0, 2.0], [3, 1]), ([2.0, 4.0], [5, 1]), ([8.0], [2])]
    group = Histograms("ns", Better.LOWER, "t", list(trials), [1, 2, 3])
    boots = histograms_by_boot({KEY: group}, 2)[KEY]
    assert boots.rounds == [1, 3]
    values, counts = boots.values[0]
    assert dict(zip(values, counts, strict=True)) == {1.0: 3, 2.0: 6, 4.0: 1}
