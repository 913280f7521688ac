"""`nephoscope credits` on files as people have them, and on what is wrong in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.credits import files
from nephoscope.features.credits.findings import sentence
from nephoscope.features.credits.records import BurstCredits
from nephoscope.features.credits.result import series_of
from nephoscope.features.credits.section import section


def _written(path: Path, lines: list[str]) -> Path:
    file = path / "rates.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_columns_of_text_name_series_and_the_busy_time_is_known(tmp_path: Path) -> None:
    lines = ["vendor,type,minute,seconds,rate"]
    for minute in range(120):
        lines.append(f"a,slow,{minute},55.0,{100 if minute < 60 else 40}")
        lines.append(f"a,even,{minute},55.0,{100 + minute % 2}")
    read, notes = files.read(_written(tmp_path, lines))
    assert [(each.name, each.at_s[1]) for each in read] == [("a slow", 60.0), ("a even", 60.0)]
    shares = read[0].shares()
    assert shares is not None
    assert shares[0] == pytest.approx(55 / 60)
    assert notes == []
    slow, even = (
        series_of(each.name, "", "per_s", each.at_s, each.rates, each.shares()) for each in read
    )
    assert sentence(slow) == "a slow is on credit: 100 /s until 59 min 30 s, then 40.0 /s (40 %)."
    assert even.analysis.verdict == "steady"
    page = section(BurstCredits((slow, even)))
    assert json.dumps(BurstCredits((slow, even)).on_credit) == '["a slow"]'
    assert page.title == "Burst credits"


def test_times_of_the_calendar_and_missing_rates_are_read(tmp_path: Path) -> None:
    lines = ["time;throughput;note"]
    lines += [f"2026-11-27T10:{minute:02}:00Z;{1000 - minute};x" for minute in range(30)]
    lines[5] = "2026-11-27T10:04:00Z;;x"
    (read,), _ = files.read(_written(tmp_path, lines))
    assert (read.at_s[1] - read.at_s[0], len(read.rates)) == (60.0, 29)
    assert read.left_out == {"without a rate": 1}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["rate", "1"], "no column of a time"),
        (["time,a,b", "0,1,2"], "no column of a rate"),
        (["time,rate", "0,1", "1,fast"], "'fast' in the column rate is no number"),
        (["time,rate", "0,1", "x,2"], "'x' is no time"),
        (["time,rate", "0,1", "2,2", "1,3"], "is not later than the one above"),
        (["time,rate", "0,1", "1,-3"], "is below 0"),
        (["time,rate"], "there are no rows"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_sentence(
    tmp_path: Path, lines: list[str], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        files.read(_written(tmp_path, lines))
