"""redis-benchmark, which comes with Redis."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import PEER_ADDRESS, PEER_PORT, ToolCommand, ToolStep
from nephoscope.catalog.adapters.quantities import Params, choice, latencies, rate, time, whole
from nephoscope.catalog.adapters.reports import Figures
from nephoscope.catalog.adapters.servers import redis
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource
from nephoscope.core.errors import UsageError


def _command(params: Params) -> ToolCommand:
    if params["clients"] > params["requests"]:
        raise UsageError(
            f"redis-benchmark: {params['clients']} clients are more than {params['requests']} "
            "requests.",
            "Set more requests.",
        )
    common = ["-h", PEER_ADDRESS, "-p", PEER_PORT, "-d", str(params["value_bytes"])]
    common += ["-r", str(params["keys"])] if params["keys"] > 1 else []
    # Four draws for each key leave one of 55 unwritten.
    filling = ["-t", "set", "-n", _whole_pipelines(4 * params["keys"], 16), "-c", "1", "-P", "16"]
    requests = _whole_pipelines(params["requests"], params["pipeline"])
    return ToolCommand(
        (
            *common,
            *("-t", params["command"], "-n", requests, "--csv"),
            *("-c", str(params["clients"]), "-P", str(params["pipeline"])),
        ),
        prepare=(ToolStep("redis-benchmark", (*common, *filling, "-q")),)
        if params["command"] == "get"
        else (),
    )


def _whole_pipelines(requests: int, pipeline: int) -> str:
    """The number of requests, rounded up: the tool sends whole pipelines only.

    Where more answers come than it counts on, and the last at the moment of its progress line, it
    takes its clients for disconnected and aborts.
    """
    return str(-(-requests // pipeline) * pipeline)


_TIMES = {"avg": "mean", "min": "min", "p50": "p50", "p95": "p95", "p99": "p99", "max": "max"}
_HEADER = ",".join(f'"{column}_latency_ms"' for column in _TIMES)
_ROW = ",".join([r'"([0-9.]+)"'] * (1 + len(_TIMES)))


ADAPTER = adapter(
    "redis-benchmark",
    "redis-benchmark: commands to a Redis server in a closed loop",
    resource=Resource.SEVERAL,
    domain=Domain.KEY_VALUE,
    request_loop=RequestLoop.CLOSED,
    params=(
        choice(
            "command",
            ("get", "set", "incr", "lpush", "mset", "ping_mbulk"),
            "Command that is sent (`-t`).",
        ),
        whole(
            "requests",
            100_000,
            1,
            1_000_000_000,
            "Commands in all (`-n`), rounded up to whole pipelines.",
        ),
        whole("clients", 50, 1, 10_000, "Connections (`-c`)."),
        whole("pipeline", 1, 1, 10_000, "Commands in flight on a connection (`-P`)."),
        whole("value_bytes", 3, 1, 1 << 28, "Size of a value (`-d`).", "bytes"),
        whole("keys", 1, 1, 1_000_000, "Keys, drawn uniformly; 1 is always the same (`-r`)."),
    ),
    metrics=(
        rate("requests_per_s", "Executed commands a second."),
        time("latency_mean_ns", "Mean time from sending a command (or pipeline) to its answer."),
        *latencies("min", "p50", "p95", "p99", "max"),
    ),
    overhead="one CPU, and one for the server; memory for `keys` values",
    source="redis-benchmark, redis.io/docs",
    minimum="6.2",
    install="apt-get install redis-tools",
    command=_command,
    version=r"^redis-benchmark ([0-9]+(?:\.[0-9]+)+)",
    figures=(
        Figures(
            "one row of figures",
            rf'\A"test","rps",{_HEADER}\n"[^"\n]+",{_ROW}\n\Z',
            {"requests_per_s": 1, **{f"latency_{name}_ns": 1e6 for name in _TIMES.values()}},
        ),
    ),
    server=redis.SERVER,
    measures="""
How many commands a second a Redis server executes when each connection sends its next command, or
pipeline of them, as soon as the last one was answered.""",
    how="""
The server is redis-server without persistence, on the target that `peer` names (without one, on the
machine itself). It accepts commands that read and write keys, and none that administers it. Before
the trial, keys that are to be read are written (with many keys nearly all: they are drawn). Figures
come from the tool's CSV (`--csv`).""",
    truth="""
The commands that it reports are exactly those that the server counts (`INFO commandstats`).""",
    cross_check="`memtier` loads the same server.",
    overhead_page="""
The tool and the server keep a CPU busy each. On one machine they share its CPUs.""",
    caveats="""
Closed loop: while the server stalls, nobody sends, so that a stall is one slow answer for each
connection. With a pipeline the time is that of the whole pipeline. Times have a resolution of 1 µs.
An answer that is an error ends the tool.""",
)
