"""iozone: sequential and random I/O of one file."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, check_ending, numbers
from nephoscope.catalog.adapters.quantities import DIRECTORY, Params, boolean, throughput, whole
from nephoscope.catalog.meaning import RequestLoop, Resource
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample

_OPERATIONS = ("write", "rewrite", "read", "reread", "randread", "randwrite")


def _command(params: Params) -> ToolCommand:
    record, total = params["record_bytes"], params["file_bytes"]
    if record % 1024 or total % record:
        raise UsageError(
            f"iozone: record_bytes {record} must be a multiple of 1024, and file_bytes {total} of "
            "record_bytes.",
            "Set file_bytes=64MiB and record_bytes=64KiB.",
        )
    direct = ("-I",) if params["direct"] else ()
    return ToolCommand(
        (
            *("-s", f"{total // 1024}k", "-r", f"{record // 1024}k", "-f", "file"),
            *("-i", "0", "-i", "1", "-i", "2", "-e", *direct),
        ),
        directory=params["directory"],
        needs_bytes=total,
    )


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    row = (
        r"^ +[0-9]+ +[0-9]+" + r" +([0-9]+)" * len(_OPERATIONS) + r" *\n\niozone test complete\.\n"
    )
    rates = numbers(output, row, "its row of figures")
    if not all(rates):
        raise ToolError("an operation was too fast or too slow for its clock.")
    return [
        Sample("operation_bytes_per_s", rate * 1024, factors={"operation": operation})
        for operation, rate in zip(_OPERATIONS, rates, strict=True)
    ]


ADAPTER = adapter(
    "iozone",
    "iozone: sequential and random I/O of one file",
    resource=Resource.DISK,
    request_loop=RequestLoop.CLOSED,
    params=(
        DIRECTORY,
        whole("file_bytes", 64 << 20, 65_536, 1 << 50, "Size of the file (`-s`).", "bytes"),
        whole("record_bytes", 65_536, 4096, 1 << 24, "Bytes per operation (`-r`).", "bytes"),
        boolean("direct", True, "Bypass the page cache (`-I`)."),
    ),
    metrics=(
        throughput("operation_bytes_per_s", "Bytes per second of each operation, fsync included."),
    ),
    command=_command,
    parse=_parse,
    version_command=("-v",),
    version=r"Version \$Revision: ([0-9]+\.[0-9]+) \$",
    source="iozone, iozone.org",
    minimum="3.400",
    install="apt-get install iozone3",
    overhead="the disk space of its file",
    measures="""
How fast a file is written, written again, read, read again, and read and written at random.""",
    how="""
The tests 0, 1 and 2 on a file in a scratch folder; figures come from the row of its report, as
factor `operation`.""",
    truth="On a device whose rate is set, the rates are that one.",
    cross_check="""
`disk.records` measures the same operations by record size, and `fio` each of them.""",
    overhead_page="One CPU, mostly in the kernel.",
    caveats="""
Without `direct` the file is in the page cache when it is read. File systems in memory have no
direct I/O. The tool is not in the main section of Debian.""",
)
