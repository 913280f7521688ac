"""The price book: dates, currencies, tiers, CSV, bills in the FOCUS format."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.cost import focus, price_book, price_records
from nephoscope.features.cost.price_records import Offer
from nephoscope.features.cost.tiers import Tier, price_of

from .made import document, refused

OFFER = {
    "name": "a/b",
    "currency": "USD",
    "date": "2026-01-01",
    "source": "a test",
    "on_demand_per_h": 0.1,
}


def offer(**changes: object) -> Offer:
    return price_records.offer_of({**OFFER, **changes}, "book.yaml: ")


def test_the_starter_book_states_dates_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    book = document(capsys, "cost", "prices")
    named = {one["name"]: one for one in book["offers"]}
    assert named["aws/m1.large"]["on_demand_per_h"] == 0.34
    assert all(one["date"] and one["source"] for one in [*book["offers"], *book["egress"]])


def test_the_latest_price_up_to_a_day_holds() -> None:
    book = price_book.load(None)
    name = "gce/n1-standard-1"
    assert book.offer(name).on_demand_per_h == 0.063
    assert book.offer(name, date(2014, 12, 31)).on_demand_per_h == 0.07
    with pytest.raises(UsageError, match="the first is of 2014-04-01"):
        book.offer(name, date(2014, 3, 31))


def test_prices_of_useful_hours_by_purchase() -> None:
    one = offer(
        committed_per_h=0.02,
        committed_upfront=438.0,
        spot_per_h=0.03,
        interruptions_per_h=0.05,
        restart_h=2.0,
    )
    assert one.price("on_demand") == 0.1
    assert one.price("committed") == pytest.approx(0.02 + 438 / 8760)
    # A tenth of the paid hours is lost to interruptions.
    assert one.price("spot") == pytest.approx(0.03 / 0.9)
    with pytest.raises(UsageError, match="no spot price"):
        offer().price("spot")


def test_billed_hours_are_rounded_as_the_book_says() -> None:
    hourly = offer(billing_step_s=3600, billing_minimum_s=3600)
    assert hourly.billed_h(0.01) == 1.0
    assert hourly.billed_h(1.0) == 1.0
    assert hourly.billed_h(1.01) == 2.0
    assert offer(billing_minimum_s=60).billed_h(0.001) == pytest.approx(1 / 60)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"on_demand_per_h": 0}, "greater than 0"),
        ({"on_demand_per_h": -1}, "greater than 0"),
        ({"on_demand_per_h": None}, "there is no price"),
        ({"currency": "dollar"}, "currency"),
        ({"date": "yesterday"}, "date"),
        (
            {"spot_per_h": 1, "interruptions_per_h": 1, "restart_h": 1},
            "before it has done anything",
        ),
        ({"committed_per_h": 0}, "costs nothing"),
        ({"on_demand": 1}, "unknown key 'on_demand'"),
    ],
)
def test_an_offer_that_cannot_be_used(changes: dict[str, object], part: str) -> None:
    with pytest.raises(UsageError) as caught:
        offer(**changes)
    assert part in str(caught.value)
    assert str(caught.value).startswith("book.yaml: ")


def tiers(*bounds: tuple[float, float | None]) -> str:
    rows = [
        {"from_gb": low, **({} if high is None else {"to_gb": high}), "price_per_gb": 0.1}
        for low, high in bounds
    ]
    entry = {**OFFER, "unit": "GB", "tiers": rows}
    return json.dumps({"egress": [{k: v for k, v in entry.items() if k != "on_demand_per_h"}]})


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (tiers((0, 10), (5, None)), "tiers 1 and 2 overlap from 5 on"),
        (tiers((0, None), (5, None)), "tiers 1 and 2 overlap from 5 on"),
        (tiers((0, 10), (20, None)), "no price between 10 and 20"),
        (tiers((1, None)), "begins at 1, not at 0"),
        (tiers((0, 10)), "the last tier has an end"),
        (tiers((0, 0.0001), (0.0001, 0.00005)), "ends before it begins"),
        (json.dumps({"offers": [OFFER, OFFER]}), "there twice"),
        ("[]", "a mapping of keys"),
        ("offers: [", "no valid YAML"),
    ],
)
def test_a_book_that_cannot_be_used(
    text: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "book.yaml"
    file.write_text(text)
    sentence = refused(capsys, "cost", "prices", "--book", file)
    assert part in sentence
    assert str(file) in sentence


def test_a_tier_is_half_open() -> None:
    steps = (
        Tier(from_gb=0, to_gb=1, price_per_gb=0),
        Tier(from_gb=1, to_gb=10, price_per_gb=2),
        Tier(from_gb=10, price_per_gb=1),
    )
    assert [price_of(volume, steps) for volume in (0, 1, 2, 10, 12)] == [0, 0, 2, 18, 20]


def test_a_price_twice_in_a_csv_book_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "book.csv"
    row = "a/b,EUR,2026-01-02,page,0.2\n"
    file.write_text(f"name,currency,date,source,on_demand_per_h\n{row}{row}")
    sentence = refused(capsys, "cost", "prices", "--book", file)
    assert f"{file}: " in sentence
    assert "there twice" in sentence
    file.write_text("name,name\n")
    assert f"{file}:1: duplicate column" in refused(capsys, "cost", "prices", "--book", file)


def test_a_csv_book(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "book.csv"
    head = "name,currency,date,source,on_demand_per_h,spot_per_h"
    file.write_text(f'{head}\n# a comment\na/b,EUR,2026-01-02,"page, read",0.2,\n')
    (found,) = document(capsys, "cost", "prices", "--book", file)["offers"]
    assert (found["on_demand_per_h"], found["spot_per_h"]) == (0.2, None)
    file.write_text(f"{head}\na/b,EUR,2026-01-02,page,0,\n")
    assert f"{file}:2: " in refused(capsys, "cost", "prices", "--book", file)
    row = "a/b,EUR,2026-01-02,page,0.2,\n"
    file.write_text(f"{head}\n{2 * row}")
    assert "there twice" in refused(capsys, "cost", "prices", "--book", file)
    for text in ("", head):
        file.write_text(text)
        assert "no header" in refused(capsys, "cost", "prices", "--book", file)


HEAD = (
    "BillingCurrency,ChargeCategory,ChargeClass,ChargePeriodStart,EffectiveCost,PricingCategory,"
    "PricingQuantity,PricingUnit,ProviderName,RegionId,ServiceCategory,SkuId,SkuPriceDetails"
)


def row(**changes: str) -> str:
    values = {
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargeClass": "",
        "ChargePeriodStart": "2026-10-01T00:00:00Z",
        "EffectiveCost": "1.0",
        "PricingCategory": "Standard",
        "PricingQuantity": "10",
        "PricingUnit": "Hours",
        "ProviderName": "A Cloud",
        "RegionId": "west",
        "ServiceCategory": "Compute",
        "SkuId": "S1",
        "SkuPriceDetails": '"{""InstanceType"": ""m5.large""}"',
    } | changes
    return ",".join(values[name] for name in HEAD.split(","))


def bill(folder: Path, *rows: str) -> Path:
    file = folder / "bill.csv"
    file.write_text("\n".join([HEAD, *rows, ""]))
    return file


def test_a_bill_gives_what_an_hour_cost_on_average(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = bill(
        tmp_path,
        row(),
        row(EffectiveCost="5.0", PricingQuantity="30", ChargePeriodStart="2026-10-02"),
        row(PricingCategory="Dynamic", EffectiveCost="0.3"),
        row(PricingCategory="Committed", EffectiveCost="0.6"),
        row(ChargeCategory="Tax"),
        row(ChargeClass="Correction", EffectiveCost="-1"),
        row(ServiceCategory="Storage"),
        row(PricingUnit="GB"),
    )
    book = tmp_path / "book.yaml"
    result = document(capsys, "cost", "prices", "--import", file, "-o", book)
    (found,) = result["offers"]
    assert found["name"] == "a-cloud/west/m5.large"
    assert found["date"] == "2026-10-02"
    prices = [found[f"{one}_per_h"] for one in ("on_demand", "spot", "committed")]
    assert prices == pytest.approx([6 / 40, 0.03, 0.06])
    assert result["used"] == 4
    assert sum(result["left_out"].values()) == 4
    assert price_book.load(book).offer("a-cloud/west/m5.large").price("spot") == 0.03


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ([row(), row(BillingCurrency="EUR")], "EUR and USD"),
        ([row(), row(BillingCurrency="EUR", SkuPriceDetails="")], "EUR and USD"),
        ([row(EffectiveCost="-1")], "1 with a negative cost or quantity"),
        ([row(PricingQuantity="many")], "1 without a cost or a quantity"),
        ([row(EffectiveCost="0")], "1 used at no cost"),
        ([row(PricingQuantity="0")], "1 with a cost but no hours"),
        ([row(SkuPriceDetails="{")], "SkuPriceDetails that are no JSON"),
        ([row(ChargeCategory="Tax")], "1 not usage"),
        ([row(ChargePeriodStart="")], "1 without a day"),
        (["USD,Usage"], "not as many fields"),
    ],
)
def test_a_bill_that_cannot_be_used(rows: list[str], part: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        focus.read(bill(tmp_path, *rows))
    assert part in str(caught.value)


def test_unusable_rows_are_counted_and_the_others_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    null = {"ChargeClass": "NULL", "SkuPriceDetails": "NULL"}
    file = bill(
        tmp_path,
        row(**null),
        row(**null, SkuId="FREE", EffectiveCost="0"),
        row(**null, SkuId="FREE", PricingCategory="Dynamic"),
        row(**null, EffectiveCost="NULL"),
        row(EffectiveCost="-1"),
        row(PricingUnit="Units/Hour"),
    )
    result = document(capsys, "cost", "prices", "--import", file)
    assert [one["name"] for one in result["offers"]] == ["a-cloud/west/FREE", "a-cloud/west/S1"]
    free, paid = result["offers"]
    assert (free["on_demand_per_h"], free["spot_per_h"]) == (None, 0.1)
    assert (paid["on_demand_per_h"], result["used"]) == (0.1, 2)
    assert result["left_out"] == {
        "without a cost or a quantity": 1,
        "with a negative cost or quantity": 1,
        "not priced by the hour but by Units/Hour": 1,
        "used at no cost": 1,
    }


def test_a_bill_of_another_format(tmp_path: Path) -> None:
    file = tmp_path / "bill.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="of FOCUS are missing"):
        focus.read(file)
    with pytest.raises(UsageError, match="no such file"):
        focus.read(tmp_path / "none.csv")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="no CSV file"):
        focus.read(file)
