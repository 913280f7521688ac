"""The saving by selection: closed forms to the cent, intervals, simulated fleets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.features.census.test_result import fingerprint, run_of

from nephoscope.core.model import Estimate
from nephoscope.features.cost import saving
from nephoscope.features.cost.mix import Mix, MixModel
from nephoscope.features.cost.saving import Job

from .made import EXAMPLE, JOB, SPEEDS, document, refused

RATES = 1e-4
"""Tolerance of closed forms."""


def form(result: dict[str, Any], number: int) -> tuple[float, float, float]:
    one = result["forms"][number]
    keys = ("saving", "saving_ratio", "break_even_h")
    return tuple(one[key]["value"] for key in keys)  # type: ignore[return-value]


def test_the_example_of_the_study_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    result = document(capsys, "cost", "saving", *EXAMPLE, "--rest", "normalise")
    assert form(result, 0) == pytest.approx((40_657.04, 0.1604, 17.4074), rel=5e-4)
    assert result["forms"][0]["saving"]["value"] == pytest.approx(40_657.04, abs=0.005)
    assert form(result, 1) == pytest.approx((38_123, 0.1519, 18.3768), rel=5e-4)
    assert result["forms"][2]["saving"]["value"] == pytest.approx(38_170.23, abs=0.005)
    assert form(result, 2) == pytest.approx((38_170.23, 0.1521, 7.5575), rel=5e-4)
    assert result["forms"][2]["search_cost"]["value"] == pytest.approx(32.96, abs=0.005)
    # E(1/X) is dearer than 1/E(X), by Jensen.
    assert result["equal_parts_factor"]["value"] == pytest.approx(0.86318, rel=RATES)
    assert 1 / result["mean_speed"]["value"] == pytest.approx(0.84255, rel=RATES)
    changes = " ".join(result["explanation"])
    assert "40,657.04" in changes
    assert "38,123" in changes
    assert "38,170.23" in changes


def test_a_trial_of_two_minutes_that_is_billed_by_the_second(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--price", "0.34", "--instances", "100", "--hours", "8760", "--trial", "2min")
    census = ("--study", "zhuang-2012", "--type", "m1.large", *SPEEDS)
    result = document(capsys, "cost", "saving", *census, *words, "--rest", "normalise")
    assert result["forms"][2]["saving"]["value"] == pytest.approx(38_202.09, abs=0.005)
    assert form(result, 2)[2] == pytest.approx(0.2519, rel=2e-4)


def test_the_interval_of_the_published_formula_with_all_models(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = document(capsys, "cost", "saving", *EXAMPLE, "--rest", "1")
    first = result["forms"][0]
    hours, saved = first["break_even_h"], first["saving"]
    assert (hours["low"], hours["high"]) == pytest.approx((17.8, 20.0), rel=0.02)
    assert (saved["low"], saved["high"]) == pytest.approx((31_300, 46_500), rel=0.02)
    assert hours["n"] == 100


def test_speeds_of_table_5_1_by_their_mean(capsys: pytest.CaptureFixture[str]) -> None:
    mix = ("--mix", "E5430=17%:1.1616667", "--mix", "E5507=40%:1", "--mix", "E5645=42%:1.3066667")
    result = document(capsys, "cost", "saving", *mix, *JOB, "--rest", "normalise")
    saved, ratio, hours = form(result, 0)
    assert saved == pytest.approx(31_811, rel=RATES)
    # Both are known to the digits that are printed.
    assert hours == pytest.approx(22.24, abs=0.005)
    assert ratio == pytest.approx(0.122, abs=0.0005)


def test_optimal_stopping_and_sets_of_kept_models(capsys: pytest.CaptureFixture[str]) -> None:
    mix = ("--mix", "a=17:1.1", "--mix", "b=40:1", "--mix", "c=42:1.4")
    job = ("--price", "1", "--instances", "1", "--hours", "20", "--trial", "1h")
    result = document(capsys, "cost", "saving", *mix, *job)
    limits = {one["model"]: one["rejected_above_h"] for one in result["stopping"]}
    assert limits["b"] == pytest.approx(7.3087, rel=RATES)
    assert limits["a"] == pytest.approx(12.1, rel=RATES)
    assert limits["c"] is None
    costs = [one["cost"] for one in result["kept_models"]]
    assert costs == pytest.approx([17.2635, 16.0863, 15.6429], rel=RATES)


def test_the_figure_5_1() -> None:
    surface = saving.surface()
    row = surface.p.index(0.1)
    assert surface.saving[row][surface.x.index(1.5)] == pytest.approx(0.30)
    assert surface.saving[row][surface.x.index(10.0)] == pytest.approx(0.81)
    assert surface.saving[surface.p.index(0.5)][surface.x.index(1.5)] == pytest.approx(1 / 6)


def test_simulated_fleets_cost_what_the_closed_form_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (*EXAMPLE, "--rest", "normalise", "--fleets", "100000")
    result = document(capsys, "cost", "saving", *words)
    by_strategy = {one["strategy"]: one for one in result["fleets"]}
    simulated = by_strategy["trial_and_failure"]
    corrected = result["forms"][2]["saving"]["value"]
    baseline = 100 * 8760 * 0.34 / result["mean_speed"]["value"]
    # Of 100,000 fleets the mean is known to 0.005 %; 72 instances stand for 71.4.
    assert simulated["cost"] == pytest.approx(baseline - corrected, rel=0.001)
    assert simulated["fleets"] == 100_000
    assert simulated["low_ratio"] < simulated["saving_ratio"] < simulated["high_ratio"]


def mix_of(counts: list[int], speeds: list[Estimate]) -> Mix:
    total = sum(counts)
    models = (
        MixModel(f"m{i}", count / total, count, speed)
        for i, (count, speed) in enumerate(zip(counts, speeds, strict=True))
    )
    return Mix(tuple(models), total, "")


@pytest.mark.slow
def test_the_interval_of_the_saving_covers_the_truth() -> None:
    share, speed = np.array([0.2, 0.35, 0.45]), np.array([1.0, 1.15, 1.4])
    error, job = 0.02, Job(100, 1000.0, 0.34, 1.0)
    is_kept = np.array([0.0, 0.0, 1.0])
    truth = float(saving.corrected(share, speed, is_kept, job).saving)
    rng = np.random.default_rng(5)
    covered, replications = 0, 2000
    for _ in range(replications):
        counts = rng.multinomial(100, share)
        measured = speed * np.exp(rng.standard_normal(3) * error * np.array([0, 1, 1]))
        width = np.exp(1.959964 * error)
        estimates = [
            Estimate(
                x, None if i == 0 else x / width, None if i == 0 else x * width, 0.95, 9, "", ""
            )
            for i, x in enumerate(map(float, measured))
        ]
        mix = mix_of(list(map(int, counts)), estimates)
        found = saving.analyse(mix, job, keep=["m2"], draws=2000).forms[2].saving
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    assert 0.93 <= covered / replications <= 0.97


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--mix", "a=40%:1", "--mix", "b=42%:1.4"), "sum to 82 %, not to 100 %"),
        (("--mix", "a=60%:1", "--mix", "b=42%:1.4", "--rest", "1"), "sum to 102 %"),
        (("--mix", "a=40:-1", "--mix", "b=42:1.4"), "not a speed above 0"),
        (("--mix", "a=40:0", "--mix", "b=42:1.4"), "not a speed above 0"),
        (("--mix", "a=40:nan", "--mix", "b=42:1.4"), "not a speed above 0"),
        (("--mix", "a=40:1", "--mix", "a=42:1.4"), "for each model once"),
        (("--mix", "a=40:1", "--mix", "b=42%:1.4"), "percentages and numbers of machines"),
        (("--mix", "a=0:1", "--mix", "b=42:1.4"), "not a number of machines"),
        (("--mix", "a=0%:1", "--mix", "b=100%:1.4"), "the share of a is 0"),
        (("--mix", "a=40:1", "--mix", "b=42:1.4", "--keep", "c"), "no model 'c'"),
        (("--mix", "a=40:1", "--mix", "b=42:1.4", "--rest", "-2"), "--rest"),
        (("--study", "zhuang-2012"), "instance types"),
        (
            ("--study", "zhuang-2012", "--type", "m1.large"),
            "Select one with --benchmark",
        ),
        (("--study", "zhuang-2012", "--type", "m1.large", *SPEEDS), "sum to 99 %"),
        (("--study", "zhuang-2012", "--type", "m1.large", "--speed", "x=1"), "no model 'x'"),
        (
            ("--study", "zhuang-2012", "--type", "m1.large", "--speed", "x"),
            "Use, for example, --speed E5430=1.1.",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    words: tuple[str, ...], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert part in refused(capsys, "cost", "saving", *words, "--price", "1")


def test_a_price_is_needed_and_only_one(capsys: pytest.CaptureFixture[str]) -> None:
    mix = ("--mix", "a=40:1", "--mix", "b=42:1.4")
    assert "needs a price" in refused(capsys, "cost", "saving", *mix)
    both = ("--price", "1", "--offer", "aws/m1.large")
    assert "needs a price" in refused(capsys, "cost", "saving", *mix, *both)
    assert "'aws/m1.large'" in refused(capsys, "cost", "saving", *mix, "--offer", "aws/m1.larg")


def test_equal_speeds_save_nothing_and_never_pay(capsys: pytest.CaptureFixture[str]) -> None:
    mix = ("--mix", "a=40:1", "--mix", "b=60:1", "--keep", "a")
    result = document(capsys, "cost", "saving", *mix, "--price", "1")
    assert result["forms"][2]["break_even_h"] is None
    assert result["forms"][2]["saving"]["value"] < 0


def test_a_page_has_the_surface(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "saving.md"
    document(capsys, "cost", "saving", *EXAMPLE, "--rest", "normalise", "-o", page)
    assert "share of fast" in page.read_text()


def test_the_saving_of_the_machines_in_the_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    machines = {f"m{i}": fingerprint("slow" if i < 6 else "fast", f"h{i}") for i in range(10)}
    run_of(store, machines, {name: 2e6 if int(name[1:]) < 6 else 1e6 for name in machines})
    result = document(capsys, "cost", "saving", "--price", "1", "--store", store)
    assert result["selected_models"] == ["fast"]
    counts = {one["model"]: one["machines"] for one in result["mix"]}
    assert counts == {"slow": 6, "fast": 4}
    # E is 1.4, so that in a long job 1 - 1.4/2 is saved.
    assert result["mean_speed"]["value"] == pytest.approx(1.4, rel=1e-3)
    assert result["forms"][2]["saving_ratio"]["value"] == pytest.approx(0.3, abs=0.001)
    assert "the mix is known from 10 machines" in " ".join(result["notes"]).lower()
