"""Launch times: planted medians lie in the intervals, and what is no launch does not count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.market import launch_files, own_launches
from nephoscope.features.market.launch_analysis import analyse
from nephoscope.features.market.launch_records import LaunchTime, ProviderLaunchTimes
from nephoscope.features.market.launch_section import launch_section
from nephoscope.report import terminal_output
from nephoscope.store.market.records import PublishedLaunch


def launch(provider: str, kind: str, ready_s: float, run: str = "1") -> PublishedLaunch:
    at = {"api_start": 1e9, "machine_start": 1e9 + ready_s / 2, "user_data_start": 1e9 + ready_s}
    return PublishedLaunch(provider, kind, run, at)


def made(
    provider: str, median_s: float, types: int, rng: np.random.Generator
) -> list[PublishedLaunch]:
    """Returns two launches of each type, whose types differ by a tenth and launches by less."""
    return [
        launch(
            provider, f"t{number}", median_s * level * float(np.exp(0.02 * rng.standard_normal()))
        )
        for number in range(types)
        for level in [float(np.exp(0.1 * rng.standard_normal()))]
        for _ in range(2)
    ]


def time_of(record: ProviderLaunchTimes, provider: str, segment: str = "ready") -> LaunchTime:
    return next(t for t in record.times if (t.provider, t.segment) == (provider, segment))


def test_medians_and_verdicts_are_those_that_were_planted() -> None:
    rng = np.random.default_rng(1)
    launches = [
        *made("fast", 20, 40, rng),
        *made("slow", 40, 40, rng),
        *made("same", 40, 40, rng),
        *made("few", 10, 3, rng),
    ]
    record = analyse(launches, "ready", "made")
    for provider, truth in (("fast", 20), ("slow", 40)):
        time = time_of(record, provider)
        assert time.median.low is not None
        assert time.median.high is not None
        assert time.median.low <= truth <= time.median.high
        assert (time.types, time.launches, time.median.n) == (40, 80, 40)
    verdicts = {(each.provider, each.reference): each.verdict for each in record.comparisons}
    assert verdicts["fast", "slow"] == verdicts["fast", "same"] == "faster"
    assert next(v for pair, v in verdicts.items() if "fast" not in pair) in (
        "equivalent",
        "inconclusive",
    )
    assert time_of(record, "few").median.low is None
    assert not any("few" in pair for pair in verdicts)


def test_segments_that_cannot_be_are_left_out() -> None:
    launches = [
        launch("a", "t1", 30),
        launch("a", "t2", -5),
        launch("a", "t3", 90_000),
        PublishedLaunch("a", "t4", "1", {"api_start": 1e9}),
    ]
    time = time_of(analyse(launches, "ready", "made"), "a")
    assert (time.launches, time.median.value) == (1, 30)
    assert sorted(time.left_out.values()) == [1, 1, 1]


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Nominal 95 % over 200 samples: the binomial bound of 3 standard errors is 90 %."""
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(200):
        median = time_of(analyse(made("a", 30, 30, rng), "ready", "made"), "a").median
        assert median.low is not None
        assert median.high is not None
        hits += median.low <= 30 <= median.high
    assert hits >= 180


def test_launches_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_text(
        "vendor,type,run,api_start,user_data_start\n"
        "a,t,1,2026-01-01T00:00:00Z,2026-01-01T00:00:31Z\n"
    )
    (only,) = launch_files.read(path)
    assert only.at_s["user_data_start"] - only.at_s["api_start"] == 31
    path.write_text("vendor,type,run,api_start\na,t,1,soon\n")
    with pytest.raises(UsageError, match="'soon' is no time"):
        launch_files.read(path)


def test_own_boots_are_launches_of_a_provider_of_their_own() -> None:
    from tests.features.platforms.test_stored_boots import QEMU

    own = list(own_launches._launches("run-1", QEMU))  # type: ignore[arg-type]
    assert {each.provider for each in own} == {"own qemu"}
    record = analyse([*own, *made("cloud", 20, 12, np.random.default_rng(1))], "ready", "made")
    time = time_of(record, "own qemu")
    assert (time.median.value, time.types) == (pytest.approx(3, rel=1e-3), 6)
    assert [(each.provider, each.verdict) for each in record.comparisons] == [
        ("own qemu", "faster")
    ]


def test_medians_without_intervals_order_nobody() -> None:
    launches = [launch("a", "t1", 10), launch("b", "t1", 50)]
    page = launch_section(analyse(launches, "ready", "made"))
    text = terminal_output.render("", [page], colour=False, width=400)
    assert "the medians do not order the providers" in text
    assert "first" not in text
