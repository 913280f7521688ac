"""iperf, version 2: the older of the two tools of that name, still developed."""

from __future__ import annotations

import re
from typing import Any, Literal

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
    numbers,
)
from nephoscope.catalog.adapters.quantities import (
    DATAGRAMS,
    Params,
    datagrams,
    duration,
    received,
    seconds,
    throughput,
    whole,
)
from nephoscope.catalog.meaning import RequestLoop, Resource

_INTERVAL = r" 0\.0+-([0-9.]+) sec +[0-9.]+ KBytes +([0-9.]+) Kbits/sec"


_SHARED: dict[str, Any] = {
    "version": r"^iperf version (2\.[0-9]+(?:\.[0-9]+)*)",
    "version_command": ("-v",),
    "source": "iperf 2, sourceforge.net/projects/iperf2",
    "minimum": "2.0.13",
    "tool": "iperf",
    "overhead": "a CPU on each side for TCP",
    "factors": {"direction": "up"},
    "measures": "How much payload the network carries from one target to another.",
    "how": """
The server runs on the target that `peer` names (without one, on the machine itself). Figures come
from the tool's own report.""",
    "cross_check": "`net.throughput` and iperf3 measure the same.",
    "overhead_page": "One thread for each connection on each side.",
    "caveats": """
The start of TCP is part of the measured time, and its rate is the sender's: what is still in a
buffer at the end counts. Rates have four digits.""",
}


def _server(protocol: Literal["tcp", "udp"], *words: str) -> ToolServer:
    command = ToolCommand(("-s", *words, "-B", ADDRESS, "-p", PORT), user="nobody")
    return ToolServer("iperf", lambda _: command, protocol=protocol)


def _words(params: Params) -> list[str]:
    words = ["-c", PEER_ADDRESS, "-p", PEER_PORT, "-f", "k"]
    return [*words, "-t", str(seconds("iperf", params))]


def _tcp_command(params: Params) -> ToolCommand:
    return ToolCommand((*_words(params), "-P", str(params["streams"])))


def _udp_command(params: Params) -> ToolCommand:
    bits = ("-b", str(params["rate_bits_per_s"]), "-l", str(params["packet_bytes"]))
    return ToolCommand((*_words(params), "-u", *bits))


def _tcp(output: Output) -> dict[str, float]:
    streams = re.findall(r"^\[ *[0-9]+\] local [^\n]* connected with ", output.stdout, re.MULTILINE)
    line = r"\[SUM\]" if len(streams) > 1 else r"\[ *[0-9]+\]"
    elapsed_s, kbits = numbers(output, rf"^{line}{_INTERVAL}\n", "the rate")
    if not elapsed_s or not kbits:
        raise ToolError("nothing was sent.")
    return {"goodput_bytes_per_s": kbits * 125}


def _udp(output: Output) -> dict[str, float]:
    elapsed_s, kbits, jitter_ms, lost, sent = numbers(
        output,
        rf"^\[ *[0-9]+\]{_INTERVAL} +([0-9.]+) ms +([0-9]+)/ *([0-9]+) \([0-9.e+-]+%\)\n",
        "the report of the server",
    )
    return received(kbits * 125, elapsed_s, sent, lost, jitter_ms)


ADAPTERS = (
    adapter(
        "iperf.tcp",
        "iperf 2: TCP throughput between two targets",
        resource=Resource.NETWORK,
        thread_param="streams",
        params=(duration(1), whole("streams", 1, 1, 128, "Number of connections (`-P`).")),
        metrics=(throughput("goodput_bytes_per_s", "Payload bytes sent per second, all streams."),),
        command=_tcp_command,
        figures=_tcp,
        server=_server("tcp"),
        truth="On a link whose rate is set, the goodput is that rate less the headers.",
        **_SHARED,
    ),
    adapter(
        "iperf.udp",
        "iperf 2: UDP at a rate between two targets; loss and jitter",
        resource=Resource.NETWORK,
        request_loop=RequestLoop.OPEN,
        params=(duration(1), *datagrams(1_000, 64)),
        metrics=DATAGRAMS,
        command=_udp_command,
        figures=_udp,
        server=_server("udp", "-u"),
        truth="On a link whose loss is set, the loss is that within its interval.",
        **_SHARED,
    ),
)
