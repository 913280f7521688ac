"""mbw, which copies memory."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import Figure, adapter, version_by_usage
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import Params, choice, throughput, whole
from nephoscope.catalog.meaning import Resource

_METHODS = {"memcpy": "-t0", "assignment": "-t1", "blocks": "-t2"}


def _command(params: Params) -> ToolCommand:
    repetitions = ("-q", "-n", str(params["repetitions"]))
    return ToolCommand((*repetitions, _METHODS[params["method"]], str(params["array_bytes"] >> 20)))


ADAPTER = adapter(
    "mbw",
    "mbw: bandwidth of copying memory",
    resource=Resource.MEMORY,
    minimum="1.0",
    source="Horvath, mbw, github.com/raas/mbw",
    version=version_by_usage("Usage: mbw [options] array_size_in_MiB", "1.0"),
    version_command=("-h",),
    params=(
        choice("method", _METHODS, "How memory is copied (`-t`)."),
        whole("array_bytes", 128 << 20, 1 << 20, 1 << 40, "Array; rounded down to MiB.", "bytes"),
        whole("repetitions", 10, 1, 10_000, "Copies whose mean is reported (`-n`)."),
    ),
    command=_command,
    figures=(
        Figure(
            throughput("copy_bytes_per_s", "Bytes copied a second, mean."),
            r"^AVG\tMethod: [A-Z]+\tElapsed: [0-9.]+\tMiB: [0-9.]+\tCopy: ([0-9.]+) MiB/s\n",
            2.0**20,
        ),
    ),
    overhead="one CPU, and twice `array_bytes` of memory",
    measures="How many bytes a second one thread copies from one array to another.",
    how="Two arrays are filled, and one is copied over the other again and again.",
    truth="The rate times the elapsed time that it reports is the array's size.",
    cross_check="`mem.stream` with the kernel copy.",
    overhead_page="One CPU; twice `array_bytes` of memory.",
    caveats="""
A byte that is copied is read and written, and its line may be read before it is written: memory
moves two to three times as much. memcpy of the C library writes past the caches above a size of its
choice.""",
)
