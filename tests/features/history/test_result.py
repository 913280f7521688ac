"""The history of drawn series: gaps, annotations, baselines, what changed beside, regressions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.features.history.drawn import DAY_S, START_S, series

from nephoscope.core.model import Better, Estimate
from nephoscope.features.history.records import ConfirmingRun
from nephoscope.features.history.result import (
    HistorySettings,
    analyse,
    conclude,
    link,
    segments,
    shift_text,
)
from nephoscope.results.run_settings import CPU_MODEL
from nephoscope.stats.statistics.values import Array


def levels(*parts: tuple[int, float], seed: int = 1) -> Array:
    """Values of these levels with a noise of 1 %."""
    level = np.concatenate([np.full(count, value) for count, value in parts])
    return level * (1 + 0.01 * np.random.default_rng(seed).standard_normal(level.size))


def test_a_rise_of_a_time_is_a_regression_and_a_fall_is_none() -> None:
    up, down = levels((60, 100), (20, 120)), levels((60, 120), (20, 100))
    worse = analyse(series(up, every_s=DAY_S), HistorySettings())
    (change,) = worse.changes
    assert (change.direction, change.status) == ("worse", "suspected")
    assert change.shift.low is not None
    assert change.shift.high is not None
    assert change.shift.low <= 1.2 <= change.shift.high
    assert (change.run, change.previous_run) == ("run-0060", "run-0059")
    assert change.first_s <= START_S + 60 * DAY_S <= change.last_s
    assert worse.regression == change.sentence
    assert "from run run-0060 on (worse, suspected)" in worse.regression
    assert not analyse(series(down, every_s=DAY_S), HistorySettings()).regression
    rate = analyse(series(down, every_s=DAY_S, better=Better.HIGHER), HistorySettings())
    assert rate.changes[0].direction == "worse"
    none = analyse(series(up, every_s=DAY_S, better=Better.NONE), HistorySettings())
    assert (none.changes[0].direction, none.regression) == ("changed", "")


def test_a_regression_below_the_margin_or_undone_is_none() -> None:
    up = series(levels((60, 100), (30, 110)), every_s=DAY_S)
    assert analyse(up, HistorySettings(margin=0.05)).regression
    assert not analyse(up, HistorySettings(margin=0.2)).regression
    undone = series(levels((60, 100), (40, 110), (40, 100)), every_s=DAY_S)
    found = analyse(undone, HistorySettings())
    assert [one.direction for one in found.changes] == ["worse", "better"]
    assert not found.regression
    partly = series(levels((60, 100), (40, 120), (40, 110)), every_s=DAY_S)
    assert "run-0060" in analyse(partly, HistorySettings()).regression


def test_a_new_cpu_model_begins_a_new_baseline() -> None:
    values = levels((50, 100), (50, 150))
    changed = series(values, every_s=DAY_S, facts={50: {CPU_MODEL: "EPYC"}})
    assert segments(changed.points) == [(0, 50), (50, 100)]
    found = analyse(changed, HistorySettings())
    assert not found.changes
    (annotation,) = found.annotations
    assert annotation.resets
    assert (annotation.before, annotation.after) == ("Xeon", "EPYC")
    assert annotation.at_s == START_S + 50 * DAY_S


def test_kernel_and_steal_that_changed_beside_are_named() -> None:
    values = levels((60, 100), (30, 120))
    found = analyse(
        series(
            values,
            every_s=DAY_S,
            facts={0: {"kernel": "6.1.0"}, 60: {"kernel": "6.1.9"}},
            steal={0: 0.0, 60: 0.05},
        ),
        HistorySettings(),
    )
    assert found.changes[0].simultaneous == (
        "kernel: 6.1.0 → 6.1.9.",
        "CPU time stolen by the hypervisor rose from 0 % to 5.0 %.",
    )


def test_gaps_are_gaps_and_too_few_runs_are_stated() -> None:
    at_s = START_S + DAY_S * np.r_[np.arange(10), np.arange(20, 30)]
    found = analyse(series(np.ones(20), at_s=at_s), HistorySettings())
    (gap,) = found.gaps
    assert (gap.start_s, gap.end_s) == (at_s[9], at_s[10])
    assert found.untested == "20 runs from run-0000 on are not tested: it takes 40 runs."
    assert not found.newest_is_tested


def test_a_change_that_went_away_is_told_from_a_regression() -> None:
    undone = series(levels((60, 100), (40, 110), (40, 100)), every_s=DAY_S)
    found = analyse(undone, HistorySettings())
    assert [one.went_away for one in found.changes] == ["run-0100", ""]
    assert "until run run-0100 (worse, suspected, went away)" in found.changes[0].sentence
    assert not found.regression


def test_a_cost_that_moved_to_a_sibling_is_no_regression() -> None:
    one = series(levels((60, 100), (40, 120)), every_s=DAY_S)
    two = replace(series(levels((60, 80), (40, 60), seed=2), every_s=DAY_S), factors={"part": "b"})
    moved = conclude([analyse(each, HistorySettings()) for each in (one, two)], 0.03)
    assert not any(each.regression for each in moved)
    assert "(cost shift, suspected)" in moved[0].changes[0].sentence
    assert "(b) fell by 20" in moved[0].changes[0].cost_shift
    alone = conclude([analyse(one, HistorySettings())], 0.03)
    assert alone[0].regression
    elsewhere = replace(two, target="db")
    apart = conclude([analyse(each, HistorySettings()) for each in (one, elsewhere)], 0.03)
    assert apart[0].regression


def test_a_growth_of_the_noise_is_a_change_of_noise() -> None:
    spread = np.where(np.arange(160) < 90, 0.01, 0.04)
    values = 100 * (1 + spread * np.random.default_rng(9).standard_normal(160))
    found = analyse(series(values, every_s=DAY_S), HistorySettings())
    assert not found.changes
    (noise,) = found.noise_changes
    assert noise.ratio.low is not None
    assert noise.ratio.high is not None
    assert noise.ratio.low <= 4 <= noise.ratio.high
    assert noise.first_s <= START_S + 90 * DAY_S <= noise.last_s
    assert "the noise grew from" in noise.sentence
    assert not found.regression


def test_changes_below_the_smallest_one_are_counted_only() -> None:
    values = levels((60, 100), (40, 100.4))
    values[:] = 100 + (values - 100) / 20
    values[60:] += 0.4
    drawn = series(values, every_s=DAY_S)
    found = analyse(drawn, HistorySettings())
    assert (found.changes, found.negligible) == ((), 1)
    assert len(analyse(drawn, HistorySettings(min_change=0.001)).changes) == 1


def test_values_about_zero_change_by_a_difference() -> None:
    values = np.random.default_rng(2).normal(0, 1, 90)
    values[60:] += 10
    (change,) = analyse(series(values, every_s=DAY_S), HistorySettings()).changes
    assert not change.is_ratio
    assert change.shift.unit == "ns"
    assert change.shift.value == pytest.approx(10, abs=1.5)
    assert "ns" in shift_text(change.shift, is_ratio=False)


def test_a_refuted_change_is_no_regression() -> None:
    drawn = series(levels((60, 100), (20, 120)), every_s=DAY_S)

    def refute(own, before, behind, change):
        assert [len(before), behind[-1].run] == [60, "run-0079"]
        return [ConfirmingRun("rep", "refuted", "It is as before.", None, "", None)]

    found = analyse(drawn, HistorySettings(), refute)
    assert found.changes[0].status == "refuted"
    assert "refuted" in found.changes[0].sentence
    assert not found.regression


def test_edited_parameters_begin_a_series_that_is_linked_to_the_old_one() -> None:
    old = replace(series(np.ones(5), every_s=DAY_S), params={"digits": 1000})
    later = START_S + DAY_S * np.arange(10, 15)
    new = replace(series(np.ones(5), at_s=later), params={"digits": 2000})
    histories = link([analyse(one, HistorySettings()) for one in (new, old)])
    assert [bool(one.continues) for one in histories] == [True, False]
    assert "from digits 1000 to digits 2000" in histories[0].continues


def test_a_shift_is_read_as_a_percentage_with_its_interval() -> None:
    shift = Estimate(1.051, 1.042, 1.06, 0.95, 9, "ratio", "t")
    assert shift_text(shift, is_ratio=True) == "+5.1 % [+4.2 %, +6.0 %]"
