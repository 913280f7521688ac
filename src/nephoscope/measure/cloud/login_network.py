"""From where logins to rented machines are let in."""

from __future__ import annotations

import socket
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from nephoscope.core.errors import UsageError, words_of


def login_network(text: str, endpoint: str, *, is_public: bool = True) -> str:
    """Returns the network that may log in, as CIDR; by default this machine's own address.

    is_public: whether the cloud is reached over the Internet, unless it has an endpoint. Raises
    UsageError where the cloud would see another address than this machine's own.
    """
    if text:
        try:
            return str(ip_network(text, strict=False))
        except ValueError:
            raise UsageError(
                f"'{text}' is no network.", "Write an address such as 203.0.113.7/32."
            ) from None
    # The address of a cloud whose endpoint is not given is public; nothing is sent to this one.
    address = ip_address(_own_address_toward(urlsplit(endpoint).hostname or "1.1.1.1"))
    if endpoint or not is_public or address.is_global:
        return f"{address}/{address.max_prefixlen}"
    raise UsageError(
        f"This machine's own address {address} is private, so the cloud sees another one.",
        "Give the public address as --login-from ADDRESS/32.",
    )


def _own_address_toward(host: str) -> str:
    """Returns the local address of packets to a host; connecting a datagram socket sends none."""
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host, 443, type=socket.SOCK_DGRAM
        )
        with socket.socket(family, kind, protocol) as own:
            own.connect(address)
            return str(own.getsockname()[0])
    except OSError as error:
        raise UsageError(
            f"This machine has no way to {host}: {words_of(error)}.",
            "Check the endpoint and the network.",
        ) from None
