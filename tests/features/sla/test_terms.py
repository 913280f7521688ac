"""Agreements: built-in contracts, files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.features.sla.made import AGREEMENT, agreement, month, refused, run

from nephoscope.features.sla import files

Capture = pytest.CaptureFixture[str]
TIERS = "measure: availability, target: 99%, credits: "


@pytest.mark.parametrize("name", files.names())
def test_every_contract_is_dated_and_has_a_source(name: str) -> None:
    terms = files.load(name)
    assert terms.name == name
    assert terms.source
    assert terms.checked is not None


def test_the_list(capsys: Capture) -> None:
    names = [row["name"] for row in run(capsys, "contracts")["contracts"]]
    assert {"ec2-2008", "ec2-region", "ec2-instance", "rackspace-2010"} <= set(names)
    assert "did you mean 'ec2-region'" in refused(capsys, "contracts", "ec2-regio")


@pytest.mark.parametrize(
    ("objective", "more", "expected"),
    [
        (
            TIERS + "[{below: 99%, at_least: 94%, credit: 10%}, {below: 95%, credit: 20%}]",
            "",
            "credit tiers overlap below 95 %",
        ),
        (
            TIERS + "[{below: 99%, credit: 10%}, {below: 99%, credit: 20%}]",
            "",
            "credit tiers overlap below 99 %",
        ),
        (
            TIERS + "[{below: 99%, at_least: 97%, credit: 10%}, {below: 95%, credit: 20%}]",
            "",
            "no credit tier covers 95 % to 97 %",
        ),
        (
            TIERS + "[{below: 99%, credit: 30%}, {below: 95%, credit: 20%}]",
            "",
            "gives less credit than the better one",
        ),
        (TIERS + "[{below: 99%, at_least: 9%, credit: 3%}]", "", "covers less than 9 %"),
        ("measure: availability", "", "needs 'target'"),
        ("measure: availability, target: null", "", "needs 'target'"),
        ("measure: availability, target: 101%", "", "is no share between 0 and 100 %"),
        ("measure: availability, target: -1%", "", "is no share between 0 and 100 %"),
        ("measure: loss, at_most: 1%, under: 5s", "", "'under' has no meaning for loss"),
        ("measure: throughput, target: 9%, at_least: -5", "", "greater than 0"),
        ("measure: avail, target: 9%", "", "measure"),
        ("measure: loss, at_most: 1%", "period: fortnight\n", "is no period"),
        ("measure: loss, at_most: 1%", "time_zone: Mars/Base\n", "is no time zone"),
        ("measure: availability, target: nan", "", "is no share between 0 and 100 %"),
        (
            "measure: loss, at_most: 1%",
            "exclusions: [{from: 2026-06-01, to: nan}]\n",
            "exclusions: 'nan' is no time",
        ),
        ("measure: loss, at_most: 1%", "tiers: []\n", "unknown key 'tiers'"),
        ("measure: loss, at_most: 1%", "claim: {}\n", "either 'days' or 'months'"),
    ],
)
def test_bad_terms_are_one_sentence(
    objective: str, more: str, expected: str, tmp_path: Path, capsys: Capture
) -> None:
    file = agreement(tmp_path / "a.yaml", objective, more)
    line = refused(capsys, "verdict", file, tmp_path / "e.csv")
    assert expected in line
    assert "a.yaml" in line


def test_an_agreement_of_another_version(tmp_path: Path, capsys: Capture) -> None:
    text = AGREEMENT.format(objective="{measure: loss, at_most: 1%}").replace("sla: 1", "sla: 2")
    (tmp_path / "a.yaml").write_text(text)
    line = refused(capsys, "verdict", tmp_path / "a.yaml", tmp_path / "e.csv")
    assert "the contract has format version 2; this program reads versions up to 1." in line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--exclude", "2023-06-01"], "is no interval"),
        (["--exclude", "nan/nan"], "'nan' is no time"),
        (["--exclude", "2023-06-02T00:00Z/2023-06-01T00:00Z"], "has no length"),
        (["--bill", "ten"], "is no amount of money"),
        (["--bill", "-1"], "is no amount of money"),
        (["--now", "soon"], "is no time"),
        (["--holds", "-3s"], "is no duration"),
        (["--confidence", "20%"], "--confidence: '20%' is out of range"),
    ],
)
def test_bad_options_are_one_sentence(
    words: list[str], expected: str, tmp_path: Path, capsys: Capture
) -> None:
    file = month(tmp_path / "e.csv", (), minutes=3)
    assert expected in refused(capsys, "verdict", "ec2-region", file, *words)


def test_local_times_that_exist_twice_are_refused(tmp_path: Path, capsys: Capture) -> None:
    terms = agreement(
        tmp_path / "a.yaml",
        "measure: availability, target: 99%",
        "time_zone: Europe/Stockholm\n"
        "exclusions: [{from: '2023-10-29T02:30', to: '2023-10-29T04:00'}]\n",
    )
    file = month(tmp_path / "e.csv", (), minutes=3)
    assert "exists twice or never in Europe/Stockholm" in refused(capsys, "verdict", terms, file)
