"""netperf of Hewlett-Packard: TCP throughput, and transactions of one byte there and back."""

from __future__ import annotations

from typing import Any

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    ADDRESS,
    PEER_ADDRESS,
    PEER_PORT,
    PORT,
    ToolCommand,
    ToolServer,
)
from nephoscope.catalog.adapters.quantities import (
    RETRANSMITS,
    Params,
    choice,
    duration,
    rate,
    seconds,
    throughput,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import Figures
from nephoscope.catalog.meaning import RequestLoop, Resource

_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)"
_SHARED: dict[str, Any] = {
    "version": r"^Netperf version ([0-9]+(?:\.[0-9]+)+)",
    "version_command": ("-V",),
    "source": "netperf, github.com/HewlettPackard/netperf",
    "minimum": "2.6",
    "tool": "netperf",
    "overhead": "a CPU on each side",
    "server": ToolServer(
        "netserver", lambda _: ToolCommand(("-D", "-L", ADDRESS, "-p", PORT), user="nobody")
    ),
    "how": """
netserver runs on the target that `peer` names (without one, on the machine itself). Figures come
from the values that `-k` prints.""",
    "overhead_page": "One process on each side.",
}


def _command(test: str, names: str, params: Params, *more: str) -> ToolCommand:
    length = str(seconds("netperf", params))
    words = ("-P", "0", "-H", PEER_ADDRESS, "-p", PEER_PORT, "-l", length, "-t", test)
    return ToolCommand((*words, "--", *more, "-k", names))


def _stream(params: Params) -> ToolCommand:
    names = "THROUGHPUT,THROUGHPUT_UNITS,LOCAL_TRANSPORT_RETRANS"
    return _command("TCP_STREAM", names, params, "-m", str(params["send_bytes"]))


_TIMES = {
    "MIN_LATENCY": time("rtt_sent_min_ns", "Minimum round-trip time."),
    "MEAN_LATENCY": time("rtt_sent_mean_ns", "Mean round-trip time."),
    "P50_LATENCY": time("rtt_sent_p50_ns", "Median round-trip time."),
    "P99_LATENCY": time("rtt_sent_p99_ns", "99th percentile of the round-trip time."),
    "MAX_LATENCY": time("rtt_sent_max_ns", "Maximum round-trip time."),
}


def _transactions(params: Params) -> ToolCommand:
    test = f"{params['protocol'].upper()}_RR"
    bytes_each = str(params["packet_bytes"])
    names = ",".join(("THROUGHPUT", *_TIMES, "THROUGHPUT_UNITS"))
    return _command(test, names, params, "-r", f"{bytes_each},{bytes_each}")


ADAPTERS = (
    adapter(
        "netperf.stream",
        "netperf: TCP throughput between two targets",
        resource=Resource.NETWORK,
        params=(
            duration(1),
            whole("send_bytes", 131_072, 1, 1 << 24, "Bytes per write (`-m`).", "bytes"),
        ),
        metrics=(
            throughput("goodput_bytes_per_s", "Payload bytes received per second."),
            RETRANSMITS,
        ),
        command=_stream,
        figures=(
            Figures(
                "its figures",
                rf"^THROUGHPUT={_NUMBER}\nTHROUGHPUT_UNITS=10\^6bits/s\n"
                rf"LOCAL_TRANSPORT_RETRANS=([0-9]+)\n\Z",
                {"goodput_bytes_per_s": 1e6 / 8, "retransmits_count": 1},
            ),
        ),
        factors={"direction": "up"},
        measures="The payload that TCP carries from one target to another.",
        truth="On a link whose rate is set, the goodput is that rate less the headers.",
        cross_check="`net.throughput` measures the same.",
        caveats="The start of TCP is part of the measured time.",
        **_SHARED,
    ),
    adapter(
        "netperf.rr",
        "netperf: transactions over TCP or UDP, one at a time",
        resource=Resource.NETWORK,
        request_loop=RequestLoop.CLOSED,
        params=(
            choice("protocol", ("tcp", "udp"), "Transport protocol.", default="udp"),
            duration(1),
            whole("packet_bytes", 64, 1, 65_000, "Bytes of request and response (`-r`).", "bytes"),
        ),
        metrics=(
            rate("transactions_per_s", "Transactions per second."),
            *_TIMES.values(),
        ),
        command=_transactions,
        figures=(
            Figures("its transactions", rf"^THROUGHPUT={_NUMBER}\n", {"transactions_per_s": 1}),
            *(
                Figures(f"its {name}", rf"^{name}={_NUMBER}\n", {metric.id: 1e3})
                for name, metric in _TIMES.items()
            ),
            # The report's last line says that it is whole.
            Figures("its unit", r"^THROUGHPUT_UNITS=Trans/s\n\Z", {}),
        ),
        measures="How many requests and responses follow each other, and how long each takes.",
        truth="On a link whose delay is set, the round trip is that delay.",
        cross_check="`net.rtt` measures the same.",
        caveats="""
Closed loop: the next request leaves when the response is there. Times are whole
microseconds, percentiles those of a histogram.""",
        **_SHARED,
    ),
)
