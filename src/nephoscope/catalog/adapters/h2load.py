"""h2load, the load generator of nghttp2."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, matched, numbers
from nephoscope.catalog.adapters.quantities import (
    Params,
    choice,
    errors,
    latencies,
    options,
    rate,
    time,
    whole,
)
from nephoscope.catalog.adapters.servers import nginx
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource
from nephoscope.core.errors import UsageError

_UNITS_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}


def _command(params: Params) -> ToolCommand:
    clients, threads = params["connections"], params["threads"]
    if not threads <= clients <= params["requests"]:
        raise UsageError(
            f"h2load: {params['requests']} requests on {clients} connections in {threads} threads "
            "leave some with nothing to do.",
            "Set at least as many requests as connections, and connections as threads.",
        )
    names = {"-n": "requests", "-c": "connections", "-m": "streams", "-t": "threads"}
    return ToolCommand((*options(params, names), "-p", params["protocol"], nginx.URL))


def _figures(output: Output) -> dict[str, float]:
    (per_s,) = numbers(output, r"^finished in [0-9.a-z]+, ([0-9.]+) req/s, .*\n", "its rate")
    kinds = ("done", "succeeded", "failed", "errored", "timeout")
    pattern = ", ".join(rf"([0-9]+) {kind}" for kind in kinds)
    done, succeeded, failed, *_ = numbers(
        output, rf"^requests: [0-9]+ total, [0-9]+ started, {pattern}\n", "its requests"
    )
    # Its `errored` are some of its `failed`, and its `timeout` some of those.
    if not succeeded:
        raise ToolError(f"none of its {done:.0f} requests succeeded.")
    shortest, longest, mean = _times(output, "time for request")
    (_, _, first_byte) = _times(output, "time to 1st byte")
    return {
        "requests_per_s": per_s,
        "latency_min_ns": shortest,
        "latency_mean_ns": mean,
        "latency_max_ns": longest,
        "first_byte_mean_ns": first_byte,
        "errors_count": failed,
    }


def _times(output: Output, name: str) -> list[float]:
    """Returns minimum, maximum and mean of a line of its table, in nanoseconds."""
    pattern = rf"^{name}: " + r" *([0-9.]+)(us|ms|s)" * 3 + r" .*%\n"
    groups = matched(output, pattern, f"the {name}")
    try:
        return [
            float(number) * _UNITS_NS[unit]
            for number, unit in zip(groups[::2], groups[1::2], strict=True)
        ]
    except ValueError as error:
        raise ToolError(f"the {name} is no time.") from error


ADAPTER = adapter(
    "h2load",
    "h2load: requests to a web server over HTTP/2 or HTTP/1.1 in a closed loop",
    resource=Resource.SEVERAL,
    domain=Domain.WEB,
    request_loop=RequestLoop.CLOSED,
    params=(
        whole("requests", 10_000, 1, 1_000_000_000, "Requests in all (`-n`)."),
        whole("connections", 10, 1, 16_000, "Connections (`-c`)."),
        whole("streams", 1, 1, 1_000, "Requests in flight on a connection (`-m`)."),
        whole("threads", 1, 1, 256, "Threads that share the connections (`-t`)."),
        choice(
            "protocol",
            ("h2c", "http/1.1"),
            "h2c: HTTP/2 without TLS. http/1.1: with pipelining where `streams` is above 1 (`-p`).",
        ),
        nginx.BODY,
    ),
    metrics=(
        rate("requests_per_s", "Completed requests a second."),
        time("latency_min_ns", "Shortest time from sending a request to its response's end."),
        *latencies("mean", "max"),
        time("first_byte_mean_ns", "Mean time from connecting to the first byte of a response."),
        errors("Requests that failed, timed out, or had a status above 399."),
    ),
    overhead="one CPU for each thread, and one for the server",
    source="Tsujikawa, h2load: HTTP/2 benchmarking tool, nghttp2.org",
    minimum="1.40",
    install="apt-get install nghttp2-client",
    command=_command,
    version=r"^h2load nghttp2/([0-9]+(?:\.[0-9]+)+)",
    figures=_figures,
    server=nginx.SERVER,
    measures="""
How many requests a second a web server answers over HTTP/2 (or 1.1) when each stream sends its next
request as soon as the last one was answered, and how long an answer takes.""",
    how=nginx.PAGE,
    truth="The requests that h2load completes are exactly those that nginx serves.",
    cross_check="`wrk`, `ab` and `siege` load the same server over HTTP/1.1.",
    overhead_page="""
Each thread of h2load and nginx's worker keep a CPU busy. On one machine they share its CPUs.""",
    caveats="""
Closed loop: while the server stalls, nobody sends. Its report has no percentiles, and times of
three digits.""",
)
