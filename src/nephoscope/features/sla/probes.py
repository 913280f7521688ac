"""Probes of services: addresses, and what the probe on a target is asked and answers.

The probes themselves are made by `nephoscope-probe observe` (crates/probe/src/http/observe).
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import jsontext
from nephoscope.core.records import dataclass

_SCRIPT = "script:"
_PORTS = {"http": 80, "https": 443, "dns": 53}
_SCHEMES = ("http", "https", "tcp", "icmp", "dns")
_MOST_NS = 1 << 62


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """Outcome of a probe.

    ok: None where the observer could not tell. response_ms: until the answer was complete; the
    timeout where there was none. reason: why it failed or is unknown; hint: what to do next.
    held_ns: from the request to the answer, on the target.
    """

    ok: bool | None
    response_ms: float | None = None
    reason: str = ""
    hint: str = ""
    held_ns: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    """A service to watch: its name and the address of the probe."""

    name: str
    address: str


def service_of(text: str) -> Service:
    """Returns the service of NAME=ADDRESS or ADDRESS. Raises UsageError."""
    name, equals, address = text.partition("=")
    if not equals or "://" in name or name.startswith(_SCRIPT):
        name, address = text, text
    if "," in name or '"' in name or any(ord(c) < 32 for c in name):
        raise UsageError(f"'{text[:80]}': a name has no commas or quotes.", "Use NAME=ADDRESS.")
    request_of(address)
    return Service(name, address)


def request_of(address: str) -> dict[str, Any]:
    """Returns the key `service` of a request to probe this address. Raises UsageError."""
    if address.startswith(_SCRIPT):
        with contextlib.suppress(ValueError):
            if words := shlex.split(address.removeprefix(_SCRIPT)):
                return {"kind": "script", "argv": words}
    else:
        # UnicodeError, of a name that the DNS cannot have, is a ValueError.
        with contextlib.suppress(ValueError):
            if service := _service(address):
                return service
    raise UsageError(
        f"'{address[:80]}' is no address of a service.",
        "Use http://HOST/, https://HOST/, tcp://HOST:PORT, icmp://HOST, dns://SERVER/NAME or "
        "script:COMMAND.",
    )


def _service(address: str) -> dict[str, Any] | None:
    url = urlsplit(address)
    port = url.port or _PORTS.get(url.scheme)
    if url.scheme not in _SCHEMES or not url.hostname:
        return None
    if url.scheme == "icmp":
        return {"kind": "icmp", "host": url.hostname}
    if port is None:
        return None
    if url.scheme == "tcp":
        return {"kind": "tcp", "host": url.hostname, "port": port}
    if url.scheme == "dns":
        name = url.path.strip("/").rstrip(".")
        name = name.encode("idna").decode() if name else ""
        return {"kind": "dns", "host": url.hostname, "port": port, "name": name} if name else None
    return {"kind": "http", "url": address}


def answer_of(line: bytes) -> tuple[int, ProbeOutcome]:
    """Returns the number of a request and its outcome. Raises ValueError for what is no answer."""
    values = jsontext.parse(line)
    if not isinstance(values, dict):
        raise ValueError("an answer is an object")
    number, held_ns = _whole(values, "id"), _whole(values, "held_ns")
    ok, response_ns = values.get("ok"), values.get("response_ns")
    if not (ok is None or isinstance(ok, bool)):
        raise ValueError("`ok` is neither true, false nor null")
    response_ms = None if response_ns is None else _whole(values, "response_ns") / 1e6
    reason, hint = (str(values.get(name, "")) for name in ("reason", "hint"))
    return number, ProbeOutcome(ok, response_ms, reason, hint, held_ns)


def _whole(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST_NS:
        raise ValueError(f"`{name}` is no whole number")
    return value
