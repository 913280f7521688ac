"""dbench: the file operations of an office's file server."""

from __future__ import annotations

import re

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, check_ending
from nephoscope.catalog.adapters.quantities import (
    DIRECTORY,
    Params,
    duration,
    seconds,
    throughput,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import Figures, scalars, values_at
from nephoscope.catalog.meaning import RequestLoop, Resource
from nephoscope.core.model import Sample

_SUMMARY = Figures(
    "the throughput",
    r"^Throughput ([0-9.]+) MB/sec  (?:\(sync [^\n]*\) +)?[0-9]+ clients  [0-9]+ procs  "
    r"max_latency=([0-9.]+) ms\n\Z",
    {"throughput_bytes_per_s": 1e6, "latency_max_ns": 1e6},
)
_ROW = re.compile(
    r"^ ([A-Za-z]+) +([1-9][0-9]*) +([0-9]+\.[0-9]+) +([0-9]+\.[0-9]+)$",
    re.MULTILINE | re.ASCII,
)
_CLIENT_BYTES = 64 << 20


def _command(params: Params) -> ToolCommand:
    clients = str(params["clients"])
    return ToolCommand(
        ("-t", str(seconds("dbench", params)), "-D", ".", clients),
        directory=params["directory"],
        needs_bytes=params["clients"] * _CLIENT_BYTES,
    )


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    values = values_at(output, [_SUMMARY])
    if not values["throughput_bytes_per_s"]:
        raise ToolError("it moved nothing in the measured time: take a longer duration.")
    samples = scalars(values)
    rows = _ROW.findall(output.stdout)
    if not rows or len({name for name, *_ in rows}) < len(rows):
        raise ToolError("its report lacks operations, or has one more than once.")
    for name, _, mean, longest in rows:
        times = {"operation_mean_ns": float(mean) * 1e6, "operation_max_ns": float(longest) * 1e6}
        samples += scalars(times, operation=name)
    return samples


ADAPTER = adapter(
    "dbench",
    "dbench: file operations of an office's file server",
    resource=Resource.DISK_WRITE,
    request_loop=RequestLoop.CLOSED,
    params=(
        DIRECTORY,
        whole("clients", 1, 1, 10_000, "Number of processes, each with files of its own."),
        duration(2),
    ),
    metrics=(
        throughput("throughput_bytes_per_s", "Bytes read and written per second, all clients."),
        time("latency_max_ns", "Longest time of an operation."),
        time("operation_mean_ns", "Mean time of each operation."),
        time("operation_max_ns", "Longest time of each operation."),
    ),
    command=_command,
    parse=_parse,
    version=r"^dbench version ([0-9]+(?:\.[0-9]+)+)",
    source="dbench, dbench.samba.org",
    minimum="4.0",
    overhead="one CPU for each client, and the disk space of its files",
    measures="""
How a file system serves the operations of the NetBench benchmark, from a recording that comes
with the tool: opens, reads, writes, renames, deletions and flushes of office files.""",
    how="""
Each client repeats the recording in a scratch folder, after a warm-up. Figures come from its
report.""",
    truth="With one client the throughput is what its recording moves in the measured time.",
    cross_check="`disk.files` has the operations of a mail server.",
    overhead_page="One process for each client.",
    caveats="""
The page cache takes part; its flushes wait for the disk. A mean below 1 µs is left out.""",
)
