"""lmbench, by McVoy and Staelin: seven of its programs, each a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nephoscope.catalog import ParamSpec
from nephoscope.catalog.adapters.declare import Figure, adapter, version_by_usage
from nephoscope.catalog.adapters.frame import Adapter, ToolCommand, ToolStep
from nephoscope.catalog.adapters.quantities import (
    Params,
    choice,
    period,
    threads,
    throughput,
    time,
    whole,
    whole_units,
)
from nephoscope.catalog.meaning import Resource

_OPTIONS = "[-W <warmup>] [-N <repetitions>]"
_NUMBER = r"([0-9]+\.[0-9]+)"
_FILE = "file"
_PLACEMENT = {"any": "DEFAULT", "one-cpu": "SINGLE"}

_TIMED = """
A batch takes at least `interval_ns`, less the time of its loop and of reading the clock; the
figure is the median of `repetitions` batches. lmbench takes both settings from variables of its
environment (ENOUGH, LMBENCH_SCHED), which other settings of the user do not reach."""


def _adapter(
    name: str,
    program: str,
    summary: str,
    *,
    resource: Resource,
    caveats: str,
    usage: str,
    words: Callable[[Params], tuple[str, ...]],
    params: tuple[ParamSpec, ...] = (),
    repetitions: int = 11,
    needs: Callable[[Params], tuple[int, tuple[ToolStep, ...]]] = lambda _: (0, ()),
    how: str = "",
    **declared: Any,
) -> Adapter:
    """Returns the adapter of a program. declared: as for `adapter`."""

    def command(values: Params) -> ToolCommand:
        interval = whole_units("lmbench", values, "interval_ns", "us")
        space, prepare = needs(values)
        return ToolCommand(
            ("-N", str(values["repetitions"]), *words(values)),
            needs_bytes=space,
            prepare=prepare,
            environment={"ENOUGH": str(interval), "LMBENCH_SCHED": _PLACEMENT[values["placement"]]},
        )

    return adapter(
        f"lmbench.{name}",
        f"lmbench: {summary}",
        resource=resource,
        tool=program,
        minimum="3.0",
        install="apt-get install lmbench",
        source="McVoy and Staelin, lmbench, USENIX 1996",
        version=version_by_usage(f"{_OPTIONS} {usage}".strip(), "3.0"),
        version_command=("-h",),
        paths=("/usr/lib/lmbench/bin/x86_64-linux-gnu", "/usr/lib/lmbench/bin/aarch64-linux-gnu"),
        on_stderr=True,
        params=(
            *params,
            period(
                "interval_ns",
                "10ms",
                "1ms",
                "10s",
                "Least time of a batch, in whole microseconds (ENOUGH).",
            ),
            whole("repetitions", repetitions, 1, 1_000, "Batches, whose median counts (`-N`)."),
            choice(
                "placement",
                _PLACEMENT,
                "Where its processes run: wherever the kernel puts them, or all on CPU 0.",
            ),
        ),
        command=command,
        overhead="one CPU, or two where processes take turns",
        how=how + _TIMED,
        truth="The work of a batch takes as long as its operations, each as long as the figure.",
        overhead_page="One CPU; two where processes take turns and `placement` is `any`.",
        caveats=caveats
        + """
