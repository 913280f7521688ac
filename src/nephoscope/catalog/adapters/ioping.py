"""ioping: the latency of a disk, one request at a time."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import (
    DIRECTORY,
    Params,
    choice,
    period,
    rate,
    throughput,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import Figures
from nephoscope.catalog.meaning import Resource

_OPERATIONS = {"read": ("-L",), "write": ("-L", "-W"), "randread": (), "randwrite": ("-W",)}

_METRICS = (
    rate("disk_operations_per_s", "Requests per second of the time that requests took."),
    throughput("disk_bytes_per_s", "Bytes per second of the same time."),
    time("disk_latency_min_ns", "Shortest time of a request."),
    time("disk_latency_mean_ns", "Mean time of a request.", headline=True),
    time("disk_latency_max_ns", "Longest time of a request."),
    time("disk_latency_stdev_ns", "Standard deviation of these times."),
)


def _command(params: Params) -> ToolCommand:
    return ToolCommand(
        (
            *("-B", "-D", "-c", str(params["requests"]), "-i", str(params["interval_ns"] / 1e9)),
            *("-s", str(params["record_bytes"]), "-S", str(params["file_bytes"])),
            *(*_OPERATIONS[params["operation"]], "."),
        ),
        directory=params["directory"],
        needs_bytes=params["file_bytes"],
    )


ADAPTER = adapter(
    "ioping",
    "ioping: latency of a disk, one request at a time",
    resource=Resource.DISK,
    params=(
        DIRECTORY,
        choice(
            "operation", _OPERATIONS, "Sequential or random reads or writes.", default="randread"
        ),
        whole("requests", 100, 2, 10_000_000, "Number of requests (`-c`); the first is left out."),
        period(
            "interval_ns",
            "0s",
            "0s",
            "1h",
            "Time between two requests (`-i`); 0 sends each after the one before.",
        ),
        whole("record_bytes", 4096, 512, 1 << 30, "Bytes per request (`-s`).", "bytes"),
        whole("file_bytes", 1 << 20, 4096, 1 << 40, "Size of the scratch file (`-S`).", "bytes"),
    ),
    metrics=_METRICS,
    command=_command,
    figures=(
        Figures(
            "one line of figures",
            r"\A[1-9][0-9]* [0-9]+" + r" ([0-9]+)" * 6 + r" [0-9]+ [0-9]+\n\Z",
            {metric.id: 1 for metric in _METRICS},
        ),
    ),
    version_command=("-v",),
    version=r"^ioping ([0-9]+(?:\.[0-9]+)+)",
    source="ioping, github.com/koct9i/ioping",
    minimum="1.0",
    overhead="the disk space of its file",
    measures="How long a disk takes for one request, as `ping` does for a network.",
    how="Direct I/O on a scratch file. Figures come from its raw statistics (`-B`).",
    truth="On a device whose latency is set, the mean is that latency.",
    cross_check="`disk.io` with `queue_depth=1` and `fio` measure the same.",
    overhead_page="One request at a time.",
    caveats="""
The first request is left out. No percentiles. File systems in memory have no direct I/O.""",
)
