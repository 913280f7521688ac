"""Regions, zones, types, tags, quotas, prices, and who is asking."""

from __future__ import annotations

import json
from typing import Any

from . import catalogue
from .calls import Call, action, checked_tags, need_zone, paged
from .cloud import PREFIXES
from .errors import ApiError, not_found
from .network import VPC


@action("DescribeRegions")
def describe_regions(call: Call) -> dict[str, Any]:
    names = list(catalogue.REGIONS)
    if call.p.get("AllRegions"):
        names += catalogue.CLOSED_REGIONS
    for asked in call.p.get("RegionNames", ()):
        if asked not in names:
            raise ApiError("InvalidParameterValue", f"Invalid region '{asked}'")
    wanted = call.p.get("RegionNames") or names
    return {
        "Regions": [
            {
                "RegionName": name,
                "Endpoint": f"ec2.{name}.amazonaws.com",
                "OptInStatus": "opt-in-not-required"
                if name in catalogue.REGIONS
                else "not-opted-in",
            }
            for name in names
            if name in wanted
        ]
    }


@action("DescribeAvailabilityZones")
def describe_availability_zones(call: Call) -> dict[str, Any]:
    wanted = call.p.get("ZoneNames") or catalogue.REGIONS[call.region]
    return {
        "AvailabilityZones": [
            {
                "ZoneName": need_zone(call, zone),
                "RegionName": call.region,
                "State": "available",
                "ZoneType": "availability-zone",
                "OptInStatus": "opt-in-not-required",
            }
            for zone in wanted
        ]
    }


@action("DescribeInstanceTypes")
def describe_instance_types(call: Call) -> dict[str, Any]:
    names = [name for name in sorted(catalogue.TYPES) if catalogue.offered(call.region, name)]
    for asked in call.p.get("InstanceTypes", ()):
        if asked not in names:
            raise ApiError(
                "InvalidInstanceType",
                f"The following supplied instance types do not exist: [{asked}]",
            )
    wanted = call.p.get("InstanceTypes") or names
    page, token = paged(
        call, [name for name in names if name in wanted], bool(call.p.get("InstanceTypes"))
    )
    shown = [
        {
            "InstanceType": name,
            "CurrentGeneration": name not in catalogue.OLD_TYPES,
            "VCpuInfo": {"DefaultVCpus": catalogue.TYPES[name][0]},
            "MemoryInfo": {"SizeInMiB": catalogue.TYPES[name][1]},
            "SupportedUsageClasses": ["on-demand", "spot"],
            "PlacementGroupInfo": {"SupportedStrategies": list(catalogue.strategies(name))},
        }
        for name in page
    ]
    return {"InstanceTypes": shown, **({"NextToken": token} if token else {})}


@action("DescribeInstanceTypeOfferings")
def describe_instance_type_offerings(call: Call) -> dict[str, Any]:
    pairs = [
        {"InstanceType": name, "LocationType": "availability-zone", "Location": zone}
        for name in sorted(catalogue.TYPES)
        if catalogue.offered(call.region, name)
        for zone in catalogue.REGIONS[call.region]
    ]
    page, token = paged(call, pairs)
    return {"InstanceTypeOfferings": page, **({"NextToken": token} if token else {})}


def _factor(call: Call) -> float:
    """The planted factor on the spot prices now."""
    factors = [each for at, each in call.cloud.settings["spot_factors"] if at <= call.now]
    return float(factors[-1]) if factors else 1.0


@action("DescribeSpotPriceHistory")
def describe_spot_price_history(call: Call) -> dict[str, Any]:
    zones = [
        z for z in catalogue.REGIONS[call.region] if call.p.get("AvailabilityZone") in (None, z)
    ]
    rows = [
        {
            "AvailabilityZone": zone,
            "InstanceType": name,
            "ProductDescription": "Linux/UNIX",
            "SpotPrice": f"{_factor(call) * catalogue.spot_hourly(zone, name, call.now):.6f}",
            "Timestamp": call.now - call.now % 3600,
        }
        for name in call.p.get("InstanceTypes") or catalogue.TYPES
        if catalogue.offered(call.region, name)
        for zone in zones
    ]
    page, token = paged(call, rows)
    return {"SpotPriceHistory": page, **({"NextToken": token} if token else {})}


@action("DescribeVpcs")
def describe_vpcs(call: Call) -> dict[str, Any]:
    return {
        "Vpcs": [
            {"VpcId": VPC, "IsDefault": True, "State": "available", "CidrBlock": "10.77.0.0/16"}
        ]
    }


