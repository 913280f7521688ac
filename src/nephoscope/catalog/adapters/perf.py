"""`perf bench`: the micro-benchmarks of the Linux kernel's own tool."""

from __future__ import annotations

from typing import Any

from nephoscope.catalog import ParamSpec
from nephoscope.catalog.adapters.declare import Figure, adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import choice, options, throughput, time, whole
from nephoscope.catalog.meaning import Resource

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_PER_CALL = Figure(
    time("operation_ns", "Time of an operation.", headline=True), rf"^ +{_NUMBER} usecs/op\n", 1e3
)


_SHARED: dict[str, Any] = {
    "tool": "perf",
    "minimum": "4.0",
    "install": "apt-get install linux-perf",
    "source": "The Linux kernel, tools/perf, perf-bench(1)",
    "version": r"^perf version ([0-9]+(?:\.[0-9]+)+)",
    "how": "perf repeats the operation a set number of times, and divides the time by it.",
    "truth": "Its total time is the time of an operation times their number.",
    "overhead": "one or two CPUs",
    "overhead_page": "One CPU, or two where tasks take turns.",
}


def _loops(default: int) -> ParamSpec:
    return whole("loops", default, 1, 1_000_000_000, "Operations (`-l`).")


SYSCALL = adapter(
    "perf.syscall",
    "perf bench: time of a system call",
    resource=Resource.KERNEL,
    **_SHARED,
    measures="How long the shortest system call takes: the way into the kernel and back.",
    caveats="The mitigations of the kernel against speculative execution decide.",
    params=(_loops(2_000_000),),
    command=lambda values: ToolCommand(("bench", "syscall", "basic", "-l", str(values["loops"]))),
    figures=(_PER_CALL,),
    cross_check="`sys.calls` (getpid).",
)
PIPE = adapter(
    "perf.pipe",
    "perf bench: round trips between two tasks through pipes",
    resource=Resource.SCHEDULER,
    **_SHARED,
    measures="How long a message to another task and its answer take.",
    caveats="On several CPUs the scheduler places the tasks: leaving the idle state may dominate.",
    params=(
        _loops(100_000),
        choice("workers", ("processes", "threads"), "What the two tasks are."),
    ),
    command=lambda values: ToolCommand(
        (
            *("bench", "sched", "pipe", "-l", str(values["loops"])),
            *(("-T",) if values["workers"] == "threads" else ()),
        )
    ),
    figures=(_PER_CALL,),
    cross_check="`cpu.switch`: a round trip is two switches; `sys.calls` (pipe).",
)
MESSAGING = adapter(
    "perf.messaging",
    "perf bench: many tasks that send messages to one another",
    resource=Resource.SCHEDULER,
    **_SHARED,
    measures="How fast scheduler and sockets serve many short tasks; the work is that of "
    "hackbench.",
    caveats="It depends on the number of CPUs, and varies by 10 % and more.",
    params=(whole("groups", 4, 1, 1_000, "Groups of 40 tasks (`-g`)."), _loops(100)),
    command=lambda values: ToolCommand(
        ("bench", "sched", "messaging", *options(values, {"-g": "groups", "-l": "loops"}))
    ),
    figures=(
        Figure(
            time("elapsed_ns", "Time until all messages have arrived.", headline=True),
            rf"^ +Total time: {_NUMBER} \[sec\]\n",
            1e9,
        ),
    ),
    cross_check="`hackbench`.",
)
MEMCPY = adapter(
    "perf.memcpy",
    "perf bench: bandwidth of memcpy",
    resource=Resource.MEMORY,
    **_SHARED,
    measures="How many bytes a second the C library copies.",
    caveats="Pages are touched before; an array that fits into a cache measures that cache.",
    params=(
        whole("array_bytes", 64 << 20, 1 << 10, 1 << 40, "Array.", "bytes"),
        whole("loops", 20, 1, 1_000_000, "Copies (`-l`)."),
    ),
    command=lambda values: ToolCommand(
        (
            *("bench", "mem", "memcpy", "-f", "default", "-l", str(values["loops"])),
            *("-s", f"{values['array_bytes']}B"),
        )
    ),
    figures=(
        Figure(
            throughput("copy_bytes_per_s", "Bytes copied a second."),
            rf"^ +{_NUMBER} GB/sec\n",
            2.0**30,
        ),
    ),
    cross_check="`mbw`; `mem.stream` with the kernel copy.",
)

ADAPTERS = (SYSCALL, PIPE, MESSAGING, MEMCPY)
