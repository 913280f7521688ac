"""nuttcp: TCP throughput to a host, with the sender's CPU and round trip."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import (
    HOST,
    RETRANSMITS,
    Params,
    checked_host,
    duration,
    seconds,
    throughput,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import Figures
from nephoscope.catalog.meaning import Resource


def _command(params: Params) -> ToolCommand:
    return ToolCommand(
        (
            *("-fparse", "-P", str(params["port"]), "-p", str(params["data_port"])),
            *("-T", str(seconds("nuttcp", params))),
            *("-l", str(params["send_bytes"]), checked_host("nuttcp", params["host"])),
        )
    )


ADAPTER = adapter(
    "nuttcp",
    "nuttcp: TCP throughput to a host",
    resource=Resource.NETWORK,
    params=(
        HOST,
        whole("port", 5000, 1, 65_535, "Port on which `nuttcp -S` listens there (`-P`)."),
        whole("data_port", 5101, 1, 65_535, "First port of the data connections (`-p`)."),
        duration(1),
        whole("send_bytes", 65_536, 1, 1 << 24, "Bytes per write (`-l`).", "bytes"),
    ),
    metrics=(
        throughput("goodput_bytes_per_s", "Payload bytes received per second."),
        RETRANSMITS,
        time("tcp_connect_ns", "Round-trip time of the connection's set-up."),
    ),
    command=_command,
    figures=(
        Figures(
            "its figures",
            r"\Amegabytes=[0-9.]+ real_seconds=[0-9.]+ rate_Mbps=([0-9.]+) tx_cpu=[0-9]+ "
            r"rx_cpu=[0-9]+ retrans=([0-9]+) rtt_ms=([0-9.]+)\n\Z",
            {"goodput_bytes_per_s": 1e6 / 8, "retransmits_count": 1, "tcp_connect_ns": 1e6},
        ),
    ),
    factors={"direction": "up"},
    version_command=("-V",),
    version=r"^nuttcp-([0-9]+(?:\.[0-9]+)+)",
    source="nuttcp, nuttcp.net",
    minimum="6.1.2",
    overhead="a CPU on each side",
    measures="The payload that TCP carries to a host.",
    how="""
A server of the tool's own has to run on the host: `nuttcp -S`. It listens on all addresses and asks
nobody for a password, so that Nephoscope does not start one; end it after the measurement. Figures
come from the line that `-fparse` prints.""",
    truth="On a link whose rate is set, the goodput is that rate less the headers.",
    cross_check="""
`net.throughput` and `iperf3.tcp` measure the same, with a server that Nephoscope starts.""",
    overhead_page="One process on each side.",
    caveats="The start of TCP is part of the measured time.",
)