Under a real-time priority take `placement` one-cpu only where its parent has another CPU: its child
does not sleep. Debian has lmbench in its section non-free, so that set-ups for tests do not install
it; the captures are of version 3.0, built from its source (intel/lmbench of April 2025).""",
        **declared,
    )


def _micro(doc: str, label: str) -> Figure:
    """Returns the time of an operation, in a line `LABEL: TIME microseconds`."""
    return Figure(
        time("operation_ns", doc, headline=True), rf"^{label}: {_NUMBER} microseconds\n", 1e3
    )


def _whole_file(size_bytes: int) -> tuple[int, tuple[ToolStep, ...]]:
    count = str(size_bytes >> 20)
    words = ("if=/dev/zero", f"of={_FILE}", "bs=1048576", f"count={count}")
    return size_bytes, (ToolStep("dd", words),)


SYSCALL = _adapter(
    "syscall",
    "lat_syscall",
    "time of a simple system call",
    resource=Resource.KERNEL,
    measures="How long a system call takes that does little: `null` (getppid), `read` (a byte of "
    "/dev/zero), `write` (a byte to /dev/null), `stat`, `fstat`, and `open` with close.",
    caveats="The mitigations of the kernel against speculative execution decide.",
    cross_check="`sys.calls` (getpid, read, write); `perf.syscall` (getppid).",
    usage="null|read|write|stat|fstat|open [file]",
    params=(choice("call", ("null", "read", "write", "stat", "fstat", "open"), "Which call."),),
    words=lambda values: (values["call"], _FILE),
    needs=lambda _: (0, (ToolStep("touch", (_FILE,)),)),
    figures=(_micro("Time of a call.", "Simple (?:syscall|read|write|stat|fstat|open/close)"),),
)
CONTEXT = _adapter(
    "context",
    "lat_ctx",
    "time of a context switch",
    resource=Resource.SCHEDULER,
    measures="How long it takes until the next process runs, in a ring of processes that hand a "
    "word on through pipes, each of which reads `context_bytes` of its own memory in between.",
    how="The time of the pipes and of the reading is measured in one process and subtracted. ",
    caveats="With `placement` any and several CPUs, processes wake up on other CPUs: the figure "
    "then has the time of leaving the idle state.",
    cross_check="`cpu.switch`; `sys.calls` (context_switch).",
    usage="[-s kbytes] processes",
    params=(
        whole("processes", 2, 2, 1_000, "Processes in the ring."),
        whole("context_bytes", 0, 0, 1 << 30, "Memory each reads; rounded down to KiB.", "bytes"),
    ),
    words=lambda values: (
        *("-s", str(values["context_bytes"] >> 10)),
        str(values["processes"]),
    ),
    figures=(
        Figure(
            time("switch_ns", "Time of a switch, without that of the pipes.", headline=True),
            rf"^[0-9]+ {_NUMBER}\n",
            1e3,
        ),
        Figure(
            time("overhead_ns", "Time of the pipes and of the reading, which is subtracted."),
            rf'^"size=[0-9]+k ovr={_NUMBER}\n',
            1e3,
        ),
    ),
)
PROCESS = _adapter(
    "process",
    "lat_proc",
    "time to make a process",
    resource=Resource.KERNEL,
    measures="How long it takes until a child exists, has ended and is waited for (`fork`), and "
    "what a call of a function takes (`procedure`).",
    caveats="The programs `exec` and `shell` of lat_proc are left out: they execute /tmp/hello, "
    "which any user of the machine can put there.",
    cross_check="`sys.calls` (fork).",
    usage="procedure|fork|exec|shell",
    params=(choice("operation", ("fork", "procedure"), "What is timed."),),
    words=lambda values: (values["operation"],),
    figures=(_micro("Time of an operation.", "(?:Process fork.exit|Procedure call)"),),
)
PAGE_FAULT = _adapter(
    "page_fault",
    "lat_pagefault",
    "time of a page fault on a mapped file",
    resource=Resource.KERNEL,
    measures="How long the first touch of a page of a mapped file takes that is in the page cache.",
    how="Pages are touched in random order; the time of mapping and unmapping is subtracted. ",
    caveats="The kernel maps the pages around a fault with it (16 of them), so that most touches "
    "are no fault: the figure is per page, and a sixteenth of a fault or more.",
    cross_check="`sys.calls` (page_fault) touches memory that belongs to no file.",
    usage="file",
    params=(whole("file_bytes", 4 << 20, 1 << 20, 1 << 40, "File; rounded down to MiB.", "bytes"),),
    words=lambda _: (_FILE,),
    needs=lambda values: _whole_file(values["file_bytes"]),
    figures=(_micro("Time per page.", rf"Pagefaults on {_FILE}"),),
)
SIGNAL = _adapter(
    "signal",
    "lat_sig",
    "time of a signal",
    resource=Resource.KERNEL,
    measures="How long installing a handler takes (`install`), and what catching a signal adds to "
    "sending one (`catch`).",
    caveats="`catch` is the time of kill() with a handler less that of kill() with signal 0: "
    "less than `sys.calls` reports, which subtracts nothing.",
    cross_check="`sys.calls` (signal).",
    usage="install|catch|prot [file]",
    params=(choice("operation", ("catch", "install"), "What is timed."),),
    words=lambda values: (values["operation"],),
    figures=(_micro("Time of an operation.", "Signal handler (?:overhead|installation)"),),
)
PIPE = _adapter(
    "pipe",
    "lat_pipe",
    "round trip between two processes through pipes",
    resource=Resource.SCHEDULER,
    measures="How long a byte to another process and one back take.",
    how="A batch takes a second at least, whatever `interval_ns` states. ",
    caveats="With `placement` any and several CPUs the kernel places the processes: leaving the "
    "idle state may dominate.",
    cross_check="`sys.calls` (pipe); `perf.pipe`.",
    usage="",
    words=lambda _: (),
    repetitions=3,
    figures=(_micro("Time of a round trip.", "Pipe latency"),),
)
_MEMORY: Mapping[str, str] = {
    "read": "rd",
    "write": "wr",
    "read-write": "rdwr",
    "copy": "cp",
    "full-read": "frd",
    "full-write": "fwr",
    "full-copy": "fcp",
    "bzero": "bzero",
    "bcopy": "bcopy",
}
MEMORY = _adapter(
    "memory",
    "bw_mem",
    "memory bandwidth",
    resource=Resource.MEMORY,
    measures="How many bytes a second one thread reads, writes or copies in an array: every fourth "
    "word of 4 bytes (each counted as 16), with `full-` every word, or by the C library.",
    caveats="It counts the bytes of the array, so that a copy moves at least twice as many. "
    "Without "
    "`full-` it reads a word of every 16 bytes, and the figure is of the cache lines that come in.",
    cross_check="`mem.stream`; `mbw`.",
    usage="<size> what [conflict]",
    params=(
        choice("operation", _MEMORY, "What is done with the array.", default="full-read"),
        whole("array_bytes", 64 << 20, 512, 1 << 40, "Array of each process.", "bytes"),
        threads("Processes at one time, whose rates are summed (`-P`)."),
    ),
    words=lambda values: (
        *(("-P", str(values["threads"])) if values["threads"] > 1 else ()),
        *(str(values["array_bytes"]), _MEMORY[values["operation"]]),
    ),
    figures=(
        Figure(
            throughput("memory_bytes_per_s", "Bytes of the array a second."),
            rf"^[0-9]+\.[0-9]+ {_NUMBER}\n",
            1e6,
        ),
    ),
)

ADAPTERS = (SYSCALL, CONTEXT, PROCESS, PAGE_FAULT, SIGNAL, PIPE, MEMORY)
