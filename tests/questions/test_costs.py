"""Questions about prices: what does an hour cost, and where do the prices come from?"""

from __future__ import annotations

import json

from tests.questions.conftest import Asking

HEAD = (
    "BilledCost,BillingCurrency,ChargeCategory,ChargeClass,ChargePeriodStart,EffectiveCost,"
    "PricingCategory,PricingQuantity,PricingUnit,ProviderName,RegionId,ServiceCategory,SkuId"
)


def charge(sku: str, cost: float, hours: float, unit: str = "Hours") -> str:
    return (
        f"{cost},USD,Usage,NULL,2024-09-18 22:00:00,{cost},Standard,{hours},{unit},AWS,us-east-1,"
        f"Compute,{sku}"
    )


def test_what_do_i_pay_for_an_hour_by_my_bill(ask: Asking) -> None:
    """My bill is in FOCUS with the word NULL and has free usage: what does an hour cost me?"""
    rows = (
        charge("SMALL", 1.0, 10),
        charge("SMALL", 3.0, 10),
        charge("FREE", 0.0, 700),
        charge("OTHER", 0.3, 3, "Units/Hour"),
    )
    ask.write("bill.csv", "\n".join([HEAD, *rows, ""]))
    answer = ask("nephoscope cost prices --import bill.csv -o book.yaml")
    answer.says(r"2 rows of the bill give prices")
    answer.says(r"Not used: 1 row used at no cost")
    answer.says(r"Not used: 1 row not priced by the hour but by Units/Hour")
    answer.says(r"aws/us-east-1/SMALL 2024-09-18 0\.200 USD")
    ask("nephoscope cost prices --book book.yaml").says(r"aws/us-east-1/SMALL .* 0\.200 USD")


def test_what_does_an_hour_cost_by_the_price_list_of_aws(ask: Asking) -> None:
    """I downloaded the offer file of EC2: what does an m5.large with Linux cost in Frankfurt?"""
    products, terms = {}, {}
    for sku, system, price in (("A", "Linux", "0.115"), ("B", "Windows", "0.207")):
        attributes = {
            "instanceType": "m5.large",
            "location": "EU (Frankfurt)",
            "operatingSystem": system,
            "tenancy": "Shared",
        }
        products[sku] = {"productFamily": "Compute Instance", "attributes": attributes}
        price_of_hour = {"unit": "Hrs", "pricePerUnit": {"USD": price}}
        terms[sku] = {"T": {"priceDimensions": {"D": price_of_hour}}}
    offers = {
        "formatVersion": "v1.0",
        "offerCode": "AmazonEC2",
        "publicationDate": "2024-12-19T00:00:00Z",
        "products": products,
        "terms": {"OnDemand": terms},
    }
    ask.write("offers.json", json.dumps(offers))
    answer = ask("nephoscope cost prices --book offers.json")
    answer.says(r"1 row of an AWS price list gives prices\. - Not used: 1 row not with Linux")
    answer.says(r"0\.115 USD")
    (offer,) = ask("nephoscope cost prices --book offers.json --json").json()["offers"]
    assert (offer["name"], offer["date"]) == ("aws/EU (Frankfurt)/m5.large", "2024-12-19")


def test_what_does_a_hundred_hours_cost_by_azures_prices(ask: Asking) -> None:
    """I saved the answer of Azure Retail Prices: what is the cheapest way to buy a D2s v3?"""
    item = {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "armRegionName": "westeurope",
        "armSkuName": "Standard_D2s_v3",
        "serviceName": "Virtual Machines",
        "productName": "Virtual Machines DSv3 Series",
        "skuName": "D2s v3",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "retailPrice": 0.096,
        "effectiveStartDate": "2024-10-01T00:00:00Z",
    }
    items = [item, item | {"skuName": "D2s v3 Spot", "retailPrice": 0.019}]
    items.append(item | {"type": "Reservation", "retailPrice": 500.0})
    ask.write("az.json", json.dumps({"BillingCurrency": "USD", "Items": items}))
    answer = ask("nephoscope cost prices --book az.json --json").json()
    (offer,) = answer["offers"]
    assert (offer["on_demand_per_h"], offer["spot_per_h"]) == (0.096, 0.019)
    assert answer["left_out"] == {"of type Reservation": 1}
    words = "--mix fast=50%:1.2 --mix slow=50%:1 --offer azure/westeurope/Standard_D2s_v3"
    ask(f"nephoscope cost saving --book az.json {words} --hours 100 --trial 0s").says(r"USD")


def test_can_i_give_the_bill_or_list_that_i_have(ask: Asking) -> None:
    """I have a legacy AWS report, a list of hosts and a saved CloudAnalyst file: can I use them?"""
    ask.write("cur.csv", "identity/LineItemId,lineItem/UsageType\nabc,EUC1-BoxUsage:m5.large\n")
    answer = ask("nephoscope cost prices --import cur.csv", code=2)
    answer.says(r"this is a legacy AWS cost and usage report, not a bill in the FOCUS format")
    ask.write("hosts.yaml", "all:\n  hosts:\n    web1: {ansible_host: 192.0.2.10}\n")
    answer = ask("nephoscope run hosts.yaml --dry-run", code=2)
    answer.says(r"hosts\.yaml: this is an Ansible inventory, not a plan\.")
    saved = '<?xml version="1.0"?>\n<java class="java.beans.XMLDecoder">\n<object class="x.'
    ask.write("k.sim", f'{saved}cloudanalyst.Root"/>\n</java>\n')
    answer = ask("nephoscope simulate geo k.sim", code=2)
    answer.says(r"this is a saved simulation of CloudAnalyst, not a scenario\.")
    for asked in ask.asked:
        assert len(asked.err.splitlines()) == 1
