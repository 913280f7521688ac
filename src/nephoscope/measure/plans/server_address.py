"""The address of a target's running service in the parameters of the client that loads it."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

SERVER_ADDRESS = "{server}"
"""Stands in a text parameter for the address of the target whose running service is measured."""


def mentions_server(value: Any) -> bool:
    """Returns whether the value of a parameter has the placeholder in it."""
    if isinstance(value, list):
        return any(map(mentions_server, value))
    return isinstance(value, str) and SERVER_ADDRESS in value


def with_server_address(params: Mapping[str, Any], address: str) -> dict[str, Any]:
    """Returns the parameters with the address filled in; in a URL, that of IPv6 in brackets."""
    return {name: _filled(value, address) for name, value in params.items()}


def _filled(value: Any, address: str) -> Any:
    if isinstance(value, list):
        return [_filled(item, address) for item in value]
    if not mentions_server(value):
        return value
    brackets = "://" in value and ip_address(address).version == 6
    return value.replace(SERVER_ADDRESS, f"[{address}]" if brackets else address)
