"""Published price lists: AWS offer files, Azure Retail Prices, ec2instances.info."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nephoscope.features.cost import price_book

from .made import document, refused

Capture = pytest.CaptureFixture[str]


def aws(**products: dict[str, Any]) -> dict[str, Any]:
    """An offer file with products by SKU; a key `price` is the price of an hour."""
    listed, terms = {}, {}
    for sku, changes in products.items():
        price = changes.pop("price", "0.1150000000")
        family = changes.pop("productFamily", "Compute Instance")
        attributes = {
            "instanceType": "m5.large",
            "regionCode": "eu-central-1",
            "operatingSystem": "Linux",
            "tenancy": "Shared",
        } | changes
        listed[sku] = {"sku": sku, "productFamily": family, "attributes": attributes}
        dimension = {"unit": "Hrs", "pricePerUnit": {"USD": price}}
        terms[sku] = {f"{sku}.T": {"priceDimensions": {f"{sku}.T.D": dimension}}}
    return {
        "formatVersion": "v1.0",
        "offerCode": "AmazonEC2",
        "publicationDate": "2024-12-19T00:00:00Z",
        "products": listed,
        "terms": {"OnDemand": terms, "Reserved": {"A": {}}},
    }


def azure(**changes: Any) -> dict[str, Any]:
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": 0.096,
        "armRegionName": "westeurope",
        "meterName": "D2s v3",
        "productName": "Virtual Machines DSv3 Series",
        "skuName": "D2s v3",
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "armSkuName": "Standard_D2s_v3",
        "effectiveStartDate": "2024-10-01T00:00:00Z",
    } | changes


def azure_page(*items: dict[str, Any], following: str | None = None) -> dict[str, Any]:
    return {"BillingCurrency": "USD", "Items": list(items), "NextPageLink": following}


def written(folder: Path, values: Any) -> Path:
    file = folder / "prices.json"
    file.write_text(json.dumps(values))
    return file


def test_an_offer_file_of_aws(tmp_path: Path, capsys: Capture) -> None:
    values = aws(
        A={},
        B={"operatingSystem": "Windows"},
        C={"tenancy": "Dedicated"},
        D={"capacitystatus": "UnusedCapacityReservation"},
        E={"preInstalledSw": "SQL Std"},
        F={"productFamily": "Storage"},
        G={"instanceType": "t3.nano", "price": "0.0000000000"},
    )
    file = written(tmp_path, values)
    for option in ("--book", "--import"):
        result = document(capsys, "cost", "prices", option, file)
        (offer,) = result["offers"]
        assert (offer["name"], offer["on_demand_per_h"]) == ("aws/eu-central-1/m5.large", 0.115)
        assert (offer["date"], offer["currency"], result["used"]) == ("2024-12-19", "USD", 1)
        assert sum(result["left_out"].values()) == 7
    assert price_book.load(file).offer("aws/eu-central-1/m5.large").price("on_demand") == 0.115


def test_two_prices_of_one_offer_are_refused(tmp_path: Path, capsys: Capture) -> None:
    file = written(tmp_path, aws(A={}, B={"price": "0.2"}))
    assert "m5.large has two prices, 0.115 and 0.2 USD" in refused(
        capsys, "cost", "prices", "--book", file
    )
    file = written(tmp_path, aws(A={"operatingSystem": "RHEL"}))
    assert "an AWS price list, without a price per hour" in refused(
        capsys, "cost", "prices", "--book", file
    )


def test_a_page_of_azure_retail_prices(tmp_path: Path, capsys: Capture) -> None:
    page = azure_page(
        azure(),
        azure(skuName="D2s v3 Spot", retailPrice=0.02),
        azure(productName="Virtual Machines DSv3 Series Windows", retailPrice=0.2),
        azure(type="Reservation", retailPrice=500.0),
        azure(skuName="D2s v3 Low Priority", retailPrice=0.03),
        azure(serviceName="Storage"),
        azure(armSkuName="Standard_E", unitOfMeasure="100 Hours", retailPrice=9.6),
        azure(armSkuName="Standard_F", unitOfMeasure="1 GB"),
        following="https://prices.example/?$skip=1000",
    )
    result = document(capsys, "cost", "prices", "--book", written(tmp_path, page))
    first, second = result["offers"]
    assert first["name"] == "azure/westeurope/Standard_D2s_v3"
    assert (first["on_demand_per_h"], first["spot_per_h"]) == (0.096, 0.02)
    assert (first["date"], second["on_demand_per_h"]) == ("2024-10-01", pytest.approx(0.096))
    assert (result["used"], sum(result["left_out"].values()), result["notes"]) == (3, 6, [])
    assert any("page" in reason for reason in result["left_out"])


def test_a_list_without_a_date_has_that_of_its_file(tmp_path: Path, capsys: Capture) -> None:
    linux = {"ondemand": "0.096", "spot_avg": "0.038", "reserved": {}}
    regions = {"us-east-1": {"linux": linux, "mswin": linux}, "us-west-1": {"linux": {}}}
    file = written(tmp_path, [{"instance_type": "m5.large", "pricing": regions}])
    result = document(capsys, "cost", "prices", "--book", file)
    (offer,) = result["offers"]
    assert (offer["name"], offer["on_demand_per_h"]) == ("aws/us-east-1/m5.large", 0.096)
    assert result["notes"] == [f"Prices without a date have the day of the file, {offer['date']}."]
    assert result["left_out"] == {"of other operating systems": 1, "without a price on demand": 1}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("identity/LineItemId,lineItem/UsageType", "a legacy AWS cost and usage report"),
        ("line_item_usage_type,line_item_unblended_cost", "(CUR 2.0)"),
        ("MeterCategory,MeterId,Quantity", "a cost export of Azure"),
        ("service.description,usage.amount", "a billing export of Google Cloud"),
    ],
)
def test_bills_of_other_formats_are_named(
    columns: str, expected: str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "bill.csv"
    file.write_text(f"{columns}\n")
    for option in ("--import", "--book"):
        assert expected in refused(capsys, "cost", "prices", option, file)
