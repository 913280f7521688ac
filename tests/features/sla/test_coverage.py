"""Time without events is no data: never met, and the credit has both bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.features.sla.made import JUNE_S, agreement, month, run

from nephoscope.features.sla.coverage import coverage
from nephoscope.features.sla.events import OK, Stream
from nephoscope.features.sla.periods import NS, Period
from nephoscope.features.sla.slots import JudgementContext

Capture = pytest.CaptureFixture[str]

LOSS = "measure: loss, at_most: 1%, basis: census, credits: [{below: 99%, credit: 10%}]"


def stream(times_s: np.ndarray) -> Stream:
    times_ns = np.round(np.sort(times_s) * NS).astype(np.int64)
    return Stream(times_ns, np.full(times_ns.size, OK, dtype=np.int8))


def around(
    now_s: float, holds_s: float = 0, exclusions: tuple[tuple[int, int], ...] = ()
) -> JudgementContext:
    return JudgementContext(exclusions, round(now_s * NS), round(holds_s * NS), 0.95, "UTC")


def missing_s(times_s: np.ndarray, end_s: float, **more: float) -> float:
    period = Period("p", 0, round(end_s * NS))
    return coverage([stream(times_s)], period, around(end_s, **more)).missing_ns / NS


def test_regular_and_random_arrivals_cover_their_time() -> None:
    assert missing_s(np.arange(1000) * 60.0, 60_000) == 0
    gaps = [
        missing_s(np.random.default_rng(seed).uniform(0, 1e5, 2000), 1e5) for seed in range(200)
    ]
    assert sum(gap > 0 for gap in gaps) <= 6  # expected: 0.7 % of them


def test_a_silence_of_the_monitor_is_missing_wherever_it_is() -> None:
    regular = np.arange(1000) * 60.0
    assert missing_s(regular + 40_000, 100_000) == pytest.approx(40_000, abs=61)
    assert missing_s(regular, 100_000) == pytest.approx(40_060, abs=61)
    split = np.where(regular < 30_000, regular, regular + 40_000)
    assert missing_s(split, 100_000) == pytest.approx(40_060, abs=61)
    assert missing_s(split, 100_000, holds_s=50_000) == 0
    assert missing_s(np.zeros(0), 100_000) == 100_000


def test_excluded_time_is_not_missing() -> None:
    times = np.arange(1000) * 60.0
    split = np.where(times < 30_000, times, times + 40_000)
    excluded = ((30_000 * NS, 60_000 * NS), (50_000 * NS, 70_000 * NS))
    seen = coverage(
        [stream(split)], Period("p", 0, 100_000 * NS), around(100_000, exclusions=excluded)
    )
    assert seen.missing_ns == 0
    assert seen.elapsed_ns == 60_000 * NS


def test_half_a_month_without_events_is_undecided_and_bounds_the_credit(
    tmp_path: Path, capsys: Capture
) -> None:
    terms = agreement(tmp_path / "a.yaml", LOSS)
    file = month(tmp_path / "e.csv", (), minutes=21_600)
    (period,) = run(capsys, "verdict", terms, file, "--bill", "100")["periods"]
    (judged,) = period["objectives"]
    assert (period["verdict"], judged["missing_share"]) == (
        "undecided",
        pytest.approx(0.5, abs=1e-4),
    )
    assert (judged["share_min"], judged["share_max"]) == pytest.approx((0.5, 1.0), abs=1e-4)
    assert (period["credit"]["owed"], period["credit"]["possible"]) == ("0.00", "10.00")
    assert "50 % of the time until now has no data (longest gap: 2023-06-15T23" in judged["reason"]
    full = month(tmp_path / "full.csv", ())
    assert run(capsys, "verdict", terms, full)["periods"][0]["verdict"] == "met"
    # A failure that is proved stays one, whatever the missing half was.
    bad = month(tmp_path / "bad.csv", range(900), minutes=21_600)
    (period,) = run(capsys, "verdict", terms, bad, "--bill", "100", code=1)["periods"]
    assert (period["verdict"], period["credit"]["owed"]) == ("violated", "10.00")


def test_the_mean_response_time_of_half_a_month_is_undecided(
    tmp_path: Path, capsys: Capture
) -> None:
    terms = agreement(tmp_path / "a.yaml", "measure: response_time, mean: 300ms, maximum: 1s")
    rows = "".join(f"{JUNE_S + 600 * at},1,{100 + at % 2}\n" for at in range(2160))
    (tmp_path / "e.csv").write_text(f"time,ok,response_time_ms\n{rows}")
    (period,) = run(capsys, "verdict", terms, tmp_path / "e.csv")["periods"]
    assert period["verdict"] == "undecided"


def test_a_rolling_window_ends_now(tmp_path: Path, capsys: Capture) -> None:
    terms = agreement(tmp_path / "a.yaml", "measure: availability, target: 99.9%", "period: 28d\n")
    file = month(tmp_path / "e.csv", (), minutes=28 * 1440)
    answer = run(capsys, "verdict", terms, file, "--now", "2023-08-15")
    (period,) = answer["periods"]
    assert (period["start"], period["end"]) == ("2023-07-18T00:00:00Z", "2023-08-15T00:00:00Z")
    (judged,) = period["objectives"]
    assert (period["verdict"], judged["missing_share"], judged["share"]) == ("undecided", 1, None)
    assert judged["budget"]["used_ratio"] is None
    hint = "--now 2023-06-29T00:00:00Z judges the window that ends with it."
    assert any(hint in note for note in answer["notes"])
    (period,) = run(capsys, "verdict", terms, file, "--now", "2023-06-29")["periods"]
    assert period["verdict"] == "met"
    (period,) = run(capsys, "verdict", terms, file, "--now", "2023-07-05T12:00Z")["periods"]
    assert period["verdict"] == "undecided"
    assert period["objectives"][0]["missing_share"] == pytest.approx(6.5 / 28)


def test_later_periods_without_events_are_named(tmp_path: Path, capsys: Capture) -> None:
    terms = agreement(tmp_path / "a.yaml", "measure: availability, target: 99.9%")
    file = month(tmp_path / "e.csv", ())
    notes = run(capsys, "verdict", terms, file, "--now", "2023-08-15")["notes"]
    assert any("no verdict on 2023-07 to 2023-08, which has no events" in one for one in notes)
    notes = run(capsys, "verdict", terms, file, "--now", "2023-07-01")["notes"]
    assert not any("no verdict" in one for one in notes)


def test_a_period_in_progress_says_until_when(tmp_path: Path, capsys: Capture) -> None:
    terms = agreement(tmp_path / "a.yaml", "measure: availability, target: 99.9%")
    file = month(tmp_path / "e.csv", (), minutes=1440)
    (period,) = run(capsys, "verdict", terms, file, "--now", "2023-06-02")["periods"]
    (judged,) = period["objectives"]
    assert period["verdict"] == "undecided"
    assert judged["reason"].startswith("The period is in progress until 2023-07-01T00:00:00Z.")
    assert judged["missing_share"] == 0


def test_events_that_are_rarer_than_slots_are_named(tmp_path: Path, capsys: Capture) -> None:
    terms = agreement(tmp_path / "a.yaml", "measure: availability, target: 99.9%")
    rows = "".join(f"{JUNE_S + 300 * at},1\n" for at in range(8640))
    (tmp_path / "e.csv").write_text(f"time,ok\n{rows}")
    answer = run(capsys, "verdict", terms, tmp_path / "e.csv")
    assert answer["periods"][0]["verdict"] == "undecided"
    assert any("5min apart and the slots 1min long" in note for note in answer["notes"])
    answer = run(capsys, "verdict", terms, tmp_path / "e.csv", "--holds", "5min")
    assert answer["periods"][0]["verdict"] == "met"
