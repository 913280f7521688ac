"""Each form of a price list gives the price that stands in it, for the type of the measurements."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.errors import StoreError, UsageError
from nephoscope.features.market import prices

FOCUS = (
    "BillingCurrency,ChargeCategory,ChargePeriodStart,EffectiveCost,PricingCategory,"
    "PricingQuantity,PricingUnit,RegionId,ServiceCategory,SkuId,SkuPriceDetails,ProviderName\n"
    "USD,Usage,2026-01-01T00:00:00Z,2.0,Standard,20,Hours,us-east-1,Compute,X,"
    '"{""InstanceType"": ""m7g.large""}",Amazon Web Services\n'
)
AWS = {
    "formatVersion": "v1.0",
    "offerCode": "AmazonEC2",
    "publicationDate": "2026-01-02T00:00:00Z",
    "products": {
        "S": {
            "productFamily": "Compute Instance",
            "attributes": {
                "instanceType": "m7g.large",
                "regionCode": "us-east-1",
                "operatingSystem": "Linux",
                "tenancy": "Shared",
                "capacitystatus": "Used",
                "preInstalledSw": "NA",
            },
        }
    },
    "terms": {
        "OnDemand": {
            "S": {"T": {"priceDimensions": {"D": {"unit": "Hrs", "pricePerUnit": {"USD": "0.1"}}}}}
        }
    },
}
AZURE = {
    "BillingCurrency": "USD",
    "Items": [
        {
            "currencyCode": "USD",
            "retailPrice": 0.1,
            "armRegionName": "westeurope",
            "armSkuName": "Standard_D2s_v5",
            "skuName": "D2s v5",
            "meterName": "D2s v5",
            "productName": "Virtual Machines Dsv5 Series",
            "serviceName": "Virtual Machines",
            "unitOfMeasure": "1 Hour",
            "type": "Consumption",
            "effectiveStartDate": "2026-01-03T00:00:00Z",
        }
    ],
    "NextPageLink": None,
    "Count": 1,
}
BOOK = (
    "name,region,currency,date,source,on_demand_per_h\n"
    "aws/m7g.large,us-east-1,USD,2026-01-04,x,0.1\n"
)


def database(path: Path, rows: list[tuple[Any, ...]]) -> Path:
    """Writes the tables of `sparecores-data` that prices are read from."""
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE server (vendor_id, server_id, api_reference)")
        made.execute("CREATE TABLE region (vendor_id, region_id, api_reference)")
        made.execute(
            "CREATE TABLE server_price (vendor_id, region_id, zone_id, server_id, operating_system,"
            " allocation, unit, price, currency, status, observed_at)"
        )
        made.execute("INSERT INTO server VALUES ('hcloud', '22', 'cx22')")
        made.execute("INSERT INTO region VALUES ('hcloud', '1', 'nbg1')")
        made.executemany(f"INSERT INTO server_price VALUES ({', '.join('?' * 11)})", rows)
    return path


def row(**changes: Any) -> tuple[Any, ...]:
    values = {
        "vendor_id": "hcloud",
        "region_id": "1",
        "zone_id": "1",
        "server_id": "22",
        "operating_system": "Linux",
        "allocation": "ONDEMAND",
        "unit": "HOUR",
        "price": 0.1,
        "currency": "USD",
        "status": "ACTIVE",
        "observed_at": "2026-01-05 10:00:00",
    }
    return tuple({**values, **changes}.values())


FORMS = (
    ("bill.csv", FOCUS, ("aws", "m7g.large", "us-east-1", "2026-01-01")),
    ("aws.json", json.dumps(AWS), ("aws", "m7g.large", "us-east-1", "2026-01-02")),
    ("azure.json", json.dumps(AZURE), ("azure", "Standard_D2s_v5", "westeurope", "2026-01-03")),
    ("book.csv", BOOK, ("aws", "m7g.large", "us-east-1", "2026-01-04")),
)


def test_each_form_gives_the_price_of_an_hour(tmp_path: Path) -> None:
    for name, text, expected in FORMS:
        (tmp_path / name).write_text(text)
        (offer,) = prices.read_files([tmp_path / name]).offers
        assert (offer.provider, offer.type, offer.region, offer.date) == expected, name
        assert offer.on_demand_per_h == pytest.approx(0.1), name


def test_the_database_gives_active_prices_with_linux(tmp_path: Path) -> None:
    path = database(
        tmp_path / "d.db",
        [
            row(price=0.2),
            row(zone_id="2"),
            row(allocation="SPOT", price=0.03),
            row(operating_system="Windows"),
            row(status="INACTIVE"),
            row(unit="MONTH", price=50),
            row(allocation="RESERVED"),
            row(price=None),
        ],
    )
    read = prices.read_files([path])
    (offer,) = read.offers
    assert (offer.provider, offer.type, offer.region) == ("hcloud", "cx22", "nbg1")
    assert (offer.on_demand_per_h, offer.spot_per_h, offer.date) == (0.1, 0.03, "2026-01-05")
    assert sum(read.left_out.values()) == 5


def test_what_is_no_price_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("name,currency,date,source\n")
    (tmp_path / "damaged.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    database(tmp_path / "windows.db", [row(operating_system="Windows")])
    for name, words in (
        ("empty.csv", "no header, or no price below it"),
        ("damaged.db", "its prices cannot be read"),
        ("windows.db", "there is no price per hour of a server type (1 not with Linux)"),
        ("missing.csv", "there is no such file"),
    ):
        with pytest.raises(UsageError) as refused:
            prices.read_files([tmp_path / name])
        assert words in str(refused.value), name


def test_stored_prices_are_those_that_were_read(tmp_path: Path) -> None:
    (tmp_path / "book.csv").write_text(BOOK)
    read = prices.read_files([tmp_path / "book.csv"])
    prices.store_prices(tmp_path / "store", read)
    assert prices.stored_prices(tmp_path / "store").offers == read.offers
    assert prices.stored_prices(tmp_path / "empty").offers == []
    (tmp_path / "store/market/prices.json").write_text('{"version": 1, "offers": [[1]]}')
    with pytest.raises(StoreError, match="is damaged"):
        prices.stored_prices(tmp_path / "store")
