"""Addresses of Spark clusters, with the settings of an engine behind a question mark."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass

CLASSIC, CONNECT = "spark://", "sc://"
SCHEMES = (CLASSIC, CONNECT)
DEFAULT_PORTS = {CLASSIC: 7077, CONNECT: 15002}
TIMEOUT_S = 600.0
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class SparkUrl:
    """A cluster. scheme: CLASSIC or CONNECT. addresses: host and port of each master, or of the
    server. rest: of a URL of Spark Connect from '/' on, which may hold a token. cores: maximum
    number of them; None for the cluster's default. timeout_s: of each question."""

    scheme: str
    addresses: tuple[tuple[str, int], ...]
    rest: str = ""
    cores: int | None = None
    timeout_s: float = TIMEOUT_S

    @classmethod
    def parsed(cls, url: str) -> SparkUrl:
        """Returns the parts of spark://HOST:PORT[,HOST:PORT…][?cores=N&timeout=TIME] or
        sc://HOST:PORT[/;…][?timeout=TIME]. Raises UsageError."""
        scheme = next(scheme for scheme in SCHEMES if url.startswith(scheme))
        place, _, query = url.removeprefix(scheme).partition("?")
        addresses, slash, rest = place.partition("/")
        matches = [_ADDRESS.fullmatch(text) for text in addresses.split(",")]
        ports = [int(match[2] or DEFAULT_PORTS[scheme]) if match else 0 for match in matches]
        if not all(0 < port < 65536 for port in ports) or (scheme == CLASSIC and slash):
            raise UsageError(
                f"'{scheme}{addresses[:60]}' is no address of a Spark cluster.",
                "Use spark://HOST:PORT for a master, or sc://HOST:PORT for a Spark Connect server.",
            )
        hosts = [match[1] for match in matches if match]
        settings = dict(parse_qsl(query, keep_blank_values=True))
        known = {"cores", "timeout"} if scheme == CLASSIC else {"timeout"}
        if unknown := settings.keys() - known:
            raise UsageError(
                f"An engine has no setting '{min(unknown)[:40]}'.",
                f"Settings of {scheme}: {', '.join(sorted(known))}, e.g. ?timeout=10min.",
            )
        return cls(
            scheme,
            tuple(zip(hosts, ports, strict=True)),
            slash + rest,
            _cores(settings.get("cores")),
            _timeout_s(settings.get("timeout")),
        )

    def __str__(self) -> str:
        """Returns the address without its token."""
        return self.scheme + ",".join(f"{host}:{port}" for host, port in self.addresses)

    @property
    def full(self) -> str:
        """The address as Spark takes it."""
        return f"{self}{self.rest}"

    @property
    def is_loopback(self) -> bool:
        """States whether all of the cluster's addresses are of this machine."""
        return all(
            host in ("localhost", "[::1]") or host[:4] == "127." for host, _ in self.addresses
        )


def _cores(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 0 < int(text) < 100_000:
        raise UsageError(f"'{text[:40]}' is no number of cores.", "Use, for example, ?cores=8.")
    return int(text)


def _timeout_s(text: str | None) -> float:
    if text is None:
        return TIMEOUT_S
    seconds = units.parse_duration_ns(text) / 1e9
    if not 1 <= seconds <= 30 * 86_400:
        raise UsageError(f"The timeout {text[:40]} is not within 1 s and 30 d.", "Use ?timeout=1h.")
    return seconds
