"""cyclictest and hackbench, of the suite rt-tests."""

from __future__ import annotations

from typing import Any

from nephoscope.catalog.adapters.declare import Figure, adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import (
    Params,
    choice,
    duration,
    figure,
    options,
    period,
    seconds,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import Figures
from nephoscope.catalog.meaning import Resource

_SHARED: dict[str, Any] = {
    "minimum": "1.0",
    "install": "apt-get install rt-tests",
    "source": "Gleixner, Williams, Kacur, rt-tests, wiki.linuxfoundation.org/realtime",
    "version_command": ("--help",),
}


def _cyclictest(params: Params) -> ToolCommand:
    limit_s = seconds("cyclictest", params)
    policy = ("--policy=fifo", f"--priority={params['priority']}") if params["priority"] else ()
    words = (f"--interval={params['interval_ns'] // 1000}", f"--duration={limit_s}", *policy)
    return ToolCommand(("--quiet", "--nsecs", "--threads=1", *words))


CYCLICTEST = adapter(
    "cyclictest",
    "cyclictest: delay of a thread that sleeps until a set time",
    resource=Resource.SCHEDULER,
    **_SHARED,
    version=r"^cyclictest V ?([0-9]+\.[0-9]+)",
    params=(
        period("interval_ns", "1ms", "10us", "1s", "Time between wake-ups."),
        whole("priority", 0, 0, 99, "Real-time priority (SCHED_FIFO, needs root); 0: none."),
        duration(3),
    ),
    command=_cyclictest,
    figures=(
        Figures(
            "its latencies",
            r"^T: 0 \( *[0-9]+\) P: *[0-9]+ I:[0-9]+ C: *([0-9]+) "
            r"Min: *([0-9]+) Act: *[0-9]+ Avg: *([0-9]+) Max: *([0-9]+)\n",
            {"cycles_count": 1, "latency_min_ns": 1, "latency_mean_ns": 1, "latency_max_ns": 1},
        ),
    ),
    metrics=(
        time("latency_mean_ns", "Mean delay of a wake-up.", headline=True),
        time("latency_min_ns", "Shortest delay."),
        time("latency_max_ns", "Longest delay.", headline=True),
        figure("cycles_count", "count", "Wake-ups."),
    ),
    overhead="hardly any CPU time",
    measures="How late a sleeping thread wakes up: timer, scheduler and hypervisor together.",
    how="A thread sleeps until a set time and then reads the clock, again and again.",
    truth="The wake-ups are the duration over the interval, less those that came too late.",
    cross_check="`cpu.gaps` sees pauses of a thread that does not sleep.",
    overhead_page="Hardly any CPU time: the CPU sleeps in between.",
    caveats="""
Most of the delay of an idle machine is leaving the idle state; a virtual machine adds its exit and
entry. Without a real-time priority the kernel's timer slack of 50 µs is in every delay. The maximum
grows with the duration: compare maxima of one duration.""",
)


def _hackbench(params: Params) -> ToolCommand:
    # Of its long options some read the word behind their own.
    names = {"-g": "groups", "-f": "descriptors", "-l": "loops", "-s": "message_bytes"}
    pipes = ("--pipe",) if params["channel"] == "pipe" else ()
    threads = "--threads" if params["workers"] == "threads" else "--process"
    return ToolCommand((*options(params, names), *pipes, threads))


HACKBENCH = adapter(
    "hackbench",
    "hackbench: many tasks that send messages to one another",
    resource=Resource.SCHEDULER,
    **_SHARED,
    version=r"^hackbench V ?([0-9]+\.[0-9]+)",
    params=(
        whole("groups", 4, 1, 1_000, "Groups of senders and receivers."),
        whole("descriptors", 20, 1, 1_000, "Senders of a group, and as many receivers."),
        whole("loops", 200, 1, 10_000_000, "Messages of a sender to each receiver."),
        whole("message_bytes", 100, 1, 1 << 20, "Size of a message.", "bytes"),
        choice("channel", ("socket", "pipe"), "What carries the messages."),
        choice("workers", ("processes", "threads"), "What tasks are."),
    ),
    command=_hackbench,
    figures=(
        Figure(
            time("elapsed_ns", "Time until all messages have arrived.", headline=True),
            r"^Time: ([0-9.]+)\n",
            1e9,
        ),
    ),
    overhead="all CPUs",
    measures="How fast the kernel's scheduler and its sockets or pipes serve many short tasks.",
    how="In each group every sender sends messages to every receiver; all groups work at once.",
    truth="Messages are groups times descriptors squared times loops.",
    cross_check="`perf.messaging` is the same program inside perf.",
    overhead_page="All CPUs; groups times 2 times `descriptors` tasks.",
    caveats="""
The time does not contain the start of the tasks. It depends on the number of CPUs and on everything
else that runs; short runs vary by 10 % and more.""",
)

ADAPTERS = (CYCLICTEST, HACKBENCH)
