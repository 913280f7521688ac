"""`perf bench`: the micro-benchmarks of the Linux kernel's own tool."""

from __future__ import annotations

from collections.abc import Callable

from nephoscope.adapters.declare import Figure, adapter, page
from nephoscope.adapters.frame import Adapter, Command
from nephoscope.adapters.quantities import Params, choice, throughput, time, whole
from nephoscope.catalog import ParamSpec

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_PER_CALL = Figure(
    time("operation_ns", "Time of an operation.", headline=True), rf"^ +{_NUMBER} usecs/op\n", 1e3
)


def _adapter(
    name: str,
    summary: str,
    measures: str,
    caveats: str,
    *,
    params: tuple[ParamSpec, ...],
    words: Callable[[Params], tuple[str, ...]],
    figure: Figure,
    cross_check: str,
) -> Adapter:
    return adapter(
        f"perf.{name}",
        f"perf bench: {summary}",
        tool="perf",
        minimum="4.0",
        install="apt-get install linux-perf",
        source="The Linux kernel, tools/perf, perf-bench(1)",
        version=r"^perf version ([0-9]+(?:\.[0-9]+)+)",
        params=params,
        command=lambda values: Command(("bench", *words(values))),
        figures=(figure,),
        overhead="one or two CPUs",
        page=page(
            measures=measures,
            how="perf repeats the operation a set number of times, and divides the time by it.",
            truth="Its total time is the time of an operation times their number.",
            cross_check=cross_check,
            overhead="One CPU, or two where tasks take turns.",
            caveats=caveats,
        ),
    )


def _loops(default: int) -> ParamSpec:
    return whole("loops", default, 1, 1_000_000_000, "Operations (`-l`).")


SYSCALL = _adapter(
    "syscall",
    "time of a system call",
    "How long the shortest system call takes: the way into the kernel and back.",
    "The mitigations of the kernel against speculative execution decide.",
    params=(_loops(2_000_000),),
    words=lambda values: ("syscall", "basic", "-l", str(values["loops"])),
    figure=_PER_CALL,
    cross_check="`sys.calls` (getpid).",
)
PIPE = _adapter(
    "pipe",
    "round trips between two tasks through pipes",
    "How long a message to another task and its answer take.",
    "On several CPUs the scheduler places the tasks: leaving the idle state may dominate.",
    params=(
        _loops(100_000),
        choice("workers", "processes", ("processes", "threads"), "What the two tasks are."),
    ),
    words=lambda values: (
        *("sched", "pipe", "-l", str(values["loops"])),
        *(("-T",) if values["workers"] == "threads" else ()),
    ),
    figure=_PER_CALL,
    cross_check="`cpu.switch`: a round trip is two switches; `sys.calls` (pipe).",
)
MESSAGING = _adapter(
    "messaging",
    "many tasks that send messages to one another",
    "How fast scheduler and sockets serve many short tasks; the work is that of hackbench.",
    "It depends on the number of CPUs, and varies by 10 % and more.",
    params=(whole("groups", 4, 1, 1_000, "Groups of 40 tasks (`-g`)."), _loops(100)),
    words=lambda values: (
        *("sched", "messaging", "-g", str(values["groups"])),
        *("-l", str(values["loops"])),
    ),
    figure=Figure(
        time("elapsed_ns", "Time until all messages have arrived.", headline=True),
        rf"^ +Total time: {_NUMBER} \[sec\]\n",
        1e9,
    ),
    cross_check="`hackbench`.",
)
MEMCPY = _adapter(
    "memcpy",
    "bandwidth of memcpy",
    "How many bytes a second the C library copies.",
    "Pages are touched before; an array that fits into a cache measures that cache.",
    params=(
        whole("array_bytes", 64 << 20, 1 << 10, 1 << 40, "Array.", "bytes"),
        whole("loops", 20, 1, 1_000_000, "Copies (`-l`)."),
    ),
    words=lambda values: (
        *("mem", "memcpy", "-f", "default", "-l", str(values["loops"])),
        *("-s", f"{values['array_bytes']}B"),
    ),
    figure=Figure(
        throughput("copy_bytes_per_s", "Bytes copied a second."), rf"^ +{_NUMBER} GB/sec\n", 2.0**30
    ),
    cross_check="`mbw`; `mem.stream` with the kernel copy.",
)

ADAPTERS = (SYSCALL, PIPE, MESSAGING, MEMCPY)
