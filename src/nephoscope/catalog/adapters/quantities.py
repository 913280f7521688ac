"""Parameters and metrics that third-party tools have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from nephoscope.catalog import MetricSpec, ParamSpec
from nephoscope.catalog.adapters.frame import ToolError
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Shape
from nephoscope.core.units import parse_duration_ns

Params = Mapping[str, Any]


def whole(name: str, default: int, low: int, high: int, doc: str, unit: str = "count") -> ParamSpec:
    """Returns a parameter that is a whole number."""
    return ParamSpec(name, "int", unit, default, doc, min=low, max=high)


def choice(name: str, choices: Iterable[str], doc: str, *, default: str = "") -> ParamSpec:
    """Returns a parameter that is one of several words, by default the first."""
    words = tuple(choices)
    return ParamSpec(name, "choice", "none", default or words[0], doc, choices=words)


def boolean(name: str, default: bool, doc: str) -> ParamSpec:
    """Returns a parameter that is true or false."""
    return ParamSpec(name, "bool", "none", default, doc)


def text(name: str, default: str, doc: str) -> ParamSpec:
    """Returns a parameter that is any text."""
    return ParamSpec(name, "text", "none", default, doc)


def period(name: str, default: str, low: str, high: str, doc: str) -> ParamSpec:
    """Returns a parameter that is a length of time; its default and bounds as users write times."""
    default_ns, low_ns, high_ns = map(parse_duration_ns, (default, low, high))
    return whole(name, default_ns, low_ns, high_ns, doc, unit="ns")


def threads(doc: str) -> ParamSpec:
    """Returns the parameter of how many threads or processes a tool has."""
    return whole("threads", 1, 1, 1_024, doc)


def duration(default_s: int) -> ParamSpec:
    """Returns the parameter of how long a tool runs."""
    doc = "Time that it runs, in whole seconds."
    return period("duration_ns", f"{default_s}s", "1s", "24h", doc)


def timeout(default_s: int) -> ParamSpec:
    """Returns the parameter of how long a tool waits for a response."""
    doc = "Time after which a response counts as an error, in whole seconds."
    return period("timeout_ns", f"{default_s}s", "1s", "24h", doc)


_UNITS = {
    "s": ("seconds", 1_000_000_000),
    "ms": ("milliseconds", 1_000_000),
    "us": ("microseconds", 1_000),
}


def whole_units(tool: str, params: Params, name: str, unit: str) -> int:
    """Returns a parameter's time in s, ms or us; UsageError unless it is a whole number of them."""
    words, unit_ns = _UNITS[unit]
    value, rest = divmod(params[name], unit_ns)
    if rest:
        raise UsageError(
            f"{tool}: {name} must be a whole number of {words}, because {tool} counts them.",
            f"Set {name}={max(1, value)}{unit}.",
        )
    return int(value)


def seconds(tool: str, params: Params, name: str = "duration_ns") -> int:
    """Returns a parameter's time in seconds; UsageError unless it is a whole number of them."""
    return whole_units(tool, params, name, "s")


def options(params: Params, names: Mapping[str, str]) -> list[str]:
    """Returns the words of a command line: each option, and the value of its parameter.

    names: option -> parameter; the value of an option that ends with `=` is in the same word.
    """
    words: list[str] = []
    for option, name in names.items():
        value = str(params[name])
        words += [option + value] if option.endswith("=") else [option, value]
    return words


def rate(name: str, doc: str, *, headline: bool = True, unit: str = "per_s") -> MetricSpec:
    """Returns a metric of which more is better."""
    return MetricSpec(name, unit, Better.HIGHER, Shape.SCALAR, headline, doc)


def throughput(name: str, doc: str, *, headline: bool = True) -> MetricSpec:
    """Returns a metric in bytes per second of which more is better."""
    return rate(name, doc, headline=headline, unit="bytes_per_s")


