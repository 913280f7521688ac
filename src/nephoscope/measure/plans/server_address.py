"""The address of a running server or service in the parameters of the client that loads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import unquote

from nephoscope.catalog import BenchmarkSpec
from nephoscope.measure.targets.kinds.service import ServiceRecord

SERVER_ADDRESS = "{server}"
"""Stands in a text parameter for the address of the target whose running service is measured."""

SERVICE_URL = "{url}"
"""Stands in a text parameter for the URL of the service that is measured, without a final slash."""

AUTHORISED = "authorised_hosts"
"""The parameter with the hosts that a load generator may load besides this machine."""


def mentions_server(value: Any, placeholders: Iterable[str] = (SERVER_ADDRESS,)) -> bool:
    """Returns whether the value of a parameter has one of the placeholders in it."""
    if isinstance(value, list):
        return any(mentions_server(item, placeholders) for item in value)
    return isinstance(value, str) and any(mark in value for mark in placeholders)


def with_server_address(params: Mapping[str, Any], address: str) -> dict[str, Any]:
    """Returns the parameters with the address filled in; in a URL, that of IPv6 in brackets."""
    return {name: _filled(value, address, "") for name, value in params.items()}


def with_service(
    params: Mapping[str, Any], spec: BenchmarkSpec, service: ServiceRecord
) -> dict[str, Any]:
    """Returns the parameters with what the service says of itself; the plan's own go first."""
    own = {
        name: _filled(value, service.host, service.url.removesuffix("/"))
        for name, value in params.items()
    }
    filled = {**service_params(spec, service), **own}
    if spec.has(AUTHORISED):
        filled[AUTHORISED] = [*service.authorised_hosts, *own.get(AUTHORISED, ())]
    return filled


def service_params(spec: BenchmarkSpec, service: ServiceRecord) -> dict[str, Any]:
    """Returns the parameters of a benchmark that a service sets; empty where none names a far side.

    They are its URL, its host and port, or the directory of a block device.
    """
    scheme = service.parts.scheme
    values: dict[str, Any] = {}
    if scheme == "file":
        values["directory"] = unquote(service.parts.path)
    elif scheme in ("http", "https"):
        values |= {"url": service.url, "endpoint": service.url}
        if service.product == "object store" and spec.has("endpoint"):
            values |= {"service": "s3", "bucket": service.bucket}
            values |= {"region": service.region} if service.region else {}
    if service.host and spec.has("host"):
        values["host"] = service.host
        values |= {"port": service.port} if service.port is not None else {}
        if scheme in ("redis", "memcached"):
            values["protocol"] = scheme
    return {name: value for name, value in values.items() if spec.has(name)}


def _filled(value: Any, address: str, url: str) -> Any:
    if isinstance(value, list):
        return [_filled(item, address, url) for item in value]
    if not isinstance(value, str):
        return value
    if url:
        value = value.replace(SERVICE_URL, url)
    if not mentions_server(value):
        return value
    in_brackets = "://" in value and _is_ipv6(address)
    return value.replace(SERVER_ADDRESS, f"[{address}]" if in_brackets else address)


def _is_ipv6(address: str) -> bool:
    try:
        return isinstance(ip_address(address), IPv6Address)
    except ValueError:
        return False
