"""Prices of Amazon: its price list for machines on demand, the spot market's history.

The Price List API: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/
API_pricing_GetProducts.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from nephoscope.measure.cloud.model import MachinePrices, MachineRequest, StoragePrices
from nephoscope.measure.cloud.provider import CloudError
from nephoscope.measure.cloud.providers.ec2_calls import Ec2Calls
from nephoscope.measure.cloud.providers.ec2_errors import incomplete

_LIST_REGION = "us-east-1"
"""Where the price list of all regions is."""

_LINUX = "Linux/UNIX"
_MONTH_H = 730.0
DEFAULT_VOLUME = "gp2"
"""The type of a volume for which a request names none."""

_BY_SIZE = (DEFAULT_VOLUME, "gp3", "st1", "sc1")
"""Types of volumes that are billed by their size alone, as they are made here: others have a price
of their own for operations."""

_SNAPSHOTS = "EBS:SnapshotUsage"
_ENDS = 2
"""Of traffic between zones, which is billed to the sender and to the receiver:
https://aws.amazon.com/ec2/pricing/on-demand/ (Data Transfer within the same AWS Region)."""

_MINIMUM_S = 60.0
"""Billed at least for Linux machines, then by the second."""


def prices(calls: Ec2Calls, request: MachineRequest) -> MachinePrices | None:
    """Returns the prices of one machine; None without a list, for images that cost more, and
    for disks that are not billed by their size alone."""
    image = calls.image_details(request.region, request.image)
    if image.get("PlatformDetails", _LINUX) != _LINUX:
        return None
    if request.market == "spot":
        per_h, source = _spot(calls, request)
    else:
        per_h, source = _on_demand(calls, request)
    if per_h is None:
        return None
    region = request.region
    disks = [each["Ebs"] for each in image.get("BlockDeviceMappings", ()) if "Ebs" in each]
    types = {disk.get("VolumeType", DEFAULT_VOLUME) for disk in disks}
    if not types <= set(_BY_SIZE):
        return None
    storage = [_volume_price(calls, region, name)[0] for name in types]
    is_known = None not in storage
    address = _price(calls, "AmazonVPC", group="VPCPublicIPv4Address", regionCode=region)
    # The dearest tier of the way to the Internet: to other regions it costs no more.
    out = _price(calls, "AWSDataTransfer", fromRegionCode=region, transferType="AWS Outbound")
    near = _price(calls, "AWSDataTransfer", fromRegionCode=region, transferType="IntraRegion")
    return MachinePrices(
        per_h,
        egress_gib=out[0],
        zones_gib=None if near[0] is None else _ENDS * near[0],
        address_h=address[0],
        storage_gib_h=max(filter(None, storage), default=0.0) / _MONTH_H if is_known else None,
        minimum_s=_MINIMUM_S,
        source=source,
        disk_bytes=sum(disk.get("VolumeSize", 0) << 30 for disk in disks),
    )


def storage_prices(calls: Ec2Calls, region: str, type_: str) -> StoragePrices | None:
    """Returns the prices of a type of volumes and of snapshots; None without a list, and for types
    that are not billed by their size alone."""
    name = type_ or DEFAULT_VOLUME
    if name not in _BY_SIZE:
        return None
    volume, source = _volume_price(calls, region, name)
    snapshot, _ = _price(
        calls,
        "AmazonEC2",
        _SNAPSHOTS,
        productFamily="Storage Snapshot",
        regionCode=region,
    )
    if volume is None:
        return None
    per_h = None if snapshot is None else snapshot / _MONTH_H
    return StoragePrices(volume / _MONTH_H, per_h, source=source)


def _volume_price(calls: Ec2Calls, region: str, type_: str) -> tuple[float | None, str]:
    """Returns the price of a GiB for a month, and where it was read."""
    return _price(
        calls, "AmazonEC2", productFamily="Storage", volumeApiName=type_, regionCode=region
    )


def _on_demand(calls: Ec2Calls, request: MachineRequest) -> tuple[float | None, str]:
    return _price(
        calls,
        "AmazonEC2",
        instanceType=request.type,
        regionCode=request.region,
        operatingSystem="Linux",
        preInstalledSw="NA",
        tenancy="Shared",
        capacitystatus="Used",
    )


def _price(
    calls: Ec2Calls, service: str, usage: str = "", **attributes: str
) -> tuple[float | None, str]:
    """Returns the highest price of the products of these attributes, and where it was read.

    usage: the end of their type of usage.
    """
    filters = [
        {"Type": "TERM_MATCH", "Field": field, "Value": value}
        for field, value in attributes.items()
    ]
    parameters = {"ServiceCode": service, "Filters": filters}
    try:
        answer = calls.call("get_products", _LIST_REGION, "pricing", **parameters)
    except CloudError as error:
        if error.passes:
            raise
        # A cloud without a price list, or a caller who may not read it.
        return None, ""
    if "PriceList" not in answer:
        raise incomplete("GetProducts")
    products = [
        product
        for product in (json.loads(text) for text in answer["PriceList"])
        if str(product["product"]["attributes"].get("usagetype", "")).endswith(usage)
    ]
    listed = [each for product in products for each in _dollars(product)]
    if not listed:
        return None, ""
    date = max(str(product.get("publicationDate", ""))[:10] for product in products)
    return max(listed), f"AWS price list of {date}"


def _dollars(product: Mapping[str, Any]) -> Iterator[float]:
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            if "USD" in dimension["pricePerUnit"]:
                yield float(dimension["pricePerUnit"]["USD"])


def _spot(calls: Ec2Calls, request: MachineRequest) -> tuple[float | None, str]:
    """Returns the price of the spot market now: in the zone, else the highest of all zones."""
    if not calls.is_modern(request.region):
        return None, ""
    now = datetime.now(UTC)
    parameters: dict[str, Any] = {
        "InstanceTypes": [request.type],
        "ProductDescriptions": [_LINUX],
        "StartTime": now,
    }
    if request.zone:
        parameters["AvailabilityZone"] = request.zone
    rows = calls.call("describe_spot_price_history", request.region, **parameters)[
        "SpotPriceHistory"
    ]
    listed = [float(each["SpotPrice"]) for each in rows]
    where = request.zone or f"highest of {request.region}"
    return max(listed, default=None), f"spot market ({where}), {now:%Y-%m-%d %H:%M} UTC"
