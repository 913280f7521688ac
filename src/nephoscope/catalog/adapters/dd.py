"""dd of the GNU coreutils: one sequential pass over a file."""

from __future__ import annotations

from dataclasses import replace

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, ToolStep, numbers
from nephoscope.catalog.adapters.quantities import (
    DIRECTORY,
    Params,
    choice,
    throughput,
    time,
    whole,
)
from nephoscope.catalog.meaning import RequestLoop, Resource


def _command(params: Params) -> ToolCommand:
    words = [f"bs={params['block_bytes']}", f"count={params['blocks']}"]
    write = ("if=/dev/zero", "of=file", *words, "oflag=direct", "conv=fsync")
    read = ("if=file", "of=/dev/null", *words, "iflag=direct")
    reading = params["operation"] == "read"
    return ToolCommand(
        read if reading else write,
        directory=params["directory"],
        needs_bytes=params["block_bytes"] * params["blocks"],
        prepare=(ToolStep("dd", write),) if reading else (),
    )


def _figures(output: Output) -> dict[str, float]:
    # Its report goes to standard error.
    report = replace(output, stdout=output.stderr)
    pattern = r"^([0-9]+) bytes (?:\([^\n]*\) )?copied, ([0-9.e+-]+) s, [^\n]*\n\Z"
    copied, elapsed_s = numbers(report, pattern, "the bytes copied")
    if not copied or not elapsed_s > 0:
        raise ToolError("it copied nothing.")
    return {"disk_bytes_per_s": copied / elapsed_s, "elapsed_ns": elapsed_s * 1e9}


ADAPTER = adapter(
    "dd",
    "dd: one sequential pass over a file by direct I/O",
    resource=Resource.DISK,
    request_loop=RequestLoop.CLOSED,
    params=(
        DIRECTORY,
        choice(
            "operation",
            ("read", "write"),
            "write: zeros to a new file; read: a file that was written before.",
            default="write",
        ),
        whole("block_bytes", 1 << 20, 512, 1 << 30, "Bytes per operation (`bs`).", "bytes"),
        whole("blocks", 64, 1, 1_000_000_000, "Number of operations (`count`)."),
    ),
    metrics=(
        throughput("disk_bytes_per_s", "Bytes per second, with the final fsync of a write."),
        time("elapsed_ns", "Time of the pass."),
    ),
    command=_command,
    figures=_figures,
    version=r"^dd \(coreutils\) ([0-9]+(?:\.[0-9]+)+)",
    source="dd, gnu.org/software/coreutils",
    minimum="8.6",
    install="apt-get install coreutils",
    overhead="the disk space of its file",
    measures="""
How fast a file is written or read once, from begin to end, by a tool that is on every machine.""",
    how="""
Direct I/O in blocks of one size; a write ends with fsync. A file to read is written first, untimed.
""",
    truth="On a device whose rate is set, the rate is that one.",
    cross_check="""
`disk.io` with `operation=write` or `read` and the same `record_bytes` measures the same.""",
    overhead_page="One CPU, mostly in the kernel.",
    caveats="""
Zeros: storage that compresses or deduplicates is faster with them than with data. One figure, so
that nothing is known of variation within the pass. File systems in memory have no direct I/O.""",
)
