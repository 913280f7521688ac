"""siege, the load generator of Jeffrey Fulmer."""

from __future__ import annotations

import json

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, last_words
from nephoscope.catalog.adapters.quantities import Params, boolean, errors, rate, time, whole
from nephoscope.catalog.adapters.servers import nginx
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource


def _command(params: Params) -> ToolCommand:
    settings = {
        "limit": params["connections"],
        "connection": "keep-alive" if params["keep_alive"] else "close",
        "logging": "false",
        "parser": "false",
        # The default ends the run after 1024 failures.
        "failures": 1_000_000_000,
    }
    return ToolCommand(
        (
            "--rc=/dev/stdin",
            "--quiet",
            "--json-output",
            "--benchmark",
            f"--concurrent={params['connections']}",
            f"--reps={params['requests']}",
            nginx.URL,
        ),
        input="".join(f"{name} = {value}\n" for name, value in settings.items()),
    )


def _figures(output: Output) -> dict[str, float]:
    at = output.stdout.rfind("{")
    try:
        report = json.loads(output.stdout[at:])
        elapsed_s, count, failed, in_flight = (
            float(report[name])
            for name in ("elapsed_time", "transactions", "failed_transactions", "concurrency")
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ToolError(f"its report is no whole JSON object.{last_words(output)}") from error
    if not count:
        raise ToolError(f"no request succeeded; {failed:.0f} failed.")
    if elapsed_s < 0.5:
        raise ToolError(
            f"it ended after {elapsed_s} s, and its clock has steps of 10 ms. Raise `requests`."
        )
    return {
        "requests_per_s": count / elapsed_s,
        "latency_mean_ns": in_flight * elapsed_s / count * 1e9,
        "errors_count": failed,
    }


ADAPTER = adapter(
    "siege",
    "siege: requests to a web server by concurrent users in a closed loop",
    resource=Resource.SEVERAL,
    domain=Domain.WEB,
    request_loop=RequestLoop.CLOSED,
    thread_param="connections",
    params=(
        whole("connections", 10, 1, 4_096, "Users, each a thread (`--concurrent`)."),
        whole("requests", 5_000, 1, 1_000_000_000, "Requests of each user (`--reps`)."),
        boolean("keep_alive", False, "Whether users keep their connections."),
        nginx.BODY,
    ),
    metrics=(
        rate("requests_per_s", "Successful requests a second."),
        time(
            "latency_mean_ns", "Mean time of a request, from siege's sum of all times (page: How)."
        ),
        errors("Requests that failed."),
    ),
    overhead="a thread for each user, and the server's CPU",
    source="Fulmer, siege: an http load tester and benchmarking utility, joedog.org",
    minimum="4.0",
    command=_command,
    version=r"^SIEGE ([0-9]+(?:\.[0-9]+)+)",
    figures=_figures,
    server=nginx.SERVER,
    measures="""
How many requests a second a web server answers when each of a number of users sends its next
request as soon as the last one was answered.""",
    how=f"""
{nginx.PAGE}
siege reports times in steps of 10 ms, and 0.00 s for the mean of most. It reports its sum of times
too, as the mean number of requests in flight; the mean time is that number times the duration over
the requests. Users do not pause (`--benchmark`).


It is started with a number of requests, never with a time (`--time`): when its time is over, siege
4.0.7 cancels its threads wherever they are, and a thread that holds the lock of the memory
allocator then keeps the program from ending (github.com/JoeDog/siege/issues/66; 1 of 200 runs).""",
    truth="""
The transactions that siege counts are those that nginx serves: `requests` times `connections`.""",
    cross_check="`wrk`, `ab` and `h2load` load the same server.",
    overhead_page="""
A thread for each user; nginx's worker keeps a CPU busy. On one machine they share its CPUs.""",
    caveats="""
A run of less than half a second is refused, because its clock has steps of 10 ms. Closed loop:
while the server stalls, nobody sends. A single request's time is 0 or 10 ms to siege, so that there
are no percentiles, and the mean is good for many requests only.""",
)
