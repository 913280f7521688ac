"""The kernel: what it counts, how its clocks run, which calls it has."""

from __future__ import annotations

import ctypes
import os
import platform

from nephoscope.cli.commands.checks import frame
from nephoscope.cli.commands.checks.frame import LACKS, LIMITED, WORKS, CheckAnswer, Places

# Number of the system call, as the kernel's headers have it; the same on x86-64 and aarch64.
_IO_URING_SETUP = 425


def system(_: Places) -> CheckAnswer:
    """Operating system and processor that the probe is built for."""
    text = f"{platform.system()} {platform.release()}, {platform.machine()}"
    if platform.system() != "Linux":
        return CheckAnswer("system", LACKS, f"{text}: only Linux is supported", needed=True)
    return CheckAnswer("system", WORKS, text, needed=True)


def io_uring(_: Places) -> CheckAnswer:
    """The kernel's fast way to disks."""
    libc = ctypes.CDLL(None, use_errno=True)
    params = ctypes.create_string_buffer(256)  # struct io_uring_params has 120 bytes
    handle = libc.syscall(_IO_URING_SETUP, 4, params)
    if handle >= 0:
        os.close(handle)
        return CheckAnswer("io_uring", WORKS, "supported")
    reason = os.strerror(ctypes.get_errno()).lower()
    if frame.read("/proc/sys/kernel/io_uring_disabled") in ("1", "2"):
        return CheckAnswer(
            "io_uring",
            LIMITED,
            f"{reason}: disabled; disk.io uses pread instead",
            "sysctl kernel.io_uring_disabled=0",
        )
    return CheckAnswer(
        "io_uring",
        LIMITED,
        f"{reason}; disk.io uses pread instead",
        "allow io_uring_setup in the container's seccomp profile",
    )


def clock(_: Places) -> CheckAnswer:
    """The clock that every time comes from."""
    source = frame.read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source is None:
        return CheckAnswer("clock source", LIMITED, "unavailable (/sys is not readable)")
    if source in ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"):
        return CheckAnswer("clock source", WORKS, source)
    return CheckAnswer(
        "clock source",
        LIMITED,
        f"{source}: each clock read needs a system call",
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
    )


def tsc(_: Places) -> CheckAnswer:
    """Checks that the time-stamp counter runs at a constant rate."""
    if platform.machine() != "x86_64":
        return CheckAnswer("time-stamp counter", WORKS, "architected timer")
    text = frame.read("/proc/cpuinfo")
    if not text:
        return CheckAnswer(
            "time-stamp counter", LIMITED, "unavailable (/proc/cpuinfo is not readable)"
        )
    flags = next((line.split() for line in text.splitlines() if line.startswith("flags")), [])
    seen = [flag for flag in ("constant_tsc", "nonstop_tsc", "rdtscp") if flag in flags]
    state = WORKS if "constant_tsc" in seen else LIMITED
    return CheckAnswer("time-stamp counter", state, ", ".join(seen) or "no constant_tsc flag")


def steal(_: Places) -> CheckAnswer:
    """Checks that the kernel counts steal time."""
    text = frame.read("/proc/stat")
    if not text:
        return CheckAnswer(
            "steal time",
            LIMITED,
            "unavailable (/proc/stat is not readable)",
            "mount -t proc proc /proc",
        )
    fields = text.splitlines()[0].split()
    if len(fields) < 9:
        return CheckAnswer("steal time", LIMITED, "not counted by this kernel")
    return CheckAnswer("steal time", WORKS, f"counted ({fields[8]} ticks since boot)")


def pressure(_: Places) -> CheckAnswer:
    """Pressure stall information, which gives gaps a cause."""
    if frame.read("/proc/pressure/cpu"):
        return CheckAnswer("pressure (PSI)", WORKS, "/proc/pressure is readable")
    return CheckAnswer(
        "pressure (PSI)",
        LIMITED,
        "unavailable, or not supported by this kernel",
        "add psi=1 to the kernel command line",
    )


def huge_pages(_: Places) -> CheckAnswer:
    """Checks for huge pages, which mem.latency needs to avoid TLB misses."""
    mode = frame.read("/sys/kernel/mm/transparent_hugepage/enabled")
    if mode and "[never]" not in mode:
        chosen = mode[mode.find("[") + 1 : mode.find("]")]
        return CheckAnswer("huge pages", WORKS, f"transparent: {chosen}")
    fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
    return CheckAnswer("huge pages", LIMITED, "transparent huge pages are off", fix if mode else "")
