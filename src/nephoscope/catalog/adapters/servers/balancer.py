"""Parameters and metrics that load balancers have in common, and the servers behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from nephoscope.catalog import MetricSpec, ParamSpec
from nephoscope.catalog.adapters.frame import ToolStep
from nephoscope.catalog.adapters.quantities import boolean, period, text, whole
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Shape
from nephoscope.core.records import dataclass

SOCKET = "status.sock"
"""Where a balancer shows its counters: a socket in its scratch folder, so that only we reach it."""

ROUND_ROBIN, LEAST, SOURCE, RANDOM = "round_robin", "least_connections", "source_hash", "random_two"

ADDRESS = text("address", "127.0.0.1", "IP address of the target to listen on.")
PORT = whole("port", 0, 0, 65_535, "TCP port to listen on; 0 takes a free one.")

PARAMS = (
    ADDRESS,
    PORT,
    ParamSpec(
        "backends",
        "text_list",
        "none",
        [],
        "Servers behind the balancer, each as address:port or address:port weight.",
    ),
    ParamSpec(
        "algorithm",
        "choice",
        "none",
        ROUND_ROBIN,
        "Choice of the server of a request. Of random_two, two are drawn and the one with fewer "
        "connections is taken.",
        choices=(ROUND_ROBIN, LEAST, SOURCE, RANDOM),
    ),
    boolean(
        "server_keep_alive", True, "Whether connections to the servers serve more than one request."
    ),
    whole("threads", 1, 1, 256, "Threads of the balancer; nginx has one."),
    whole("connections", 4096, 16, 100_000, "Maximum number of connections of clients."),
    whole(
        "server_connections",
        0,
        0,
        100_000,
        "Maximum number of connections to a server; 0 for no limit.",
    ),
    period(
        "timeout_ns",
        "1s",
        "1ms",
        "1h",
        "Time in which a server has to accept a connection, and to send.",
    ),
)


def metric(name: str, doc: str, unit: str = "count", *, headline: bool = False) -> MetricSpec:
    """Returns a metric of a server, of which neither more nor less is better."""
    return MetricSpec(name, unit, Better.NONE, Shape.SCALAR, headline, doc)


def events(name: str, doc: str) -> MetricSpec:
    """Returns a metric of counts in time."""
    return MetricSpec(name, "count", Better.NONE, Shape.SERIES, False, doc)


CPU = metric("cpu_ns", "CPU time of the server's processes.", "ns")
STARTED = metric("started_wall_ns", "When it began to serve, on the wall clock.", "ns")

METRICS = (
    metric("forwarded_count", "Requests that clients sent to the balancer.", headline=True),
    metric("failed_count", "Requests that it answered with status 5xx, or not at all."),
    metric("retries_count", "Attempts at a server that were made again."),
    CPU,
    STARTED,
    events("server_down_count", "Moments at which a server was first seen to fail, by server."),
    events("server_up_count", "Moments at which a server was seen to work again, by server."),
)

ASK = ToolStep(
    "curl", ("--silent", "--show-error", "--unix-socket", SOCKET, "http://localhost/;csv")
)
"""Reads a balancer's counters."""


def fill_in(template: str, values: Mapping[str, str]) -> str:
    """Returns a text with each name replaced by its value, in the order of the values."""
    for name, value in values.items():
        template = template.replace(name, value)
    return template


def milliseconds(value_ns: int) -> str:
    """Returns a time as configurations have it: in whole milliseconds, at least one."""
    return f"{max(1, value_ns // 1_000_000)}ms"


@dataclass(frozen=True, slots=True)
class Backend:
    """A server behind a balancer."""

    address: str
    weight: int


def backends_of(benchmark: str, params: Mapping[str, Any]) -> list[Backend]:
    """Returns the servers behind a balancer. Raises UsageError for what is none."""
    backends = [_backend(benchmark, text) for text in params["backends"]]
    if not backends:
        raise UsageError(
            f"{benchmark}: `backends` is empty.", "Name a server, such as 10.0.0.2:8080."
        )
    return backends


def _backend(benchmark: str, text: str) -> Backend:
    match = re.fullmatch(r"([0-9.]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})(?: ([0-9]{1,3}))?", text)
    try:
        if match is None or not 0 < int(match[2]) < 65_536:
            raise ValueError
        ip_address(match[1].strip("[]"))
    except ValueError:
        raise UsageError(
            f"{benchmark}: '{text}' names no server.",
            "Write address:port or address:port weight, such as 10.0.0.2:8080 2.",
        ) from None
    weight = int(match[3] or 1)
    if not 1 <= weight <= 256:
        raise UsageError(f"{benchmark}: {weight} is no weight.", "Use 1 to 256.")
    return Backend(f"{match[1]}:{match[2]}", weight)
