"""sockperf of Mellanox: round trips of datagrams or over one TCP connection."""

from __future__ import annotations

from typing import Literal

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    ADDRESS,
    PEER_ADDRESS,
    PEER_PORT,
    PORT,
    Adapter,
    Output,
    ToolCommand,
    ToolServer,
    numbers,
)
from nephoscope.catalog.adapters.quantities import Params, duration, seconds, time, whole
from nephoscope.catalog.adapters.reports import Figures, check_silence, values_at
from nephoscope.catalog.meaning import RequestLoop, Resource

_US = 1_000
_NUMBER = r" +([0-9.]+)\n"
_PERCENTILES = {"p50": "50.000", "p99": "99.000", "p999": "99.900"}
_COOL_DOWN_S = 0.05
"""At the end of a run; sockperf counts nothing of it."""
_PLACES = (
    Figures(
        "the mean",
        r"====> avg-rtt=([0-9.]+) \(std-dev=([0-9.]+)\)[^\n]*\n",
        {"rtt_sent_mean_ns": _US, "rtt_sent_stdev_ns": _US},
    ),
    Figures("the maximum", rf"<MAX> observation ={_NUMBER}", {"rtt_sent_max_ns": _US}),
    *(
        Figures(
            f"percentile {words}", rf"percentile {words} ={_NUMBER}", {f"rtt_sent_{name}_ns": _US}
        )
        for name, words in _PERCENTILES.items()
    ),
    # The report's last line says that it is whole.
    Figures("the minimum", rf"<MIN> observation ={_NUMBER}\Z", {"rtt_sent_min_ns": _US}),
)


def _figures(output: Output) -> dict[str, float]:
    figures = values_at(output, _PLACES)
    run_s, warm_up_ms = numbers(
        output,
        r"\[Total Run\] RunTime=([0-9.]+) sec; Warm up time=([0-9.]+) msec;[^\n]*\n",
        "the time of the run",
    )
    answered_s, received = numbers(
        output,
        r"\[Valid Duration\] RunTime=([0-9.]+) sec;[^\n]*ReceivedMessages=([0-9]+)\n",
        "the time until the last answer",
    )
    silent_s = run_s - warm_up_ms / 1e3 - _COOL_DOWN_S - answered_s
    # The next message at a set rate is due after one interval, up to two after the last answer.
    check_silence(silent_s, figures["rtt_sent_max_ns"] / 1e9, 2 * answered_s / max(1, received))
    return figures


def _sockperf(protocol: Literal["tcp", "udp"]) -> Adapter:
    tcp = ("--tcp",) if protocol == "tcp" else ()

    def command(params: Params) -> ToolCommand:
        rate = params["rate_per_s"]
        return ToolCommand(
            (
                *("ping-pong", "-i", PEER_ADDRESS, "-p", PEER_PORT, *tcp, "--full-rtt"),
                *("-t", str(seconds("sockperf", params))),
                *("--msg-size", str(params["packet_bytes"]), "--mps", str(rate or "max")),
            )
        )

    return adapter(
        f"sockperf.{protocol}",
        f"sockperf: round trips over {protocol.upper()}, one at a time",
        resource=Resource.NETWORK,
        request_loop=RequestLoop.CLOSED,
        params=(
            duration(1),
            whole("packet_bytes", 64, 14, 65_000, "Bytes per message (`--msg-size`).", "bytes"),
            whole(
                "rate_per_s",
                0,
                0,
                10_000_000,
                "Messages per second (`--mps`); 0 sends each after the answer to the one before.",
                "per_s",
            ),
        ),
        metrics=(
            time("rtt_sent_mean_ns", "Mean round-trip time.", headline=True),
            time("rtt_sent_stdev_ns", "Standard deviation of the round-trip time."),
            time("rtt_sent_min_ns", "Minimum round-trip time."),
            time("rtt_sent_max_ns", "Maximum round-trip time."),
            *(
                time(f"rtt_sent_{name}_ns", f"{name[1:]}th percentile of the round-trip time.")
                for name in _PERCENTILES
            ),
        ),
        command=command,
        figures=_figures,
        version=r"^sockperf, version ([0-9]+(?:\.[0-9]+)+)",
        source="sockperf, github.com/Mellanox/sockperf",
        minimum="3.6",
        overhead="a CPU on each side",
        tool="sockperf",
        server=ToolServer(
            "sockperf",
            lambda _: ToolCommand(("server", "-i", ADDRESS, "-p", PORT, *tcp)),
            protocol=protocol,
        ),
        measures="""
How long a message takes there and back, with the next one sent after the answer.""",
        how="""
The server runs on the target that `peer` names (without one, on the machine itself). Figures come
from the report of `sockperf ping-pong --full-rtt`.""",
        truth="On a link whose delay is set, the round trip is that delay.",
        cross_check="`net.rtt` with `rate_per_s=0` measures the same.",
        overhead_page="One thread on each side.",
        caveats="""
Closed loop without a rate. It leaves out what it sent in the first 400 ms and the last 50 ms, and
a message without an answer: a trial in which one waited longer than any answer took fails.
Version 3.7 knows IPv4 alone.""",
    )


ADAPTERS = (_sockperf("tcp"), _sockperf("udp"))
