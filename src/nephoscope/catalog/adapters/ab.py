"""ab, the benchmark that comes with the Apache web server."""

from __future__ import annotations

import re

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, numbers
from nephoscope.catalog.adapters.quantities import (
    Params,
    boolean,
    errors,
    latencies,
    options,
    rate,
    seconds,
    time,
    timeout,
    whole,
)
from nephoscope.catalog.adapters.servers import nginx
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource
from nephoscope.core.errors import UsageError


def _command(params: Params) -> ToolCommand:
    if params["connections"] > params["requests"]:
        raise UsageError(
            f"ab: {params['connections']} connections are more than {params['requests']} requests.",
            "Set more requests.",
        )
    limit = ("-s", str(seconds("ab", params, "timeout_ns")))
    keep = ("-k",) if params["keep_alive"] else ()
    counts = options(params, {"-n": "requests", "-c": "connections"})
    return ToolCommand(("-q", *counts, *limit, *keep, "-e", "/dev/stdout", nginx.URL))


def _figures(output: Output) -> dict[str, float]:
    number = r"([0-9.]+)"
    (completed,) = numbers(output, r"^Complete requests: +([0-9]+)\n", "the completed requests")
    (failed,) = numbers(output, r"^Failed requests: +([0-9]+)\n", "the failed requests")
    (per_s,) = numbers(output, rf"^Requests per second: +{number} .*\n", "requests per second")
    (mean,) = numbers(output, rf"^Time per request: +{number} \[ms\] \(mean\)\n", "the mean time")
    if not completed:
        raise ToolError(f"no request was completed; {failed:.0f} failed.")
    refused = 0.0
    if "Non-2xx responses:" in output.stdout:
        (refused,) = numbers(output, r"^Non-2xx responses: +([0-9]+)\n", "other responses")
    if failed + refused >= completed:
        raise ToolError(f"none of its {completed:.0f} requests succeeded.")
    # Both are flushed at its end, the table into the midst of the report or before it.
    percentiles = dict(re.findall(rf"^([0-9]+),{number}\n", output.stdout, re.MULTILINE | re.ASCII))
    if sorted(percentiles, key=int) != [str(percent) for percent in range(101)]:
        raise ToolError("its table lacks percentiles, or has more than one of each.")
    try:
        times = {f"latency_p{p}_ns": float(percentiles[str(p)]) * 1e6 for p in (50, 90, 99, 100)}
    except ValueError as error:
        raise ToolError("its table of percentiles has what is no number.") from error
    times["latency_max_ns"] = times.pop("latency_p100_ns")
    values = {"requests_per_s": per_s, "latency_mean_ns": mean * 1e6}
    return {**values, **times, "errors_count": failed + refused}


ADAPTER = adapter(
    "ab",
    "ab (ApacheBench): requests to a web server in a closed loop",
    resource=Resource.SEVERAL,
    domain=Domain.WEB,
    request_loop=RequestLoop.CLOSED,
    params=(
        whole("requests", 10_000, 1, 1_000_000_000, "Requests in all (`-n`)."),
        whole("connections", 10, 1, 16_000, "Requests at a time (`-c`)."),
        boolean("keep_alive", True, "Whether connections are kept (`-k`)."),
        timeout(30),
        nginx.BODY,
    ),
    metrics=(
        rate("requests_per_s", "Completed requests a second."),
        time("latency_mean_ns", "Mean time of a request, with its connection where it made one."),
        *latencies("p50", "p90", "p99", "max"),
        errors("Requests that failed, or had another status than 2xx."),
    ),
    overhead="one CPU, and one for the server",
    source="ab, Apache HTTP server benchmarking tool, httpd.apache.org",
    minimum="2.3",
    install="apt-get install apache2-utils",
    command=_command,
    version_command=("-V",),
    version=r"^This is ApacheBench, Version ([0-9]+(?:\.[0-9]+)+)",
    figures=_figures,
    server=nginx.SERVER,
    measures="""
How many requests a second a web server answers when each connection sends its next request as soon
as the last one was answered, and how long an answer takes.""",
    how=f"""
{nginx.PAGE}
Percentiles come from the table that ab writes with `-e`, because its report rounds to milliseconds.
""",
    truth="The requests that ab completes are exactly those that nginx serves.",
    cross_check="`wrk`, `h2load` and `siege` load the same server.",
    overhead_page="ab and nginx's worker keep a CPU busy each. On one machine they share its CPUs.",
    caveats="""
Closed loop: while the server stalls, nobody sends, so that a stall is one slow response for each
connection. It speaks HTTP/1.0, with keep-alive as an extension; one thread. Its mean is the time of
the run over the requests of one connection; the percentiles are of single requests.""",
)
