"""Verdicts and credits through the command line: the vectors of the method, and bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.features.sla.made import JUNE_S, agreement, month, refused, run

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("contract", "bad", "uptime", "credit", "verdict"),
    [
        ("ec2-region", 4, 0.9999074, 0.0, "met"),
        ("ec2-region", 5, 0.9998843, 0.1, "violated"),
        ("ec2-region", 432, 0.99, 0.1, "violated"),
        ("ec2-region", 433, 0.9899769, 0.3, "violated"),
        ("ec2-region", 2160, 0.95, 0.3, "violated"),
        ("ec2-region", 2161, 0.9499769, 1.0, "violated"),
        ("ec2-instance", 50, 0.9988426, 0.0, "met"),
        ("ec2-instance", 432, 0.99, 0.1, "violated"),
    ],
)
def test_tiers_of_a_month(
    contract: str,
    bad: int,
    uptime: float,
    credit: float,
    verdict: str,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    file = month(tmp_path / "e.csv", range(100, 100 + bad))
    document = run(capsys, "verdict", contract, file, "--bill", "1000.10")
    (period,) = document["periods"]
    (objective,) = period["objectives"]
    assert period["period"] == "2023-06"
    assert period["verdict"] == verdict
    assert objective["share"]["value"] == pytest.approx(uptime, abs=1e-7)
    assert (objective["bad"], objective["unknown"]) == (bad, 0)
    assert period["credit"]["owed_share"] == credit
    expected = {0.0: "0.00", 0.1: "100.01", 0.3: "300.03", 1.0: "1000.10"}
    assert period["credit"]["owed"] == expected[credit]
    assert len(objective["outages"]) == 1
    assert objective["outages"][0]["duration_s"] == 60 * bad


@pytest.mark.parametrize(
    ("bad", "uptime", "verdict"), [(52, 0.9995053, "met"), (53, 0.9994958, "violated")]
)
def test_the_agreement_of_2008(
    bad: int, uptime: float, verdict: str, tmp_path: Path, capsys: Capture
) -> None:
    times = JUNE_S + 300 * np.arange(105_120)
    ok = np.ones(times.size, dtype=int)
    ok[1000 : 1000 + bad] = 0
    file = tmp_path / "e.csv"
    file.write_text("time,ok\n" + "".join(f"{t},{o}\n" for t, o in zip(times, ok, strict=True)))
    (period,) = run(capsys, "verdict", "ec2-2008", file, "--now", "2024-05-31")["periods"]
    (objective,) = period["objectives"]
    assert objective["total"] == 105_120
    assert objective["share"]["value"] == pytest.approx(uptime, abs=1e-7)
    assert period["verdict"] == verdict
    assert period["credit"]["owed_share"] == (0.1 if verdict == "violated" else 0.0)


@pytest.mark.parametrize(
    ("good", "bound", "verdict"), [(940, 0.92615, "met"), (915, 0.89907, "undecided")]
)
def test_a_share_of_requests_has_an_exact_bound(
    good: int, bound: float, verdict: str, tmp_path: Path, capsys: Capture
) -> None:
    rows = "".join(f"{JUNE_S + 2592 * at},1,{100 if at < good else 600}\n" for at in range(1000))
    (tmp_path / "e.csv").write_text("time,ok,response_time_ms\n" + rows)
    file = agreement(tmp_path / "a.yaml", "measure: response_time, target: 90%, under: 500ms")
    (period,) = run(capsys, "verdict", file, tmp_path / "e.csv")["periods"]
    (objective,) = period["objectives"]
    assert objective["share"]["low"] == pytest.approx(bound, abs=1e-5)
    assert objective["verdict"] == verdict
    expected = {"p50": 100, "p90": 100, "p95": 600, "p99": 600, "max": 600}
    assert objective["response_ms"] == expected


def test_failed_requests_are_longer_than_any(tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(f"{JUNE_S + 25_920 * at},{int(at < 96)},{at}\n" for at in range(100))
    (tmp_path / "e.csv").write_text("time,ok,response_time_ms\n" + rows)
    file = agreement(tmp_path / "a.yaml", "measure: response_time, target: 90%, under: 50ms")
    (period,) = run(capsys, "verdict", file, tmp_path / "e.csv")["periods"]
    (objective,) = period["objectives"]
    assert objective["good"] == 50
    expected = {"p50": 49, "p90": 89, "p95": 94, "p99": None, "max": None}
    assert objective["response_ms"] == expected
    from nephoscope import command_line

    assert command_line.main(["sla", "verdict", str(file), str(tmp_path / "e.csv")]) == 1
    assert "failed" in capsys.readouterr().out


def test_burn_rates_and_budget(tmp_path: Path, capsys: Capture) -> None:
    # The last hour has 14.4 times the allowed share of 99.9 %: a page, 2 % of the budget.
    terms = agreement(tmp_path / "a.yaml", "measure: availability, target: 90%")
    file = month(tmp_path / "e.csv", range(43_200 - 12, 43_200), minutes=43_200)
    (period,) = run(capsys, "verdict", terms, file)["periods"]
    budget = period["objectives"][0]["budget"]
    assert budget["allowed"] == 4320
    assert budget["used_ratio"] == pytest.approx(12 / 4320)
    assert budget["burn_rate"] == pytest.approx(12 / 43_200 / 0.1)
    assert budget["burn_rates"]["5min"] == pytest.approx(10)
    assert budget["burn_rates"]["1h"] == pytest.approx(2)


def test_unknown_is_neither_up_nor_down(tmp_path: Path, capsys: Capture) -> None:
    file = month(tmp_path / "e.csv", range(3))
    lines = file.read_text().splitlines()
    del lines[1000:1100]
    file.write_text("\n".join(lines) + "\n")
    (period,) = run(capsys, "verdict", "ec2-region", file, "--bill", "100")["periods"]
    (objective,) = period["objectives"]
    assert (objective["verdict"], objective["unknown"]) == ("undecided", 100)
    assert objective["share"]["value"] == pytest.approx(1 - 3 / 43_100)
    assert objective["share_max"] == pytest.approx(1 - 3 / 43_200)
    assert objective["share_min"] == pytest.approx(1 - 103 / 43_200)
    credit = period["credit"]
    assert (credit["owed"], credit["possible"]) == ("0.00", "10.00")
    held = run(capsys, "verdict", "ec2-region", file, "--holds", "3h")["periods"][0]
    assert held["verdict"] == "met"


def test_an_unfinished_period_is_undecided_until_it_is_lost(
    tmp_path: Path, capsys: Capture
) -> None:
    now = ["--now", "2023-06-15T00:00:00Z"]
    good = month(tmp_path / "g.csv", range(2), minutes=14 * 1440)
    (period,) = run(capsys, "verdict", "ec2-region", good, *now, code=0)["periods"]
    assert (period["finished"], period["verdict"]) == (False, "undecided")
    bad = month(tmp_path / "b.csv", range(5), minutes=14 * 1440)
    (period,) = run(capsys, "verdict", "ec2-region", bad, *now, code=1)["periods"]
    assert period["verdict"] == "violated"
    assert period["credit"]["claim_by"] == "2023-09-01T00:00:00Z"


def test_observers_vote(tmp_path: Path, capsys: Capture) -> None:
    # All three lose minute 0, a cut of one alone is no outage, a tie of two is disputed.
    lost = {"a": {0, 5, 6, 9}, "b": {0, 9}, "c": {0}}
    for name, failed in lost.items():
        rows = (
            f"{JUNE_S + 60 * at},{name},{int(at not in failed)}\n"
            for at in range(12)
            if (name, at) != ("c", 9)
        )
        (tmp_path / f"{name}.csv").write_text("time,observer,ok\n" + "".join(rows))
    terms = agreement(tmp_path / "t.yaml", "measure: availability, target: 99%", "period: day\n")
    files = [tmp_path / f"{name}.csv" for name in lost]
    objective = run(capsys, "verdict", terms, *files)["periods"][0]["objectives"][0]
    assert (objective["bad"], objective["disputed"]) == (2, 0)
    objective = run(capsys, "verdict", terms, *files[:2])["periods"][0]["objectives"][0]
    assert (objective["bad"], objective["disputed"]) == (2, 2)


def test_daylight_saving_changes_the_length_of_a_month(tmp_path: Path, capsys: Capture) -> None:
    terms = agreement(
        tmp_path / "t.yaml",
        "measure: availability, target: 99%, slot: 1h",
        "time_zone: Europe/Stockholm\n",
    )
    rows = "".join(f"2023-{month}-02T00:00:00+01:00,1\n" for month in ("03", "10", "11"))
    (tmp_path / "e.csv").write_text("time,ok\n" + rows)
    periods = run(capsys, "verdict", terms, tmp_path / "e.csv")["periods"]
    hours = {period["period"]: period["objectives"][0]["total"] for period in periods}
    assert (hours["2023-03"], hours["2023-10"], hours["2023-11"]) == (743, 745, 720)
    assert periods[0]["start"] == "2023-03-01T00:00:00+01:00"
    assert periods[0]["end"] == "2023-04-01T00:00:00+02:00"


def test_outages_of_a_minimum_length_and_downtime_credits(tmp_path: Path, capsys: Capture) -> None:
    file = month(tmp_path / "e.csv", [*range(4), *range(100, 105), *range(200, 265)])
    (period,) = run(capsys, "verdict", "app-engine-2015", file)["periods"]
    assert period["objectives"][0]["bad"] == 70
    (period,) = run(capsys, "verdict", "rackspace-2010", file, "--bill", "80")["periods"]
    assert period["objectives"][0]["downtime_s"] == 74 * 60
    assert (period["credit"]["owed_share"], period["credit"]["owed"]) == (0.1, "8.00")


def test_hours_that_are_not_billed_and_business_loss(tmp_path: Path, capsys: Capture) -> None:
    file = month(tmp_path / "e.csv", [*range(57, 66), *range(120, 127), *range(180, 186)])
    words = ["verdict", "ec2-instance", file, "--bill", "50", "--loss-per-hour", "3000"]
    (period,) = run(capsys, *words)["periods"]
    assert period["unbilled"] == 1
    assert period["credit"]["business_loss"] == "1100.00"


def test_exclusions_do_not_count(tmp_path: Path, capsys: Capture) -> None:
    file = month(tmp_path / "e.csv", range(60))
    words = ["--exclude", "2023-06-01T00:00:00Z/2023-06-01T01:00:00Z"]
    (period,) = run(capsys, "verdict", "ec2-region", file, *words)["periods"]
    (objective,) = period["objectives"]
    assert (objective["verdict"], objective["excluded"], objective["bad"]) == ("met", 60, 0)
    assert objective["total"] == 43_140


def test_other_measures(tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(
        f"{JUNE_S + 10 * at},{int(at % 100 > 0)},{20 + 10 * (at % 2)},{5 if at < 600 else 1}\n"
        for at in range(1200)
    )
    (tmp_path / "e.csv").write_text("time,ok,response_time_ms,requests\n" + rows)
    verdicts = {}
    for name, objective in {
        "mean": "measure: response_time, mean: 30ms, maximum: 25ms",
        "throughput": "measure: throughput, target: 50%, at_least: 0.2",
        "loss": "measure: loss, at_most: 2%",
        "jitter": "measure: jitter, target: 90%, under: 15ms",
        "durability": "measure: durability, target: 99%, years: 2, basis: census",
    }.items():
        terms = agreement(tmp_path / f"{name}.yaml", objective, "period: 200min\n")
        words = [terms, tmp_path / "e.csv", "--now", "2023-06-01T03:20:00Z"]
        (period,) = run(capsys, "verdict", *words)["periods"]
        verdicts[name] = period["objectives"][0]
    assert verdicts["mean"]["verdict"] == "violated"
    assert verdicts["throughput"]["good"] == 100
    assert verdicts["loss"]["verdict"] == "met"
    assert verdicts["loss"]["bad"] == 12
    assert verdicts["jitter"]["verdict"] == "met"
    assert verdicts["durability"]["target"] == pytest.approx(0.9801)
    assert verdicts["durability"]["verdict"] == "met"


def test_bills_by_service_and_period(tmp_path: Path, capsys: Capture) -> None:
    file = month(tmp_path / "e.csv", range(5))
    (tmp_path / "b.csv").write_text("period,amount,currency\n2023-06,200.05,USD\n")
    (period,) = run(capsys, "verdict", "ec2-region", file, "--bills", tmp_path / "b.csv")["periods"]
    assert period["credit"]["owed"] == "20.01"
    (tmp_path / "b.csv").write_text("amount,currency\n10,EUR\n")
    words = ["verdict", "ec2-region", file, "--bills", tmp_path / "b.csv"]
    assert "the bill is in EUR, the agreement in USD" in refused(capsys, *words)


def test_credits_that_do_not_exceed_the_minimum_are_not_paid(
    tmp_path: Path, capsys: Capture
) -> None:
    file = month(tmp_path / "e.csv", range(5))
    for bill, owed in (("10.00", "0.00"), ("10.10", "1.01")):
        (period,) = run(capsys, "verdict", "ec2-region", file, "--bill", bill)["periods"]
        assert period["credit"]["owed"] == owed


def test_the_page_and_the_table(tmp_path: Path, capsys: Capture) -> None:
    from nephoscope import command_line

    file = month(tmp_path / "e.csv", [*range(5), 2000])
    page = tmp_path / "page.html"
    words = ["sla", "verdict", "ec2-region", str(file), "--bill", "99.9", "-o", str(page)]
    assert command_line.main(words) == 1
    out = capsys.readouterr().out
    assert "99.98611 %" in out
    assert "9.99 USD" in out
    assert "2023-06-02" in page.read_text(encoding="utf-8")