@action("CreateTags")
def create_tags(call: Call) -> dict[str, Any]:
    tags = checked_tags(call.p.get("Tags", ()))
    for each in _tagged(call):
        for key, value in tags.items():
            each.tag(call.now, key, value)
    return {}


@action("DeleteTags")
def delete_tags(call: Call) -> dict[str, Any]:
    for each in _tagged(call):
        for tag in call.p.get("Tags", ()):
            each.tag(call.now, tag["Key"], None)
    return {}


def _tagged(call: Call) -> list[Any]:
    kinds = {prefix: kind for kind, prefix in PREFIXES.items()}
    found = []
    for id in call.p.get("Resources", ()):
        kind = kinds.get(id.rpartition("-")[0])
        if kind is None:
            raise ApiError("InvalidID", f"The ID '{id}' is not valid")
        if kind == "spot-instances-request":
            raise not_found("instance", id)
        found.append(call.find(kind, id))
    return found


@action("GetCallerIdentity", "sts")
def get_caller_identity(call: Call) -> dict[str, Any]:
    return {
        "Account": catalogue.ACCOUNT,
        "UserId": "AIDANEPHOSCOPE",
        "Arn": f"arn:aws:iam::{catalogue.ACCOUNT}:user/tester",
    }


@action("GetServiceQuota", "servicequotas")
def get_service_quota(call: Call) -> dict[str, Any]:
    code = call.p["QuotaCode"]
    if call.p["ServiceCode"] != "ec2" or not code.startswith("L-") or code not in call.cloud.quotas:
        raise ApiError(
            "NoSuchResourceException",
            "The request failed because the specified service quota does not exist.",
        )
    return {
        "Quota": {
            "ServiceCode": "ec2",
            "QuotaCode": code,
            "QuotaName": catalogue.QUOTAS[code][0],
            "Value": call.cloud.quotas[code],
            "Unit": "None",
        }
    }


# The Price List API answers in us-east-1 for all regions, with each product as a JSON text:
# https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
@action("GetProducts", "pricing")
def get_products(call: Call) -> dict[str, Any]:
    asked = {each["Field"]: each["Value"] for each in call.p.get("Filters", ())}
    region, name = asked.get("regionCode"), asked.get("instanceType", "")
    family = asked.get("productFamily", "Compute Instance")
    products: list[str] = []
    if region in catalogue.REGIONS and asked.get("group") == "VPCPublicIPv4Address":
        products = [_product(asked, catalogue.ADDRESS_H, "Hrs")]
    elif (
        asked.get("fromRegionCode") in catalogue.REGIONS and asked["transferType"] == "IntraRegion"
    ):
        products = [_product(asked, catalogue.ZONES_GIB, "GB")]
    elif asked.get("fromRegionCode") in catalogue.REGIONS:
        tiers = () if "egress" in call.cloud.settings["unpriced"] else catalogue.EGRESS_GIB
        products = [_product(asked, price, "GB") for price in tiers]
    elif region in catalogue.REGIONS and family == "Storage":
        kind = catalogue.VOLUME_TYPES.get(asked.get("volumeApiName", ""))
        products = [_product(asked, kind[2], "GB-Mo")] if kind else []
    elif region in catalogue.REGIONS and family == "Storage Snapshot":
        prices = {
            "EBS:SnapshotUsage": catalogue.SNAPSHOT_GIB_MONTH,
            "EBS:SnapshotArchiveEarlyDelete": 9.0,
        }
        products = [
            _product({**asked, "usagetype": f"USE1-{usage}"}, price, "GB-Mo")
            for usage, price in prices.items()
        ]
    elif region in catalogue.REGIONS and catalogue.offered(region, name):
        unpriced = name in call.cloud.settings["unpriced"]
        products = [] if unpriced else [_product(asked, catalogue.hourly(region, name), "Hrs")]
    return {"FormatVersion": "aws_v1", "PriceList": products}


def _product(attributes: dict[str, str], price: float, unit: str) -> str:
    dimension = {
        "unit": unit,
        "pricePerUnit": {"USD": f"{price:.10f}"},
        "beginRange": "0",
        "endRange": "Inf",
    }
    term = {
        "effectiveDate": "2026-11-01T00:00:00Z",
        "priceDimensions": {"SKU.JRTCKXETXF.6YS6EN2CT7": dimension},
    }
    return json.dumps(
        {
            "product": {"productFamily": "x", "attributes": attributes, "sku": "SKU"},
            "serviceCode": "AmazonEC2",
            "terms": {"OnDemand": {"SKU.JRTCKXETXF": term}},
            "publicationDate": "2026-11-20T00:00:00Z",
        }
    )
