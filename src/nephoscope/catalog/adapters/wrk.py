"""wrk, the load generator of Will Glozer."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, numbers
from nephoscope.catalog.adapters.quantities import (
    Params,
    duration,
    errors,
    latencies,
    rate,
    seconds,
    time,
    timeout,
    whole,
)
from nephoscope.catalog.adapters.reports import check_silence
from nephoscope.catalog.adapters.servers import nginx
from nephoscope.catalog.meaning import Domain, RequestLoop, Resource
from nephoscope.core.errors import UsageError

# Its own summary rounds to three digits; its Lua interface has the microseconds. A script with
# nothing but `done` changes nothing while requests are sent. wrk adds to its latencies those that
# it would have seen, had each connection sent at equal intervals; this takes them out again, from
# the longest down. Of requests without an answer it says nothing: `silent` is the time in which
# none was answered. Its rate is that of the intervals of 100 ms with answers; between them every
# connection waited for an answer that took longer. Where most time went into those, connections
# wait all the time.
_SCRIPT = """\
done = function(summary, latency, requests)
  local e, mean, p99 = summary.errors, latency.mean, latency:percentile(99)
  local values, counts, counted = {}, {}, 0
  for i = 1, #latency do
    values[i], counts[i] = latency(i)
    counted, counts[-values[i]] = counted + counts[i], i
  end
  local per_connection = math.floor(summary.requests / CONNECTIONS)
  if counted + e.timeout > summary.requests and per_connection > 0 then
    local interval = math.floor(summary.duration / per_connection)
    for i = #values, 1, -1 do
      local value = values[i] - interval
      while counts[i] > 0 and value > interval do
        local at = counts[-value]
        counts[at] = counts[at] - counts[i]
        value = value - interval
      end
    end
  end
  local measured, sum, slow = 0, 0, 0
  for i = 1, #values do
    measured, sum = measured + counts[i], sum + counts[i] * values[i]
    if values[i] > 100000 then slow = slow + counts[i] * values[i] end
  end
  local answering = 0
  if requests.mean > 0 then answering = summary.requests * 1e6 / requests.mean end
  local function percentile(share)
    local below = 0
    for i = 1, #values do
      below = below + counts[i]
      if below >= share * measured then return values[i] end
    end
  end
  io.write(string.format("counts %d %d %d\\n", summary.requests, summary.duration, measured))
  io.write(string.format("errors %d %d %d %d %d\\n",
    e.connect, e.read, e.write, e.status, e.timeout))
  if measured > 0 then
    io.write(string.format("measured %.3f %d %d %d %d\\n", sum / measured, percentile(0.5),
      percentile(0.9), percentile(0.99), latency.max))
    io.write(string.format("corrected %.3f %d\\n", mean, p99))
    local answered = answering / THREADS + slow / CONNECTIONS
    if slow > sum / 2 then answered = math.min(answered, sum / CONNECTIONS) end
    io.write(string.format("silent %d\\n", summary.duration - answered))
  end
