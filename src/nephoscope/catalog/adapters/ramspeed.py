"""RAMspeed/SMP, by Hollander and Bolotoff: bandwidth of memory."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import Figure, adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import Params, choice, throughput, whole
from nephoscope.catalog.meaning import Resource

_TESTS = {"integer": "3", "float": "6", "mmx": "9", "sse": "12", "mmx-nt": "15", "sse-nt": "18"}
_METRICS = {
    "copy": ("Copy", "A = B."),
    "scale": ("Scale", "A = m B."),
    "add": ("Add", "A = B + C."),
    "triad": ("Triad", "A = m B + C."),
    "mean": ("AVERAGE", "Mean of the four, as it prints it."),
}


def _figure(name: str) -> Figure:
    label, doc = _METRICS[name]
    words = f"Bytes moved a second by {doc}"
    metric = throughput(f"{name}_bytes_per_s", words, headline=name == "mean")
    return Figure(
        metric,
        rf"^[A-Z-]+(?: \(nt\))? +{label}: +([0-9]+\.[0-9]+) MB/s(?:  \[.+ prefetch\])?\n",
        1e6,
    )


def _command(params: Params) -> ToolCommand:
    array = ("-m", str(params["array_bytes"] >> 20), "-g", str(params["pass_bytes"] >> 30))
    return ToolCommand(("-b", _TESTS[params["registers"]], *array, "-p", str(params["processes"])))


ADAPTER = adapter(
    "ramspeed",
    "RAMspeed/SMP: bandwidth of memory",
    resource=Resource.MEMORY,
    tool="ramsmp",
    minimum="3.0",
    install="build.sh, in the source of RAMspeed/SMP (alasir.com), and `ramsmp` in PATH",
    source="Hollander and Bolotoff, RAMspeed/SMP, alasir.com/software/ramspeed",
    version=r"^RAMspeed/SMP \([A-Za-z]+\) v([0-9]+(?:\.[0-9]+)+)",
    version_command=(),
    params=(
        choice("registers", _TESTS, "Registers; `-nt` writes past the caches."),
        whole("array_bytes", 32 << 20, 1 << 20, 1 << 34, "Array; rounded down to MiB.", "bytes"),
        whole("pass_bytes", 8 << 30, 1 << 30, 1 << 40, "Moved by a test; whole GiB.", "bytes"),
        whole("processes", 1, 1, 1_024, "Processes at a time (`-p`)."),
    ),
    command=_command,
    figures=tuple(_figure(name) for name in _METRICS),
    overhead="one CPU and three arrays for each process",
    measures="How many bytes a second are moved by the four operations of STREAM.",
    how="Each of its processes has arrays of its own; the figures are sums over them.",
    truth="The mean that it prints is that of the four figures.",
    cross_check="`mem.stream`; `mbw`; `lmbench.memory`.",
    caveats="""
An array that fits into a cache measures that cache: take one of four times the last cache.
Megabytes are decimal. No registry has it: the captures are of version 3.5.0, built from its
source; set-ups for tests do not install it.""",
)
