"""fping: ICMP echo requests at a rate, made for scripts."""

from __future__ import annotations

from dataclasses import replace

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, check_ending, matched
from nephoscope.catalog.adapters.quantities import (
    HOST,
    ROUND_TRIPS,
    Params,
    checked_host,
    period,
    whole,
    whole_units,
)
from nephoscope.catalog.adapters.reports import round_trips
from nephoscope.catalog.meaning import RequestLoop, Resource
from nephoscope.core.model import Sample

_TIME = r"(?:[0-9]+(?:\.[0-9]+)?|-)"


def _command(params: Params) -> ToolCommand:
    interval = whole_units("fping", params, "interval_ns", "ms")
    return ToolCommand(
        (
            *("-q", "-C", str(params["probes"]), "-p", str(interval)),
            *("-b", str(params["packet_bytes"]), checked_host("fping", params["host"])),
        )
    )


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    # Its report goes to standard error.
    report = replace(output, stdout=output.stderr)
    (text,) = matched(report, rf"^[^\n]+ : ({_TIME}(?: {_TIME})*)\n", "times")
    words = text.split(" ")
    return round_trips([float(word) for word in words if word != "-"], len(words))


ADAPTER = adapter(
    "fping",
    "fping: round trips of ICMP echo requests",
    resource=Resource.NETWORK,
    request_loop=RequestLoop.OPEN,
    params=(
        HOST,
        whole("probes", 10, 1, 100_000, "Number of echo requests (`-C`)."),
        period(
            "interval_ns",
            "100ms",
            "10ms",
            "1h",
            "Time between two requests, in whole milliseconds (`-p`).",
        ),
        whole("packet_bytes", 56, 24, 65_507, "Bytes of data per request (`-b`).", "bytes"),
    ),
    metrics=ROUND_TRIPS,
    command=_command,
    parse=_parse,
    version=r"^(?:\S*/)?fping: Version ([0-9]+(?:\.[0-9]+)+)",
    source="fping, fping.org",
    minimum="4.0",
    overhead="none",
    measures="The round trip to a host and the share of lost requests, by ICMP.",
    how="Each answer's time is read from the list that fping prints at its end (`-C`).",
    truth="""
On a link whose delay and loss are set, the round trip is that delay, and the loss is within its
interval.""",
    cross_check="`net.rtt` with `protocol=icmp` measures the same; `ping` too.",
    overhead_page="One packet for each interval.",
    caveats="""
Times have three significant digits. An answer that comes later than an interval counts as lost.""",
)