end
"""

_UNEVEN = 0.2
"""Share of a run by which intervals of unequal length and rate may seem to be silent."""


def _command(params: Params) -> ToolCommand:
    if params["connections"] < params["threads"]:
        raise UsageError(
            f"wrk: {params['connections']} connections cannot be shared by {params['threads']} "
            "threads.",
            "Set at least as many connections as threads.",
        )
    arguments = {
        "--connections": str(params["connections"]),
        "--threads": str(params["threads"]),
        "--duration": f"{seconds('wrk', params, 'duration_ns')}s",
        "--timeout": f"{seconds('wrk', params, 'timeout_ns')}s",
        "--script": "/dev/stdin",
    }
    words = [word for pair in arguments.items() for word in pair]
    script = _SCRIPT.replace("CONNECTIONS", str(params["connections"]))
    script = script.replace("THREADS", str(params["threads"]))
    return ToolCommand((*words, nginx.URL), input=script)


def _figures(output: Output) -> dict[str, float]:
    requests, elapsed_us, measured = numbers(
        output, r"^counts ([0-9]+) ([0-9]+) ([0-9]+)\n", "its counts"
    )
    failed = numbers(output, r"^errors" + r" ([0-9]+)" * 5 + r"\n", "its errors")
    if not measured or not elapsed_us:
        raise ToolError(f"no request was answered in time; {sum(failed):.0f} errors.")
    timeouts = failed[-1]
    if measured + timeouts != requests:
        raise ToolError(
            f"its {measured:.0f} latencies and {timeouts:.0f} timeouts are not its "
            f"{requests:.0f} requests."
        )
    times = numbers(output, r"^measured ([0-9.]+)" + r" ([0-9]+)" * 4 + r"\n", "its latencies")
    corrected = numbers(output, r"^corrected ([0-9.]+) ([0-9]+)\n", "its corrected latencies")
    (silent_us,) = numbers(output, r"^silent (-?[0-9]+)\n", "its silence")
    if not timeouts:  # Nobody knows how long those took.
        check_silence(silent_us / 1e6, times[-1] / 1e6, _UNEVEN * elapsed_us / 1e6)
    names = ("latency_mean", "latency_p50", "latency_p90", "latency_p99", "latency_max")
    named = zip((*names, "corrected_mean", "corrected_p99"), (*times, *corrected), strict=True)
    return {
        "requests_per_s": requests * 1e6 / elapsed_us,
        **{f"{name}_ns": value_us * 1e3 for name, value_us in named},
        "errors_count": sum(failed),
    }


ADAPTER = adapter(
    "wrk",
    "wrk: requests to a web server in a closed loop",
    resource=Resource.SEVERAL,
    domain=Domain.WEB,
    request_loop=RequestLoop.CLOSED,
    params=(
        whole("connections", 10, 1, 16_000, "Open connections (`-c`)."),
        whole("threads", 1, 1, 256, "Threads that share the connections (`-t`)."),
        duration(2),
        timeout(2),
        nginx.BODY,
    ),
    metrics=(
        rate("requests_per_s", "Completed requests a second."),
        time("latency_mean_ns", "Mean time from sending a request to its response, as measured."),
        *latencies("p50", "p90", "p99", "max"),
        time("corrected_mean_ns", "Mean with wrk's correction for requests that were not sent."),
        time("corrected_p99_ns", "99th percentile with this correction."),
        errors("Connections and requests that failed, and responses with a status above 399."),
    ),
    overhead="one CPU for each thread, and one for the server",
    source="Glozer, wrk: a HTTP benchmarking tool, github.com/wg/wrk",
    minimum="4.0",
    command=_command,
    version=r"^wrk (?:[a-z]+/)?([0-9]+(?:\.[0-9]+)+)",
    figures=_figures,
    server=nginx.SERVER,
    measures="""
How many requests a second a web server answers when each connection sends its next request as soon
as the last one was answered, and how long an answer takes.""",
    how=f"""
{nginx.PAGE}
Percentiles come from wrk's Lua interface, because its summary rounds them to three digits.""",
    truth="""
The requests that wrk counts are those that nginx counts, up to one in flight for each connection.
""",
    cross_check="`ab`, `h2load` and `siege` load the same server.",
    overhead_page="""
Each thread of wrk and nginx's worker keep a CPU busy. On one machine they share its CPUs.""",
    caveats="""
Closed loop: while the server stalls, nobody sends. wrk adds the requests that each connection would
have sent at its mean interval, so that its own mean and percentiles are not those of requests that
were sent; `latency_…` has these additions taken out, `corrected_…` has them. The correction knows
the mean interval of the run itself, which a stall has made longer, and not a schedule. Times have a
resolution of 1 µs; a response after `timeout_ns` is an error and in no latency, and a request that
is not answered until the end is neither: a trial in which nothing was answered for longer than any
answer took, and for a fifth of its time, fails. After a stall of a
second wrk needs up to a minute of CPU time to hand over its latencies.""",
)
