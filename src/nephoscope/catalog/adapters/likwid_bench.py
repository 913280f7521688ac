"""likwid-bench, the memory and arithmetic kernels of LIKWID."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import Figure, adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import Params, choice, threads, throughput, whole
from nephoscope.catalog.meaning import Resource

_KERNELS = (
    *("copy", "load", "store", "stream", "triad", "update", "daxpy", "ddot", "sum"),
    *("copy_mem", "stream_mem", "triad_mem", "load_avx", "triad_avx", "peakflops"),
)


def _command(params: Params) -> ToolCommand:
    workgroup = f"N:{params['working_set_bytes'] // 1000}kB:{params['threads']}"
    return ToolCommand(("-t", params["kernel"], "-w", workgroup))


ADAPTER = adapter(
    "likwid-bench",
    "likwid-bench: bandwidth of a streaming kernel",
    resource=Resource.MEMORY,
    minimum="5.0",
    install="apt-get install likwid",
    source="Treibig, Hager, Wellein, LIKWID: a lightweight performance-oriented tool suite, 2010",
    version=r"^likwid-bench -- Version ([0-9]+(?:\.[0-9]+)+)",
    version_command=("-v",),
    params=(
        choice("kernel", _KERNELS, "Kernel (`-t`).", default="triad"),
        whole("working_set_bytes", 256_000_000, 4_000, 1 << 40, "All arrays together.", "bytes"),
        threads("Threads, each pinned to a CPU."),
    ),
    command=_command,
    figures=(
        Figure(
            throughput("memory_bytes_per_s", "Bytes read and written a second."),
            r"^MByte/s:\t+([0-9.]+)\n",
            1e6,
        ),
    ),
    overhead="one CPU for each thread, and `working_set_bytes` of memory",
    measures="The bandwidth of memory or of a cache for a loop written in assembler.",
    how="""
Threads are pinned, each initialises its part of the arrays, and the kernel runs until it has taken
a second. The rate counts the bytes of the kernel's own loads and stores.""",
    truth="Bytes a second are its iterations times the bytes of one, over its time.",
    cross_check="`mem.stream` has the same kernels natively.",
    overhead_page="One CPU for each thread; the working set.",
    caveats="""
A working set that fits into the last-level cache measures that cache. Lines that are read before
they are written (write-allocate) are not counted, so that the memory moves more. Kernels with `mem`
in their name write past the caches.""",
)
