"""ping of iputils: ICMP echo requests, one after the other or at a rate."""

from __future__ import annotations

import re

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, check_ending, numbers
from nephoscope.catalog.adapters.quantities import (
    HOST,
    ROUND_TRIPS,
    Params,
    checked_host,
    period,
    whole,
)
from nephoscope.catalog.adapters.reports import round_trips
from nephoscope.catalog.meaning import RequestLoop, Resource
from nephoscope.core.model import Sample

_REPLY = re.compile(
    r"^[0-9]+ bytes from [^\n]*: icmp_seq=[0-9]+ ttl=[0-9]+ time=([0-9]+(?:\.[0-9]+)?) ms$",
    re.MULTILINE | re.ASCII,
)


def _command(params: Params) -> ToolCommand:
    return ToolCommand(
        (
            *("-n", "-c", str(params["probes"]), "-i", str(params["interval_ns"] / 1e9)),
            *("-s", str(params["packet_bytes"]), "-W", str(params["wait_ns"] / 1e9)),
            checked_host("ping", params["host"]),
        )
    )


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    pattern = r"^([0-9]+) packets transmitted, ([0-9]+) received, [^\n]*packet loss, [^\n]*\n"
    sent, received = numbers(output, pattern, "sent and received packets")
    # The report's last line says that it is whole.
    summary = r"^rtt min/avg/max/mdev = [0-9.]+/([0-9.]+)/[0-9.]+/[0-9.]+ ms[^\n]*\n\Z"
    numbers(output, summary, "the summary of round trips")
    # Duplicates end in (DUP!) and do not count.
    times = [float(text) for text in _REPLY.findall(output.stdout)]
    if len(times) != received:
        raise ToolError(f"it states {received:.0f} answers and prints {len(times)}.")
    return round_trips(times, int(sent))


ADAPTER = adapter(
    "ping",
    "ping: round trips of ICMP echo requests",
    resource=Resource.NETWORK,
    request_loop=RequestLoop.OPEN,
    params=(
        HOST,
        whole("probes", 10, 1, 100_000, "Number of echo requests (`-c`)."),
        period("interval_ns", "100ms", "10ms", "1h", "Time between two requests (`-i`)."),
        whole("packet_bytes", 56, 16, 65_507, "Bytes of data per request (`-s`).", "bytes"),
        period("wait_ns", "1s", "1ms", "60s", "Time to wait for the last answer (`-W`)."),
    ),
    metrics=ROUND_TRIPS,
    command=_command,
    parse=_parse,
    version_command=("-V",),
    version=r"^ping from iputils (?:s)?([0-9]{8})",
    source="ping, github.com/iputils/iputils",
    minimum="20190709",
    install="apt-get install iputils-ping",
    overhead="none",
    measures="The round trip to a host and the share of lost requests, by ICMP.",
    how="Each answer's time is read from the line that ping prints for it.",
    truth="""
On a link whose delay and loss are set, the round trip is that delay, and the loss is within its
interval.""",
    cross_check="`net.rtt` with `protocol=icmp` measures the same; `fping` too.",
    overhead_page="One packet for each interval.",
    caveats="""
Times have three digits below 100 ms and full milliseconds from there on. ping sends the next
request as soon as the interval is over, whatever became of the last one. Intervals below 10 ms are
refused, and those below 2 ms need root in ping itself. Answers that come twice count once.""",
)
