"""iperf3, the throughput test of ESnet: TCP at full speed, and UDP at a rate."""

from __future__ import annotations

from typing import Any

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    ADDRESS,
    PEER_ADDRESS,
    PEER_PORT,
    PORT,
    Output,
    ToolCommand,
    ToolError,
    ToolServer,
)
from nephoscope.catalog.adapters.quantities import (
    DATAGRAMS,
    RETRANSMITS,
    Params,
    choice,
    datagrams,
    duration,
    figure,
    received,
    seconds,
    text,
    throughput,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import json_report, number_at, scalars, value_at
from nephoscope.catalog.meaning import RequestLoop, Resource
from nephoscope.core.model import Better, Sample

_PARAMS = (
    choice(
        "direction",
        ("up", "down"),
        "up: from the running to the serving side; down: the opposite (`-R`).",
    ),
    duration(1),
)
_CPUS = figure(
    "used_cpus", "cpus", "CPU time of iperf3 per elapsed time, by side.", better=Better.LOWER
)
_SHARED: dict[str, Any] = {
    "version": r"^iperf ([0-9]+(?:\.[0-9]+)+)",
    "source": "iperf3, software.es.net/iperf",
    "minimum": "3.9",
    "tool": "iperf3",
    "server": ToolServer(
        "iperf3", lambda _: ToolCommand(("-s", "-B", ADDRESS, "-p", PORT), user="nobody")
    ),
    "overhead": "a CPU on each side for TCP and for UDP without a rate",
    "how": """
The server runs on the target that `peer` names (without one, on the machine itself). Figures come
from the report in JSON (`-J`).""",
    "cross_check": """
`net.throughput` measures the same; the report's section on third-party tools has both beside each
other.""",
    "overhead_page": "One process on each side, with one CPU for all streams up to version 3.15.",
}


def _words(params: Params) -> list[str]:
    words = ["-c", PEER_ADDRESS, "-p", PEER_PORT, "-J"]
    words += ["-t", str(seconds("iperf3", params))]
    return words + (["-R"] if params["direction"] == "down" else [])


def _tcp_command(params: Params) -> ToolCommand:
    words = [*_words(params), "-P", str(params["streams"]), "-l", str(params["send_bytes"])]
    control = params["congestion_control"]
    return ToolCommand((*words, *(("-C", control) if control else ())))


def _udp_command(params: Params) -> ToolCommand:
    bits = ("-b", str(params["rate_bits_per_s"]), "-l", str(params["packet_bytes"]))
    return ToolCommand((*_words(params), "-u", *bits))


def _samples(report: Any, values: dict[str, float]) -> list[Sample]:
    """Returns the values with their direction, and the CPU time of both sides."""
    direction = "down" if value_at(report, "start", "test_start", "reverse") else "up"
    usage = {"near": "host_total", "far": "remote_total"}
    return [
        *scalars(values, direction=direction),
        *(
            Sample(
                "used_cpus",
                number_at(report, "end", "cpu_utilization_percent", key) / 100,
                factors={"side": side},
            )
            for side, key in usage.items()
        ),
    ]


def _tcp(output: Output) -> list[Sample]:
    report = json_report(output)
    goodput_bytes_per_s = number_at(report, "end", "sum_received", "bits_per_second") / 8
    if not goodput_bytes_per_s:
        raise ToolError("nothing was received.")
    values = {
        "goodput_bytes_per_s": goodput_bytes_per_s,
        "retransmits_count": number_at(report, "end", "sum_sent", "retransmits"),
    }
    senders = [value_at(stream, "sender") for stream in value_at(report, "end", "streams")]
    values["tcp_rtt_mean_ns"] = 1e3 * max(number_at(sender, "mean_rtt") for sender in senders)
    values["tcp_rtt_min_ns"] = 1e3 * min(number_at(sender, "min_rtt") for sender in senders)
    return _samples(report, values)


def _udp(output: Output) -> list[Sample]:
    report = json_report(output)
    received_bytes, elapsed_s = (
        number_at(report, "end", "sum_received", key) for key in ("bytes", "seconds")
    )
    packets, lost, jitter_ms = (
        number_at(report, "end", "sum", key) for key in ("packets", "lost_packets", "jitter_ms")
    )
    goodput_bytes_per_s = received_bytes / elapsed_s if elapsed_s else 0.0
    return _samples(report, received(goodput_bytes_per_s, elapsed_s, packets, lost, jitter_ms))


ADAPTERS = (
    adapter(
        "iperf3.tcp",
        "iperf3: TCP throughput between two targets",
        resource=Resource.NETWORK,
        params=(
            *_PARAMS,
            whole("streams", 1, 1, 128, "Number of connections (`-P`)."),
            whole("send_bytes", 131_072, 1, 1_048_576, "Bytes per write (`-l`).", "bytes"),
            text(
                "congestion_control",
                "",
                "TCP congestion control (`-C`), such as cubic; empty takes the kernel's default.",
            ),
        ),
        metrics=(
            throughput("goodput_bytes_per_s", "Payload bytes received per second, all streams."),
            RETRANSMITS,
            time("tcp_rtt_mean_ns", "Mean of TCP's smoothed round-trip time; maximum of streams."),
            time("tcp_rtt_min_ns", "Minimum of TCP's smoothed round-trip time."),
            _CPUS,
        ),
        command=_tcp_command,
        parse=_tcp,
        measures="The payload that TCP carries from one target to another, in one direction.",
        truth="On a link whose rate is set, the goodput is that rate less the headers.",
        caveats="""
The start of TCP is part of the measured time. Retransmissions and round trips are those
of the sender; Linux only.""",
        **_SHARED,
    ),
    adapter(
        "iperf3.udp",
        "iperf3: UDP at a rate between two targets; loss and jitter",
        resource=Resource.NETWORK,
        request_loop=RequestLoop.OPEN,
        params=(*_PARAMS, *datagrams(0, 16, "; 0 sends as fast as possible")),
        metrics=(*DATAGRAMS, _CPUS),
        command=_udp_command,
        parse=_udp,
        measures="How many datagrams of a given rate arrive, and how evenly.",
        truth="On a link whose loss is set, the loss is that within its interval.",
        caveats="""
Sends in bursts of a timer (1 ms) below its highest rate. Lost datagrams at the end are not
seen.""",
        **_SHARED,
    ),
)
