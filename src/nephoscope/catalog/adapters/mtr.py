"""mtr: the hops of a path, with round trips and loss of each."""

from __future__ import annotations

from nephoscope.catalog import MetricSpec
from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError
from nephoscope.catalog.adapters.quantities import (
    HOST,
    Params,
    checked_host,
    period,
    seconds,
    share,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import json_report, number_at, scalars, value_at
from nephoscope.catalog.meaning import Resource
from nephoscope.core.model import Better, Sample, Shape


def _command(params: Params) -> ToolCommand:
    return ToolCommand(
        (
            *("--json", "--no-dns", "--report-cycles", str(params["probes_per_hop"])),
            *("--interval", str(params["interval_ns"] / 1e9), "--max-ttl", str(params["hops"])),
            *("--gracetime", str(seconds("mtr", params, "wait_ns"))),
            checked_host("mtr", params["host"]),
        )
    )


def _parse(output: Output) -> list[Sample]:
    report = json_report(output)
    hubs = value_at(report, "report", "hubs")
    if not isinstance(hubs, list) or not hubs:
        raise ToolError("its report has no hop.")
    samples = []
    for hub in hubs:
        hop = int(number_at(hub, "count"))
        lost = number_at(hub, "Loss%") / 100
        if lost > 1:
            raise ToolError(f"its report has a loss of {lost:.0%} for hop {hop}.")
        names = {"hop_rtt_mean_ns": "Avg", "hop_rtt_min_ns": "Best", "hop_rtt_max_ns": "Wrst"}
        times = {metric: 1e6 * number_at(hub, key) for metric, key in names.items()}
        samples += [Sample("hop_loss_ratio", lost, factors={"hop": hop})]
        samples += scalars(times, hop=hop, address=str(value_at(hub, "host"))[:64])
    if number_at(hubs[-1], "Loss%") < 100:
        samples.append(Sample("hops_count", len(hubs)))
    return samples


ADAPTER = adapter(
    "mtr",
    "mtr: hops to a host, with round trips and loss of each",
    resource=Resource.NETWORK,
    params=(
        HOST,
        whole("hops", 30, 1, 255, "Maximum number of hops (`--max-ttl`)."),
        whole("probes_per_hop", 3, 1, 1_000, "Number of packets per hop (`--report-cycles`)."),
        period(
            "interval_ns",
            "100ms",
            "10ms",
            "60s",
            "Time between two packets to one hop (`--interval`).",
        ),
        period(
            "wait_ns",
            "5s",
            "1s",
            "60s",
            "Time to wait for answers after the last packet, in whole seconds (`--gracetime`).",
        ),
    ),
    metrics=(
        MetricSpec(
            "hops_count", "count", Better.NONE, Shape.SCALAR, True, "Number of hops to the host."
        ),
        time("hop_rtt_mean_ns", "Mean round trip to each hop, by address."),
        time("hop_rtt_min_ns", "Minimum round trip to each hop, by address."),
        time("hop_rtt_max_ns", "Maximum round trip to each hop, by address."),
        share("hop_loss_ratio", "Share of a hop's packets without an answer."),
    ),
    command=_command,
    parse=_parse,
    version=r"^mtr ([0-9]+(?:\.[0-9]+)+)",
    source="mtr, bitwizard.nl/mtr",
    minimum="0.92",
    install="apt-get install mtr-tiny",
    overhead="none",
    measures="""
Which routers lie between the target and a host, and the round trip and loss to each of them.""",
    how="""
ICMP echo requests with a rising time to live. Figures come from the report in JSON (`--json`).""",
    truth="In a lab with routers the hops are those of the topology.",
    cross_check="`net.path` finds the same hops.",
    overhead_page="One packet to each hop for each interval.",
    caveats="""
Routers need not answer, and may answer late or to some packets alone, so that a loss that is not
seen at later hops is none of the path. Without an answer of the host there is no number of
hops.""",
)
