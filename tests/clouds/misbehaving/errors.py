"""Errors of the API, with the codes of the provider's own list.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
"""

from __future__ import annotations


class ApiError(Exception):
    """An error that the caller is told. status: of HTTP."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class Dropped(Exception):
    """The connection ends without an answer."""


NOT_FOUND = {
    "instance": "InvalidInstanceID.NotFound",
    "volume": "InvalidVolume.NotFound",
    "snapshot": "InvalidSnapshot.NotFound",
    "image": "InvalidAMIID.NotFound",
    "security-group": "InvalidGroup.NotFound",
    "key-pair": "InvalidKeyPair.NotFound",
    "elastic-ip": "InvalidAllocationID.NotFound",
    "launch-template": "InvalidLaunchTemplateId.NotFound",
    "network-interface": "InvalidNetworkInterfaceID.NotFound",
    "placement-group": "InvalidPlacementGroup.Unknown",
    "load-balancer": "LoadBalancerNotFound",
}
"""Kind of resource -> the code for an id that is not there."""


def not_found(kind: str, what: str) -> ApiError:
    """The error for an id or name that is not there, or not yet visible."""
    return ApiError(NOT_FOUND[kind], f"The {kind.replace('-', ' ')} ID '{what}' does not exist")