def time(name: str, doc: str, *, headline: bool = False) -> MetricSpec:
    """Returns a metric in nanoseconds of which less is better."""
    return MetricSpec(name, "ns", Better.LOWER, Shape.SCALAR, headline, doc)


_STATISTICS = {
    "min": "Shortest",
    "mean": "Mean",
    "p50": "Median",
    "p90": "90th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "p999": "99.9th percentile",
    "max": "Longest",
}


def latencies(*statistics: str) -> list[MetricSpec]:
    """Returns metrics of the times that the metric before them explains."""
    return [
        time(f"latency_{name}_ns", f"{_STATISTICS[name]} of these times.") for name in statistics
    ]


def figure(name: str, unit: str, doc: str, *, better: Better = Better.NONE) -> MetricSpec:
    """Returns a metric that is not a headline, in any unit."""
    return MetricSpec(name, unit, better, Shape.SCALAR, False, doc)


ERRORS = "errors_count"


def errors(doc: str) -> MetricSpec:
    """Returns the metric of how many operations failed."""
    return figure(ERRORS, "count", doc, better=Better.LOWER)


HOST = text("host", "127.0.0.1", "Name or IP address of the far side.")

DIRECTORY = text("directory", "", "Directory of its files; empty takes $TMPDIR, else /var/tmp.")


def checked_host(tool: str, host: str) -> str:
    """Returns a host's name or address; UsageError for what the tool would read as an option."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.:%_-]*|:[A-Za-z0-9.:%_-]+", host, re.ASCII):
        raise UsageError(
            f"{tool}: host '{host[:60]}' is no name or address of a host.",
            "Set host to a name or an IP address.",
        )
    return host


def share(name: str, doc: str) -> MetricSpec:
    """Returns a metric that is a share, of which less is better."""
    return MetricSpec(name, "ratio", Better.LOWER, Shape.SCALAR, False, doc, share=True)


RETRANSMITS = figure(
    "retransmits_count", "count", "Number of retransmitted TCP segments.", better=Better.LOWER
)

ROUND_TRIPS = (
    MetricSpec(
        "rtt_sent_ns",
        "ns",
        Better.LOWER,
        Shape.HISTOGRAM,
        True,
        "Round-trip time of each answered probe, as the tool prints it.",
    ),
    time("rtt_sent_mean_ns", "Mean of these times."),
    time("rtt_sent_max_ns", "Maximum of these times; grows with the number of probes."),
    time("rtt_sent_stdev_ns", "Standard deviation of these times."),
    share("loss_ratio", "Share of probes without an answer."),
)


def datagrams(
    least_bits_per_s: int, least_bytes: int, rate_doc: str = ""
) -> tuple[ParamSpec, ParamSpec]:
    """Returns the parameters of a tool that sends datagrams at a rate."""
    doc = f"Offered payload rate (`-b`){rate_doc}."
    return (
        whole("rate_bits_per_s", 10_000_000, least_bits_per_s, 10**12, doc, "bits_per_s"),
        whole("packet_bytes", 1400, least_bytes, 65_507, "Bytes per datagram (`-l`).", "bytes"),
    )


DATAGRAMS = (
    throughput("goodput_bytes_per_s", "Payload bytes received per second."),
    rate("received_per_s", "Datagrams received per second.", headline=False),
    share("loss_ratio", "Share of lost datagrams."),
    time("jitter_ns", "Interarrival jitter (RFC 3550) at the end."),
)


def received(
    goodput_bytes_per_s: float, elapsed_s: float, sent: float, lost: float, jitter_ms: float
) -> dict[str, float]:
    """Returns the values of DATAGRAMS. Raises ToolError where no datagram was received."""
    if not elapsed_s or not goodput_bytes_per_s or lost >= sent:
        raise ToolError(f"none of {sent:.0f} datagrams was received.")
    return {
        "goodput_bytes_per_s": goodput_bytes_per_s,
        "received_per_s": (sent - lost) / elapsed_s,
        "loss_ratio": lost / sent,
        "jitter_ns": jitter_ms * 1e6,
    }
