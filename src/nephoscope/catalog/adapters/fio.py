"""fio: I/O to files or devices by a job file of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nephoscope.catalog import MetricSpec
from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError
from nephoscope.catalog.adapters.quantities import (
    DIRECTORY,
    Params,
    rate,
    text,
    throughput,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import json_report, number_at, scalars, value_at
from nephoscope.catalog.meaning import Resource
from nephoscope.core.model import Sample

_JOB = """\
[job]
rw=randread
bs=4k
size=64m
direct=1
time_based=1
runtime=1s
"""
_PERCENTILES = {"p50": "50.000000", "p90": "90.000000", "p99": "99.000000", "p999": "99.900000"}
_OPERATIONS = ("read", "write", "trim")


def _command(params: Params) -> ToolCommand:
    return ToolCommand(
        ("--output-format=json", "-"),
        input=params["job"].rstrip("\n") + "\n",
        directory=params["directory"],
        needs_bytes=params["space_bytes"],
    )


def _parse(output: Output) -> list[Sample]:
    # Its warnings precede the report.
    report = json_report(replace(output, stdout=output.stdout[max(0, output.stdout.find("{")) :]))
    parts = list(_parts(report))
    if not parts:
        raise ToolError("no job completed any operation.")
    alone = len(parts) == 1
    return [
        sample
        for job, operation, values in parts
        for sample in scalars(values, **({} if alone else {"job": job, "operation": operation}))
    ]


def _parts(report: Any) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Yields job, operation and figures of all that did something. ToolError for a job's error."""
    shared = report.get("global options", {})
    for number, job in enumerate(value_at(report, "jobs")):
        if error := number_at(job, "error"):
            raise ToolError(f"job {number + 1} ended with error {error:.0f}.")
        name = str(value_at(job, "jobname"))[:64]
        options = {**shared, **value_at(job, "job options")}
        prefix = "disk" if options.get("direct", "0") not in ("0", "") else "cached"
        for operation in _OPERATIONS:
            figures = value_at(job, operation)
            if not number_at(figures, "total_ios"):
                continue
            values = {
                "operations_per_s": number_at(figures, "iops"),
                "bytes_per_s": number_at(figures, "bw_bytes"),
                "latency_mean_ns": number_at(figures, "clat_ns", "mean"),
                "latency_max_ns": number_at(figures, "clat_ns", "max"),
            }
            for short, words in _PERCENTILES.items():
                at = number_at(figures, "clat_ns", "percentile", words)
                values[f"latency_{short}_ns"] = at
            yield name, operation, {f"{prefix}_{key}": value for key, value in values.items()}


def _metrics(prefix: str, where: str) -> tuple[MetricSpec, ...]:
    """Returns the metrics of jobs with direct I/O or without. where: which of them."""
    headline = prefix == "disk"
    return (
        rate(f"{prefix}_operations_per_s", f"Operations per second {where}.", headline=headline),
        throughput(f"{prefix}_bytes_per_s", f"Bytes per second {where}.", headline=False),
        time(f"{prefix}_latency_mean_ns", f"Mean time of an operation {where} (`clat`)."),
        time(f"{prefix}_latency_max_ns", f"Longest time of an operation {where} (`clat`)."),
        *(
            time(f"{prefix}_latency_{short}_ns", f"{short[1:]}th percentile {where} (`clat`).")
            for short in _PERCENTILES
        ),
    )


ADAPTER = adapter(
    "fio",
    "fio: I/O by a job file",
    resource=Resource.DISK,
    params=(
        DIRECTORY,
        text("job", _JOB, "Text of the job file."),
        whole(
            "space_bytes",
            64 << 20,
            0,
            1 << 50,
            "Disk space that its files need, checked before the run.",
            "bytes",
        ),
    ),
    metrics=(*_metrics("disk", "by direct I/O"), *_metrics("cached", "through the page cache")),
    command=_command,
    parse=_parse,
    version=r"^fio-([0-9]+(?:\.[0-9]+)+)",
    source="fio, github.com/axboe/fio",
    minimum="3.0",
    overhead="as the job file says",
    measures="""
Rate, bandwidth and completion latency of the jobs of a file that the user writes.""",
    how="""
The job file goes to fio's standard input; fio runs in a scratch folder, where its files are unless
the job names a directory. Figures come from the report in JSON, for each job and each of read,
write and trim: as factors `job` and `operation`, where there is more than one. With `direct=1` they
are named `disk_…`, else `cached_…`.""",
    truth="""
On a device whose rate is set, the rate is that one; figures agree with `disk.io` at the same
settings.""",
    cross_check="`disk.io` measures one of fio's workloads without a job file.",
    caveats="""
A job file can start programs (`exec_prerun`) and write to any path that the user may write to: run
those of people whom you trust. Latency is fio's `clat`, from submission to completion, which under
asynchronous engines leaves the submission out. Jobs with `group_reporting` count as one.""",
)
