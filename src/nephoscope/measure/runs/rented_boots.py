"""Marks of the launch of a rented machine: from the cloud's answers, and from the guest itself."""

from __future__ import annotations

import re
import time

from nephoscope.measure.cloud.launch import POLL_S
from nephoscope.measure.cloud.rental import Rental
from nephoscope.measure.lab.boot import BootTimes

_GUEST_TIMES = "cat /proc/uptime; systemd-analyze time 2>/dev/null || true"
_TIME = re.compile(r"([0-9.]+)(min|ms|us|h|s)")
_SYSTEMD = re.compile(r"((?:[0-9.]+(?:min|ms|us|h|s) ?)+) \((kernel|initrd)\)")


async def boot_times(rental: Rental, host: str) -> BootTimes:
    """Returns the marks of a launch since the call; those of the kernel from the guest itself."""
    times = rental.times[host]
    target = rental.hosts[host].make()
    try:
        await target.open()
        ended = await target.command(["sh", "-c", _GUEST_TIMES])
        now_s = time.monotonic() - times.began
    finally:
        await target.close()
    kernel_ns, userland_ns = guest_marks(ended.stdout.decode(errors="replace"), now_s)
    return BootTimes(
        kernel_ns,
        userland_ns,
        round(times.ready_s * 1e9),
        resolution_ns=round(POLL_S * 1e9),
        answer_ns=round(times.answer_s * 1e9),
        running_ns=round(times.running_s * 1e9),
    )


def guest_marks(text: str, now_s: float) -> tuple[int | None, int | None]:
    """Returns when the kernel and the init of a guest started, in ns since the call.

    text: /proc/uptime, then what systemd-analyze says; now_s: seconds since the call when it was
    read. None for what the guest does not show, and for a kernel that is older than the call.
    """
    uptime, _, rest = text.partition("\n")
    try:
        kernel_s = now_s - float(uptime.split()[0])
    except (IndexError, ValueError):
        return None, None
    if kernel_s < 0:
        return None, None
    parts = {part: _seconds(took) for took, part in _SYSTEMD.findall(rest)}
    if "kernel" not in parts:
        return round(kernel_s * 1e9), None
    userland_s = kernel_s + parts["kernel"] + parts.get("initrd", 0.0)
    return round(kernel_s * 1e9), round(userland_s * 1e9)


def _seconds(text: str) -> float:
    """Returns the seconds of systemd's '1min 2.345s' or '812ms'."""
    units_s = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
    return sum(float(number) * units_s[unit] for number, unit in _TIME.findall(text))
