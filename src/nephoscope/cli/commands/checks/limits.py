"""Checks what this process may use: CPUs, cgroup limits, memory, capabilities."""

from __future__ import annotations

import os
import resource
import socket

from nephoscope.cli.commands.checks import frame
from nephoscope.cli.commands.checks.frame import LIMITED, WORKS, CheckAnswer, Places
from nephoscope.core import units

# Numbers of capabilities, as the kernel's headers have them.
_CAP_NET_ADMIN, _CAP_SYS_NICE = 12, 23


def cpus(_: Places) -> CheckAnswer:
    """Checks the CPUs that this process may use."""
    allowed, online = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    text = f"{allowed} of {online} usable"
    if allowed < online:
        return CheckAnswer("CPUs", LIMITED, f"{text} (taskset, cpuset)")
    return CheckAnswer("CPUs", WORKS, text)


def cgroup(_: Places) -> CheckAnswer:
    """Version of the control groups, and the limits that this process lives under."""
    lines = (frame.read("/proc/self/cgroup") or "").splitlines()
    if not lines:
        return CheckAnswer("cgroup", LIMITED, "unavailable (/proc/self/cgroup is not readable)")
    groups = dict(_controllers(lines))
    version = "1" if any(groups) else "2"
    limits = [*_quota(groups, version), *_memory(groups, version)]
    text = f"version {version}, {'; '.join(limits) or 'no limit on CPU or memory'}"
    return CheckAnswer("cgroup", LIMITED if limits else WORKS, text)


def _controllers(lines: list[str]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        out.extend((name, path) for name in controllers.split(",") if not name.startswith("name="))
    return out


def _limit_file(groups: dict[str, str], controller: str, version: str, name: str) -> str | None:
    base = f"/sys/fs/cgroup/{controller}" if version == "1" else "/sys/fs/cgroup"
    path = groups.get(controller if version == "1" else "", "/")
    return frame.read(f"{base}{path.rstrip('/')}/{name}") or frame.read(f"{base}/{name}")


def _quota(groups: dict[str, str], version: str) -> list[str]:
    if version == "2":
        words = (_limit_file(groups, "", version, "cpu.max") or "max").split()
    else:
        words = [
            _limit_file(groups, "cpu", version, f"cpu.cfs_{name}_us") or "-1"
            for name in ("quota", "period")
        ]
    if len(words) != 2 or words[0] in ("max", "-1"):
        return []
    return [f"CPU quota {int(words[0]) / int(words[1]):.2f} CPUs"]


def _memory(groups: dict[str, str], version: str) -> list[str]:
    name = "memory.max" if version == "2" else "memory.limit_in_bytes"
    text = _limit_file(groups, "" if version == "2" else "memory", version, name)
    # Version 1 says "no limit" with the largest multiple of the page size below 2^63.
    if not text or not text.isdigit() or int(text) >= 1 << 60:
        return []
    return [f"memory limit {units.format_value(int(text), 'bytes')}"]


def loopback(_: Places) -> CheckAnswer:
    """net.loopback can talk to itself."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return CheckAnswer("loopback network", WORKS, "127.0.0.1 accepts connections")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return CheckAnswer("loopback network", LIMITED, reason, "ip link set lo up")


def memory_lock(_: Places) -> CheckAnswer:
    """Checks the limit on locked memory."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY or os.geteuid() == 0:
        return CheckAnswer("locked memory", WORKS, "not limited")
    return CheckAnswer("locked memory", WORKS, f"up to {units.format_value(soft, 'bytes')}")


def _capability(number: int) -> bool:
    for line in (frame.read("/proc/self/status") or "").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return os.geteuid() == 0


def deadline(_: Places) -> CheckAnswer:
    """SCHED_DEADLINE, for experiments with schedulers; a survey does not need it."""
    if _capability(_CAP_SYS_NICE):
        return CheckAnswer("real-time scheduling", WORKS, "CAP_SYS_NICE available")
    return CheckAnswer(
        "real-time scheduling",
        LIMITED,
        "no CAP_SYS_NICE (needed by experiments only)",
        "run the experiment with sudo",
    )


def net_admin(_: Places) -> CheckAnswer:
    """Network experiments; a survey does not need it."""
    if _capability(_CAP_NET_ADMIN):
        return CheckAnswer("network experiments", WORKS, "CAP_NET_ADMIN available")
    return CheckAnswer(
        "network experiments",
        LIMITED,
        "no CAP_NET_ADMIN (needed by experiments only)",
        "run the experiment with sudo",
    )
