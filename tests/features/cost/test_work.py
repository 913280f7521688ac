"""The cost per unit of work: test vectors, the mix, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .made import document, refused


def options(folder: Path, **options: dict[str, Any]) -> Path:
    file = folder / "options.yaml"
    file.write_text(json.dumps({"unit": "requests", "options": options}))
    return file


def test_three_offers_per_million_operations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = options(
        tmp_path,
        small={"price_per_h": 0.10, "capacity_per_s": 1000},
        medium={"price_per_h": 0.20, "capacity_per_s": 1600},
        large={"price_per_h": 0.25, "capacity_per_s": 2500},
    )
    result = document(capsys, "cost", "work", file)
    costs = {one["option"]: one for one in result["costs"]}
    values = [costs[name]["cost_per_million"]["value"] for name in ("small", "medium", "large")]
    assert values == pytest.approx([0.0277778, 0.0347222, 0.0277778], rel=1e-4)
    assert [costs[name]["on_frontier"] for name in ("small", "medium", "large")] == [
        False,
        False,
        True,
    ]


def test_an_interval_of_the_capacity_is_that_of_the_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stated = {"value": 1000, "low": 900, "high": 1250, "n": 12}
    one = {"price_per_h": 0.36, "capacity_per_s": stated}
    file = options(tmp_path, one=one, two={**one, "price_per_h": 0.37})
    first, second = document(capsys, "cost", "work", file)["costs"]
    cost = first["cost_per_million"]
    assert cost["value"] == pytest.approx(0.1)
    assert (cost["low"], cost["high"]) == pytest.approx((0.08, 0.1 / 0.9))
    assert cost["n"] == 12
    assert (first["similar_to_cheapest"], second["similar_to_cheapest"]) == (False, True)


def test_the_mix_costs_its_mean_of_1_over_the_speed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mix = {
        "E5430": {"machines": 17, "speed": 1.1},
        "E5507": {"machines": 40, "speed": 1.0},
        "E5645": {"machines": 42, "speed": 1.4},
    }
    one = {"price_per_h": 3.6, "capacity_per_s": 1000, "mix": mix}
    file = options(tmp_path, equal=one, dynamic={**one, "sharing": "dynamic"})
    result = document(capsys, "cost", "work", file)
    costs = {one["option"]: one["cost_per_million"] for one in result["costs"]}
    assert costs["equal"]["value"] == pytest.approx(0.86318, rel=1e-4)
    assert costs["dynamic"]["value"] == pytest.approx(0.84255, rel=1e-4)
    assert costs["equal"]["low"] < 0.86318 < costs["equal"]["high"]
    assert costs["equal"]["n"] == 99


def test_the_mix_of_a_census(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "instance_type,model,machines,benchmark,speed\n"
    counts = "t,a,17,,\nt,b,40,,\nt,c,42,,\n"
    (tmp_path / "counts.csv").write_text(f"{head}{counts}t,a,,pi,1.1\nt,b,,pi,1\nt,c,,pi,1.4\n")
    option = {"price_per_h": 3.6, "capacity_per_s": 1000, "census": "counts.csv"}
    (one,) = document(capsys, "cost", "work", options(tmp_path, one=option))["costs"]
    assert one["cost_per_million"]["value"] == pytest.approx(0.86318, rel=1e-4)
    (tmp_path / "counts.csv").write_text(f"{head}{counts}t,a,,pi,1.1\nt,b,,pi,1\n")
    assert "have no speed" in refused(capsys, "cost", "work", options(tmp_path, one=option))


def test_storage_licence_idle_capacity_and_egress_are_paid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = tmp_path / "book.yaml"
    common = {"currency": "USD", "date": "2026-01-01", "source": "a test"}
    offer = {"name": "x", "on_demand_per_h": 0.1, "storage_per_gb_month": 0.073, "licence_per_h": 1}
    tiers = [{"price_per_gb": 0.0, "to_gb": 73}, {"from_gb": 73, "price_per_gb": 0.1}]
    egress = {"name": "out", "unit": "GB", "tiers": tiers}
    book.write_text(json.dumps({"offers": [offer | common], "egress": [egress | common]}))
    option = {
        "offer": "x",
        "storage_gb": 1000,
        "licence_per_h": 0.7,
        "capacity_per_s": 1000,
        "used": "50%",
        "egress": "out",
        "egress_bytes_per_unit": 1000,
    }
    result = document(capsys, "cost", "work", options(tmp_path, one=option), "--book", book)
    (one,) = result["costs"]
    assert one["price_per_h"] == pytest.approx(0.1 + 1 + 0.1 + 0.7)
    units_per_h = 1000 * 3600 * 0.5
    gigabytes = units_per_h * 730 * 1000 / 1e9
    egress_usd = (gigabytes - 73) * 0.1 / (units_per_h * 730) * 1e6
    assert one["egress_per_million"] == pytest.approx(egress_usd)
    assert one["cost_per_million"]["value"] == pytest.approx(1.9 / units_per_h * 1e6 + egress_usd)


def test_the_capacity_of_a_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stated = {"value": 500.0, "low": 480.0, "high": 520.0, "confidence": 0.95, "n": 40, "unit": ""}
    (tmp_path / "capacity.json").write_text(json.dumps({"capacity_per_s": stated}))
    file = options(tmp_path, one={"price_per_h": 1.8, "capacity_file": "capacity.json"})
    (one,) = document(capsys, "cost", "work", file)["costs"]
    assert one["cost_per_million"]["value"] == pytest.approx(1.0)
    (tmp_path / "capacity.json").write_text(json.dumps({"capacity_per_s": None}))
    assert "states no capacity" in refused(capsys, "cost", "work", file)
    (tmp_path / "capacity.json").write_text("{")
    assert "no JSON" in refused(capsys, "cost", "work", file)


def test_capacities_under_other_objectives_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, objective in (("a", "p99 < 10 ms"), ("b", "p99 < 20 ms")):
        stated = {"capacity_per_s": {"value": 500.0}, "objective": objective, "connections": 8}
        (tmp_path / f"{name}.json").write_text(json.dumps(stated))
    files = {name: {"price_per_h": 1, "capacity_file": f"{name}.json"} for name in ("a", "b")}
    file = options(tmp_path, **files)
    (hidden,) = document(capsys, "cost", "work", file)["hidden_settings"]
    assert hidden["name"] == "objective of the capacity"
    assert hidden["values"] == ["p99 < 10 ms", "p99 < 20 ms"]


GOOD = {"price_per_h": 1, "capacity_per_s": 1}


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ({"price_per_h": 0}, "greater than 0"),
        ({"price_per_h": -1}, "greater than 0"),
        ({"capacity_per_s": 0}, "greater than 0"),
        ({"capacity_per_s": -5}, "greater than 0"),
        ({"capacity_per_s": {"value": 1, "low": 2, "high": 3}}, "do not ascend"),
        ({"capacity_per_s": {"value": 1, "low": 1}}, "two ends"),
        ({"capacity_per_s": {"value": 1, "values": [1, 2]}}, "a value or a list"),
        ({"currency": "EUR"}, "EUR and USD"),
        ({"offer": "aws/m1.large"}, "an offer or a price_per_h"),
        ({"capacity_per_s": None}, "capacity_per_s or capacity_file"),
        ({"used": 0}, "an idle instance"),
        ({"egress": "aws/s3-us"}, "egress needs both"),
        ({"mix": {"a": {"machines": 1, "speed": -1}}}, "greater than 0"),
        ({"mix": {"a": {"machines": 0, "speed": 1}}}, "greater than 0"),
        ({"pric": 1}, "unknown key 'pric'"),
    ],
)
def test_an_option_that_cannot_be_compared(
    option: dict[str, Any], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = options(tmp_path, good=GOOD, bad={**GOOD, **option})
    sentence = refused(capsys, "cost", "work", file)
    assert part in sentence
    assert str(file) in sentence


def test_an_offer_that_is_not_in_the_book(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = options(tmp_path, one={"offer": "aws/m1.larg", "capacity_per_s": 1})
    assert "did you mean 'aws/m1.large'" in refused(capsys, "cost", "work", file)
    file = options(tmp_path, one={"offer": "aws/m1.large", "purchase": "spot", "capacity_per_s": 1})
    assert "no spot price" in refused(capsys, "cost", "work", file)


def test_a_page_has_the_frontier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "cost.html"
    document(capsys, "cost", "work", options(tmp_path, good=GOOD), "-o", page)
    assert "Cost frontier" in page.read_text()
