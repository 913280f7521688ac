"""What rentals cost by a bill in the FOCUS format."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.cloud import bill
from nephoscope.measure.cloud.ended_rentals import EndedRental

HEAD = ("BilledCost", "BillingCurrency", "ChargePeriodStart", "ServiceCategory", "Tags")


def row(cost: str, service: str = "Compute", currency: str = "USD", **tags: str) -> list[str]:
    return [cost, currency, "2026-11-02T00:00:00Z", service, json.dumps(tags)]


def written(folder: Path, *rows: list[str]) -> Path:
    file = folder / "bill.csv"
    with file.open("w", newline="") as text:
        csv.writer(text).writerows([HEAD, *rows])
    return file


RUN = {"nephoscope-run": "r1"}


def test_rows_are_summed_by_rental_beside_the_quote(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        row("0.20", **RUN),
        row("0.05", "Storage", **{"user:nephoscope-run": "r1"}),
        row("-0.01", **RUN),
        row("3", **{"nephoscope-run": "r2"}),
        row("7", other="x"),
        ["1", "USD", "2026-11-03T00:00:00Z", "Compute", "NULL"],
    )
    past = [EndedRental("r1", "ec2", 2, 0.0, 3600.0, 0.25, "USD")]
    found = bill.read(file, past)
    first, second = found.rentals
    assert (first.name, first.rows, first.quoted) == ("r1", 3, 0.25)
    assert first.billed == pytest.approx(0.24)
    assert dict(first.by_service) == pytest.approx({"Compute": 0.19, "Storage": 0.05})
    assert (second.billed, second.quoted) == (3.0, None)
    assert found.left_out == {"without a tag of a rental": 2}


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ([row("7", other="x")], "none of its 1 rows has the tag nephoscope-run"),
        ([row("much", **RUN)], "bill.csv:2: BilledCost 'much' is no amount"),
        ([row("nan", **RUN)], "bill.csv:2: BilledCost 'nan' is no amount"),
        ([row("1", **RUN), row("1", currency="EUR", **RUN)], "billed in USD and in EUR"),
        ([["1", "USD"]], "bill.csv:2: the row has not as many fields"),
    ],
)
def test_bad_rows_are_one_sentence(tmp_path: Path, rows: list[list[str]], part: str) -> None:
    with pytest.raises(UsageError) as caught:
        bill.read(written(tmp_path, *rows), [])
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_columns_and_files_are_named(tmp_path: Path) -> None:
    file = tmp_path / "bill.csv"
    file.write_text("BilledCost,Tags\n1,{}\n")
    with pytest.raises(UsageError, match="columns BillingCurrency, ChargePeriodStart"):
        bill.read(file, [])
    with pytest.raises(UsageError, match="there is no such file"):
        bill.read(tmp_path / "no.csv", [])
