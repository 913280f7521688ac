"""bonnie++: sequential throughput and random seeks of a large file."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, check_ending, matched
from nephoscope.catalog.adapters.quantities import (
    DIRECTORY,
    Params,
    boolean,
    rate,
    throughput,
    whole,
)
from nephoscope.catalog.meaning import RequestLoop, Resource
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample

_MIB = 1 << 20
_NUMBER = r"([0-9]+(?:\.[0-9]+)?|\++)"
_FIGURES = {
    "write_bytes_per_s": 1024,
    "rewrite_bytes_per_s": 1024,
    "read_bytes_per_s": 1024,
    "seeks_per_s": 1,
}


def _command(params: Params) -> ToolCommand:
    mebibytes, rest = divmod(params["file_bytes"], _MIB)
    if rest or mebibytes < 2:
        raise UsageError(
            f"bonnie: file_bytes {params['file_bytes']} must be a whole number of MiB, at least 2.",
            "Set file_bytes=256MiB.",
        )
    direct = ("-D",) if params["direct"] else ()
    return ToolCommand(
        (
            *("-q", "-f", "-d", ".", "-m", "host", "-s", f"{mebibytes}M", "-n", "0"),
            # It refuses files of less than twice the memory, which direct I/O does not need.
            *("-r", str(max(1, mebibytes // 2)), *direct),
        ),
        directory=params["directory"],
        needs_bytes=params["file_bytes"],
        paths=("/usr/sbin",),
        # It refuses to run as root.
        user="nobody",
    )


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    places = (
        rf"{_NUMBER},[^,\n]*,{_NUMBER},[^,\n]*,,,{_NUMBER},[^,\n]*,{_NUMBER},[^,\n]*,[^\n]*\n\Z"
    )
    head = r"\A1\.98,[^,\n]*,host,1,[0-9]+,[0-9]+[MG],,[0-9]+,[0-9]+,,,"
    groups = matched(output, head + places, "its line of figures")
    samples = [
        Sample(metric, float(text) * scale)
        for (metric, scale), text in zip(_FIGURES.items(), groups, strict=True)
        if not text.startswith("+")
    ]
    if not samples:
        raise ToolError("every test took less than half a second: take a larger file.")
    return samples


ADAPTER = adapter(
    "bonnie",
    "bonnie++: sequential throughput and random seeks of a large file",
    resource=Resource.DISK,
    request_loop=RequestLoop.CLOSED,
    params=(
        DIRECTORY,
        whole("file_bytes", 256 * _MIB, 2 * _MIB, 1 << 50, "Size of the file (`-s`).", "bytes"),
        boolean("direct", True, "Bypass the page cache (`-D`)."),
    ),
    metrics=(
        throughput("write_bytes_per_s", "Bytes written per second, in blocks of 8 KiB."),
        throughput("rewrite_bytes_per_s", "Bytes read and written again per second."),
        throughput("read_bytes_per_s", "Bytes read per second."),
        rate("seeks_per_s", "Random seeks per second of several processes, a tenth with a write."),
    ),
    command=_command,
    parse=_parse,
    version_command=("-h",),
    version=r"^Version: ([0-9]+\.[0-9]+)",
    source="bonnie++, doc.coker.com.au/projects/bonnie",
    minimum="1.98",
    tool="bonnie++",
    overhead="the disk space of its file",
    measures="""
How fast a large file is written, written again in place and read, and how many random positions of
it are read per second.""",
    how="""
The tests of blocks (`-f`), without those of single bytes and of many small files; figures come from
its line of CSV.""",
    truth="On a device whose rate is set, the rates are that one.",
    cross_check="`disk.io` and `fio` measure the same operations.",
    overhead_page="One CPU; five processes for the seeks.",
    caveats="""
It has no figure for what takes less than half a second, which is left out here. Without `direct`
the file should be twice as large as the memory.""",
)
