"""httperf, the load generator of Hewlett-Packard that keeps to a rate."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    PEER_ADDRESS,
    PEER_PORT,
    Output,
    ToolCommand,
    ToolError,
    numbers,
)
from nephoscope.catalog.adapters.quantities import (
    Params,
    errors,
    rate,
    seconds,
    time,
    timeout,
    whole,
)
from nephoscope.catalog.adapters.reports import Figures, values_at
from nephoscope.catalog.adapters.servers import nginx
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource


def _command(params: Params) -> ToolCommand:
    arguments = {
        "--server": PEER_ADDRESS,
        "--port": PEER_PORT,
        "--uri": "/",
        "--rate": str(params["rate"]),
        "--num-conns": str(params["connections"]),
        "--num-calls": str(params["calls"]),
        "--timeout": str(seconds("httperf", params, "timeout_ns")),
    }
    return ToolCommand(("--hog", *(word for pair in arguments.items() for word in pair)))


_NUMBER = r"([0-9.]+)"
_RATES_AND_TIMES = (
    Figures("connection rate", rf"^Connection rate: {_NUMBER} conn/s .*\n", {"offered_per_s": 1}),
    Figures(
        "reply time", rf"^Reply time \[ms\]: response {_NUMBER} .*\n", {"latency_mean_ns": 1e6}
    ),
    Figures(
        "connection time",
        rf"^Connection time \[ms\]: min [0-9.]+ avg {_NUMBER} max {_NUMBER} median {_NUMBER} .*\n",
        {f"connection_{name}_ns": 1e6 for name in ("mean", "max", "p50")},
    ),
)


def _figures(output: Output) -> dict[str, float]:
    replies, elapsed_s = numbers(
        output,
        rf"^Total: connections [0-9]+ requests [0-9]+ replies ([0-9]+) test-duration {_NUMBER} s\n",
        "its total",
    )
    rates_and_times = values_at(output, _RATES_AND_TIMES)
    statuses = r"^Reply status: 1xx=[0-9]+ 2xx=([0-9]+) 3xx=[0-9]+ 4xx=([0-9]+) 5xx=([0-9]+)\n"
    succeeded, *refused = numbers(output, statuses, "statuses of replies")
    (failed,) = numbers(output, r"^Errors: total ([0-9]+) .*\n", "errors")
    # The report's last line says that it is whole.
    numbers(output, r"^Errors: fd-unavail .* other ([0-9]+)\n", "kinds of errors")
    if not replies or not succeeded or not elapsed_s:
        raise ToolError(f"no request succeeded; {failed + sum(refused):.0f} errors.")
    errors_count = failed + sum(refused)
    return {"requests_per_s": replies / elapsed_s, **rates_and_times, "errors_count": errors_count}


ADAPTER = adapter(
    "httperf",
    "httperf: connections to a web server at a fixed rate (open loop)",
    resource=Resource.SEVERAL,
    domain=Domain.WEB,
    request_loop=RequestLoop.OPEN,
    params=(
        whole("rate", 500, 1, 100_000, "Connections opened a second (`--rate`).", "per_s"),
        whole("connections", 1_000, 1, 100_000_000, "Connections in all (`--num-conns`)."),
        whole("calls", 1, 1, 1_000_000, "Requests on each connection, in turn (`--num-calls`)."),
        timeout(5),
        nginx.BODY,
    ),
    metrics=(
        rate("requests_per_s", "Replies a second of the whole run."),
        rate("offered_per_s", "Connections opened a second: below `rate`, it did not keep up."),
        time("latency_mean_ns", "Mean time from a request to its reply; left out below 0.05 ms."),
        time("connection_mean_ns", "Mean lifetime of a successful connection."),
        time("connection_p50_ns", "Median of these lifetimes."),
        time("connection_max_ns", "Longest of these lifetimes."),
        errors("Connections that failed or timed out, and replies with a status above 399."),
    ),
    overhead="one CPU, always busy, and the server's",
    source="Mosberger and Jin, httperf: a tool for measuring web server performance, 1998",
    minimum="0.9.0",
    command=_command,
    # After that it goes on and connects: to a port of this machine that is closed.
    version_command=ToolCommand(
        ("--version", "--server", "127.0.0.1", "--port", "1", "--timeout", "1")
    ),
    version=r"^httperf: httperf-([0-9]+(?:\.[0-9]+)+)",
    figures=_figures,
    server=nginx.SERVER,
    measures="""
How a web server answers connections that arrive at a rate, whatever became of those before.""",
    how=nginx.PAGE,
    truth="The replies that httperf counts are exactly those that nginx serves.",
    cross_check="`wrk` and `ab` load the same server in a closed loop.",
    overhead_page="httperf polls, so that it keeps a CPU busy at any rate.",
    caveats="""
Open loop by connection: arrivals do not wait for the server; the calls of one connection do. Times
have a resolution of 0.1 ms, and there are no percentiles but the median of connections (in steps of
1 ms). It opens no more than 1,024 files: where more connections would be open, it counts errors of
kind `fd-unavail`. IPv4 only.""",
)
