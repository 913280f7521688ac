"""What the double offers: regions, zones, types, images, quotas and prices."""

from __future__ import annotations

import hashlib

ACCOUNT = "000000000042"
PUBLISHER = "136693071363"

REGIONS = {
    "us-east-1": ("us-east-1a", "us-east-1b", "us-east-1c"),
    "eu-west-1": ("eu-west-1a", "eu-west-1b"),
    "ap-south-1": ("ap-south-1a", "ap-south-1b"),
}
CLOSED_REGIONS = ("me-south-1",)
"""Regions that exist and that the account has not opted in to."""

TYPES = {
    "t3.micro": (2, 1024, 0.0104),
    "t3.small": (2, 2048, 0.0208),
    "m5.large": (2, 8192, 0.096),
    "m5.xlarge": (4, 16384, 0.192),
    "c5.large": (2, 4096, 0.085),
    "c5.9xlarge": (36, 73728, 1.53),
    "m1.small": (1, 1740, 0.044),
}
"""Type -> virtual CPUs, MiB of memory, dollars an hour in us-east-1."""

OLD_TYPES = {"m1.small": ("us-east-1",)}
"""Types that are not offered everywhere, with the regions that have them."""

MULTIPLIER = {"us-east-1": 1.0, "eu-west-1": 1.12, "ap-south-1": 1.05}

IMAGES = {
    "debian-12-amd64-20260101-1000": "2026-01-01T00:00:00.000Z",
    "debian-12-amd64-20260801-1200": "2026-08-01T00:00:00.000Z",
}
IMAGE_GIB, IMAGE_VOLUME_TYPE = 8, "gp3"

# https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html: GiB, at least and at most.
VOLUME_TYPES = {
    "gp2": (1, 16384, 0.10),
    "gp3": (1, 16384, 0.08),
    "io1": (4, 16384, 0.125),
    "io2": (4, 65536, 0.125),
    "sc1": (125, 16384, 0.015),
    "st1": (125, 16384, 0.045),
    "standard": (1, 1024, 0.05),
}
"""Type of volumes -> smallest and largest size in GiB, dollars for a GiB and month."""

SNAPSHOT_GIB_MONTH, ADDRESS_H, BALANCER_H = 0.05, 0.005, 0.0225
MONTH_H = 730.0
EGRESS_GIB = (0.09, 0.085, 0.07, 0.05)
"""Dollars for a GiB to the Internet, tier by tier."""
ZONES_GIB = 0.01
"""Dollars for a GiB between zones, at each end."""

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html#ec2-on-demand-instances-limits
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-limits.html
QUOTAS = {
    "L-1216C47A": ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 64),
    "L-34B43A08": ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 64),
    "L-0263D0A3": ("EC2-VPC Elastic IPs", 5),
    "volumes": ("EBS volumes", 5000),
    "snapshots": ("EBS snapshots", 100000),
    "security-groups": ("VPC security groups per Region", 2500),
}
"""Code -> name, default value."""


def image_id(region: str, name: str) -> str:
    return "ami-" + hashlib.sha256(f"{region}{name}".encode()).hexdigest()[:17]


def strategies(type_name: str) -> tuple[str, ...]:
    """Of placement groups in which a type can be: "Current generation instances, except for
    burstable performance instances", in cluster groups:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html
    """
    is_slow = type_name.startswith("t") or type_name in OLD_TYPES
    return ("partition", "spread") if is_slow else ("cluster", "partition", "spread")


def offered(region: str, type_name: str) -> bool:
    return type_name in TYPES and region in OLD_TYPES.get(type_name, REGIONS)


def hourly(region: str, type_name: str) -> float:
    """Dollars an hour, on demand."""
    return round(TYPES[type_name][2] * MULTIPLIER[region], 6)


def spot_hourly(zone: str, type_name: str, at: float) -> float:
    """Dollars an hour on the spot market: another one every hour, 25 to 45 % of the other."""
    drawn = hashlib.sha256(f"{zone}{type_name}{int(at // 3600)}".encode()).digest()[0] / 255
    return round(hourly(zone[:-1], type_name) * (0.25 + 0.2 * drawn), 6)
