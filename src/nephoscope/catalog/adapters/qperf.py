"""qperf: TCP throughput, and the latency of TCP and UDP, to a host."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, check_ending, numbers
from nephoscope.catalog.adapters.quantities import (
    HOST,
    Params,
    checked_host,
    duration,
    seconds,
    throughput,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import scalars
from nephoscope.catalog.meaning import Resource
from nephoscope.core.model import Sample


def _command(params: Params) -> ToolCommand:
    length = str(seconds("qperf", params))
    packet = ("-oo", f"msg_size:{params['packet_bytes']}")
    return ToolCommand(
        (
            *(checked_host("qperf", params["host"]), "-lp", str(params["port"]), "-t", length),
            *("-uu", "-oo", f"msg_size:{params['send_bytes']}", "tcp_bw"),
            *(*packet, "tcp_lat", *packet, "udp_lat"),
        )
    )


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    goodput, tcp_ns, udp_ns = numbers(
        output,
        r"\Atcp_bw:\n +bw +=  ([0-9]+) bytes/sec\ntcp_lat:\n +latency +=  ([0-9]+) ns\n"
        r"udp_lat:\n +latency +=  ([0-9]+) ns\n\Z",
        "its three figures",
    )
    return [
        *scalars({"goodput_bytes_per_s": goodput}, direction="up"),
        # Its latency is half of a round trip.
        *scalars({"rtt_sent_mean_ns": 2 * tcp_ns}, protocol="tcp"),
        *scalars({"rtt_sent_mean_ns": 2 * udp_ns}, protocol="udp"),
    ]


ADAPTER = adapter(
    "qperf",
    "qperf: TCP throughput, and round trips of TCP and UDP, to a host",
    resource=Resource.NETWORK,
    params=(
        HOST,
        whole("port", 19_765, 1, 65_535, "Port on which `qperf` listens there (`-lp`)."),
        duration(1),
        whole("send_bytes", 131_072, 1, 1 << 24, "Bytes per write of the throughput.", "bytes"),
        whole("packet_bytes", 64, 1, 65_000, "Bytes per message of the round trips.", "bytes"),
    ),
    metrics=(
        throughput("goodput_bytes_per_s", "Payload bytes received per second."),
        time("rtt_sent_mean_ns", "Mean round-trip time: twice the latency that it prints."),
    ),
    command=_command,
    parse=_parse,
    version=r"^qperf ([0-9]+(?:\.[0-9]+)+)",
    source="qperf, github.com/linux-rdma/qperf",
    minimum="0.4.9",
    overhead="a CPU on each side",
    measures="""
The payload that TCP carries to a host, and the round trip of a message over TCP and over UDP.""",
    how="""
A server of the tool's own has to run on the host: `qperf`. It listens on all addresses and asks
nobody for a password, so that Nephoscope does not start one; end it after the measurement. The
tests `tcp_bw`, `tcp_lat` and `udp_lat` take `duration_ns` each.""",
    truth="On a link whose rate and delay are set, the figures are these.",
    cross_check="`net.throughput`, and `net.rtt` with `rate_per_s=0`, measure the same.",
    overhead_page="One process on each side.",
    caveats="Means only. A firewall has to let further ports through, which it chooses.",
)
