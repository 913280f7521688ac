"""memtier_benchmark, the load generator of Redis Ltd."""

from __future__ import annotations

import json
import re

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    PEER_ADDRESS,
    PEER_PORT,
    Output,
    ToolCommand,
    ToolError,
    ToolStep,
    last_words,
)
from nephoscope.catalog.adapters.quantities import Params, latencies, options, rate, time, whole
from nephoscope.catalog.adapters.servers import redis
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource
from nephoscope.core.errors import UsageError


def _command(params: Params) -> ToolCommand:
    if not params["sets"] and not params["gets"]:
        raise UsageError(
            "memtier: with no `sets` and no `gets` nothing is sent.", "Set one of them."
        )
    common = (
        *("--server", PEER_ADDRESS, "--port", PEER_PORT, "--hide-histogram", "--key-minimum=1"),
        *options(params, {"--data-size=": "value_bytes", "--key-maximum=": "keys"}),
    )
    counts = {f"--{name}=": name for name in ("requests", "clients", "threads", "pipeline")}
    filling = ("--requests=allkeys", "--clients=1", "--threads=1", "--ratio=1:0")
    return ToolCommand(
        (
            *(*common, *options(params, counts)),
            *(f"--ratio={params['sets']}:{params['gets']}", "--json-out-file=/dev/stdout"),
        ),
        prepare=(ToolStep("memtier_benchmark", (*common, *filling, "--key-pattern=P:P")),),
    )


def _figures(output: Output) -> dict[str, float]:
    # It takes its last comma back by seeking, which a pipe cannot.
    text = re.sub(r",\s*}", "}", output.stdout)
    try:
        report, _ = json.JSONDecoder().raw_decode(text[text.find("{") :])
        stats = report["ALL STATS"]
        totals, kinds = stats["Totals"], (stats["Sets"], stats["Gets"])
        count = float(totals["Count"])
        per_s, misses = float(totals["Ops/sec"]), float(totals["Misses/sec"])
        percentiles = {key: float(totals["Percentile Latencies"][key]) for key in _PERCENTILES}
        extremes = {key: float(totals[f"{key} Latency"]) for key in ("Min", "Max")}
        sums_ms = [float(kind["Count"]) * float(kind["Average Latency"]) for kind in kinds]
        lost = float(totals["Connection Errors"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ToolError(f"its report is no whole JSON object.{last_words(output)}") from error
    if lost:
        raise ToolError(f"it lost {lost:.0f} connections.")
    if not count or count != sum(float(kind["Count"]) for kind in kinds):
        raise ToolError(
            f"its report contradicts itself: {count:.0f} commands are not those by kind."
        )
    return {
        "requests_per_s": per_s,
        "latency_mean_ns": sum(sums_ms) / count * 1e6,
        "latency_min_ns": extremes["Min"] * 1e6,
        "latency_max_ns": extremes["Max"] * 1e6,
        **{f"latency_{_PERCENTILES[key]}_ns": ms * 1e6 for key, ms in percentiles.items()},
        "misses_per_s": misses,
    }


_PERCENTILES = {"p50.00": "p50", "p99.00": "p99", "p99.90": "p999"}

ADAPTER = adapter(
    "memtier",
    "memtier_benchmark: SET and GET to a Redis server in a closed loop",
    resource=Resource.SEVERAL,
    domain=Domain.KEY_VALUE,
    request_loop=RequestLoop.CLOSED,
    params=(
        whole("requests", 10_000, 1, 1_000_000_000, "Commands of each client (`--requests`)."),
        whole("clients", 50, 1, 10_000, "Connections of each thread (`--clients`)."),
        whole("threads", 1, 1, 256, "Threads (`--threads`)."),
        whole("sets", 1, 0, 10_000, "SET commands for each `gets` GET commands (`--ratio`)."),
        whole("gets", 10, 0, 10_000, "GET commands for each `sets` SET commands (`--ratio`)."),
        whole("pipeline", 1, 1, 10_000, "Commands in flight on a connection (`--pipeline`)."),
        whole("value_bytes", 32, 1, 1 << 28, "Size of a value (`--data-size`).", "bytes"),
        whole("keys", 10_000, 1, 1_000_000_000, "Keys, drawn uniformly (`--key-maximum`)."),
    ),
    metrics=(
        rate("requests_per_s", "Executed commands a second."),
        time("latency_mean_ns", "Mean time from sending a command to its answer."),
        *latencies("min", "p50", "p99", "p999", "max"),
        rate("misses_per_s", "GET commands a second that found no value.", headline=False),
    ),
    overhead="one CPU for each thread, and one for the server; memory for `keys` values",
    source="memtier_benchmark, github.com/RedisLabs/memtier_benchmark",
    tool="memtier_benchmark",
    minimum="2.0",
    install="apt-get install memtier-benchmark",
    command=_command,
    version=r"^memtier_benchmark v=([0-9]+(?:\.[0-9]+)+)",
    figures=_figures,
    server=redis.SERVER,
    measures="""
How many SET and GET commands a second a Redis server executes when each connection sends its next
command, or pipeline of them, as soon as the last one was answered.""",
    how="""
The server is redis-server without persistence, on the target that `peer` names (without one, on the
machine itself). It accepts commands that read and write keys, and none that administers it. Before
the trial all keys are written. Figures come from the tool's JSON.""",
    truth="""
The commands that it reports are exactly those that the server counts (`INFO commandstats`), besides
one SET for each key.""",
    cross_check="`redis-benchmark` loads the same server.",
    overhead_page="Each thread and the server keep a CPU busy. On one machine they share its CPUs.",
    caveats="""
Closed loop: while the server stalls, nobody sends. Debian 12 does not package the tool: the
repository of Redis (packages.redis.io) does. Version 2.3.0 reports a mean of 0 for all commands
together, so that the mean is made from those of SET and GET.""",
)
