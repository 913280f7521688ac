"""What `doctor` looks at: one function a question, all listed in CHECKS in the order of printing.

A check never raises: what cannot be seen is told as such.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope import catalog, units
from nephoscope.errors import NephoscopeError

if TYPE_CHECKING:
    from nephoscope.adapters import Adapter

WORKS, LIMITED, LACKS = "works", "limited", "lacks"
_MIN_FREE_BYTES = 1 << 30
_PROBE_TIMEOUT_S = 10
# Numbers of the system call and of the capabilities, as the kernel's headers have them; the call
# has the same number on x86-64 and aarch64.
_IO_URING_SETUP = 425
_CAP_NET_ADMIN, _CAP_SYS_NICE = 12, 23


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer: state is works, limited or lacks; `fix` is the one command that changes it."""

    name: str
    state: str
    detail: str
    fix: str = ""
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Places:
    """Directories that the checks look at."""

    store: Path
    temporary: Path


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _nearest_existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def python(_: Places) -> Finding:
    """The interpreter; the package refuses to be installed on one that is too old."""
    return Finding("Python", WORKS, platform.python_version(), needed=True)


def system(_: Places) -> Finding:
    """Operating system and processor that the probe is built for."""
    text = f"{platform.system()} {platform.release()}, {platform.machine()}"
    if platform.system() != "Linux":
        return Finding("system", LACKS, f"{text}: only Linux is measured", needed=True)
    return Finding("system", WORKS, text, needed=True)


def probe(_: Places) -> Finding:
    """The measuring program is there, runs, and is of this version."""
    from nephoscope.targets.probe import check_version, find_probe

    try:
        path = find_probe()
        answer = subprocess.run(
            [path, "describe"], capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
        known = catalog.load()
        check_version(answer.stdout, known, str(path))
    except NephoscopeError as error:
        return Finding("probe", LACKS, error.message, error.hint, True)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("probe", LACKS, f"it cannot be run: {error}", "make survey", True)
    return Finding("probe", WORKS, f"{known.probe} at {path}", needed=True)


def store(places: Places) -> Finding:
    """Runs can be kept."""
    where = _nearest_existing(places.store)
    problem = _unwritable(where)
    if problem:
        fix = "name another directory with --store DIR"
        return Finding("store", LACKS, f"{places.store}: {problem}", fix, True)
    free = shutil.disk_usage(where).free
    text = f"{places.store}, {units.format_value(free, 'bytes')} free"
    if free < _MIN_FREE_BYTES // 10:
        return Finding("store", LACKS, text, "free 100 MiB, or name another --store DIR", True)
    return Finding("store", WORKS, text, needed=True)


def temporary(places: Places) -> Finding:
    """The disk benchmarks have a place for their file."""
    problem = _unwritable(places.temporary)
    if problem:
        fix = "export TMPDIR=DIR with a directory that can be written"
        return Finding("temporary files", LACKS, f"{places.temporary}: {problem}", fix, True)
    free = shutil.disk_usage(places.temporary).free
    text = f"{places.temporary}, {units.format_value(free, 'bytes')} free"
    if free < _MIN_FREE_BYTES:
        return Finding(
            "temporary files",
            LIMITED,
            f"{text}: too little for the disk benchmarks",
            "free 1 GiB, or export TMPDIR=DIR",
        )
    return Finding("temporary files", WORKS, text)


def _unwritable(directory: Path) -> str:
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"x" * 4096)
            file.flush()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def direct_io(places: Places) -> Finding:
    """The disk can be measured past the page cache."""
    told = []
    for directory in dict.fromkeys((places.temporary, _nearest_existing(places.store))):
        problem = _no_direct_io(directory)
        told.append((directory, problem))
    good = [str(directory) for directory, problem in told if not problem]
    bad = [f"{directory} refuses it ({problem})" for directory, problem in told if problem]
    if not good:
        fix = "export TMPDIR=DIR on a disk file system (ext4, xfs), not tmpfs"
        return Finding("direct I/O", LIMITED, "; ".join(bad), fix)
    return Finding("direct I/O", WORKS, "; ".join([f"in {', '.join(good)}", *bad]))


def _no_direct_io(directory: Path) -> str:
    path = directory / f".nephoscope-direct-{os.getpid()}"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT, 0o600)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    finally:
        path.unlink(missing_ok=True) if os.access(directory, os.W_OK) else None
    try:
        with mmap.mmap(-1, 4096) as page:  # anonymous memory is aligned to a page
            os.write(handle, page)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    finally:
        os.close(handle)
    return ""


def io_uring(_: Places) -> Finding:
    """The kernel's fast way to disks."""
    libc = ctypes.CDLL(None, use_errno=True)
    params = ctypes.create_string_buffer(256)  # struct io_uring_params has 120 bytes
    handle = libc.syscall(_IO_URING_SETUP, 4, params)
    if handle >= 0:
        os.close(handle)
        return Finding("io_uring", WORKS, "rings can be set up")
    reason = os.strerror(ctypes.get_errno()).lower()
    if _read("/proc/sys/kernel/io_uring_disabled") in ("1", "2"):
        return Finding(
            "io_uring",
            LIMITED,
            f"{reason}: switched off; disk.io falls back to pread",
            "sysctl kernel.io_uring_disabled=0",
        )
    return Finding(
        "io_uring",
        LIMITED,
        f"{reason}; disk.io falls back to pread",
        "allow io_uring_setup in the container's seccomp profile",
    )


def clock(_: Places) -> Finding:
    """The clock that every time comes from."""
    source = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source is None:
        return Finding("clock source", LIMITED, "hidden (/sys is not readable)")
    if source in ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"):
        return Finding("clock source", WORKS, source)
    return Finding(
        "clock source",
        LIMITED,
        f"{source}: each look costs a system call",
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
    )


def tsc(_: Places) -> Finding:
    """Whether the processor's counter runs evenly."""
    if platform.machine() != "x86_64":
        return Finding("time-stamp counter", WORKS, "architected timer")
    text = _read("/proc/cpuinfo")
    if not text:
        return Finding("time-stamp counter", LIMITED, "hidden (/proc/cpuinfo is not readable)")
    flags = next((line.split() for line in text.splitlines() if line.startswith("flags")), [])
    seen = [flag for flag in ("constant_tsc", "nonstop_tsc", "rdtscp") if flag in flags]
    state = WORKS if "constant_tsc" in seen else LIMITED
    return Finding("time-stamp counter", state, ", ".join(seen) or "no constant_tsc is announced")


def steal(_: Places) -> Finding:
    """Whether the kernel knows what the hypervisor takes away."""
    text = _read("/proc/stat")
    if not text:
        return Finding(
            "steal time", LIMITED, "hidden (/proc/stat is not readable)", "mount -t proc proc /proc"
        )
    fields = text.splitlines()[0].split()
    if len(fields) < 9:
        return Finding("steal time", LIMITED, "this kernel does not count it")
    return Finding("steal time", WORKS, f"counted ({fields[8]} ticks since boot)")


def pressure(_: Places) -> Finding:
    """Pressure stall information, which gives gaps a cause."""
    if _read("/proc/pressure/cpu"):
        return Finding("pressure (PSI)", WORKS, "/proc/pressure is readable")
    return Finding(
        "pressure (PSI)",
        LIMITED,
        "hidden, or not in this kernel",
        "boot with psi=1 on the kernel's command line",
    )


def huge_pages(_: Places) -> Finding:
    """Whether mem.latency can be measured without TLB misses."""
    mode = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    if mode and "[never]" not in mode:
        chosen = mode[mode.find("[") + 1 : mode.find("]")]
        return Finding("huge pages", WORKS, f"transparent: {chosen}")
    fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
    return Finding("huge pages", LIMITED, "transparent huge pages are off", fix if mode else "")


def cpus(_: Places) -> Finding:
    """Which CPUs this process may use."""
    allowed, online = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    text = f"{allowed} of {online} may be used"
    if allowed < online:
        return Finding("CPUs", LIMITED, f"{text} (taskset, cpuset)")
    return Finding("CPUs", WORKS, text)


def cgroup(_: Places) -> Finding:
    """Version of the control groups, and the limits that this process lives under."""
    lines = (_read("/proc/self/cgroup") or "").splitlines()
    if not lines:
        return Finding("control group", LIMITED, "hidden (/proc/self/cgroup is not readable)")
    groups = dict(_controllers(lines))
    version = "1" if any(groups) else "2"
    limits = [*_quota(groups, version), *_memory(groups, version)]
    text = f"version {version}, {'; '.join(limits) or 'no limit on CPU or memory'}"
    return Finding("control group", LIMITED if limits else WORKS, text)


def _controllers(lines: list[str]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        out.extend((name, path) for name in controllers.split(",") if not name.startswith("name="))
    return out


def _limit_file(groups: dict[str, str], controller: str, version: str, name: str) -> str | None:
    base = f"/sys/fs/cgroup/{controller}" if version == "1" else "/sys/fs/cgroup"
    path = groups.get(controller if version == "1" else "", "/")
    return _read(f"{base}{path.rstrip('/')}/{name}") or _read(f"{base}/{name}")


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


def loopback(_: Places) -> Finding:
    """net.loopback can talk to itself."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return Finding("loopback network", WORKS, "127.0.0.1 accepts connections")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return Finding("loopback network", LIMITED, reason, "ip link set lo up")


def memory_lock(_: Places) -> Finding:
    """Whether the probe may keep its memory from being swapped."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY or os.geteuid() == 0:
        return Finding("locked memory", WORKS, "not limited")
    return Finding("locked memory", WORKS, f"up to {units.format_value(soft, 'bytes')}")


def _capability(number: int) -> bool:
    for line in (_read("/proc/self/status") or "").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return os.geteuid() == 0


def deadline(_: Places) -> Finding:
    """SCHED_DEADLINE, for experiments with schedulers; a survey does not need it."""
    if _capability(_CAP_SYS_NICE):
        return Finding("real-time scheduling", WORKS, "CAP_SYS_NICE is there")
    return Finding(
        "real-time scheduling",
        LIMITED,
        "no CAP_SYS_NICE; only experiments need it",
        "run the experiment with sudo",
    )


def net_admin(_: Places) -> Finding:
    """Network experiments; a survey does not need it."""
    if _capability(_CAP_NET_ADMIN):
        return Finding("network experiments", WORKS, "CAP_NET_ADMIN is there")
    return Finding(
        "network experiments",
        LIMITED,
        "no CAP_NET_ADMIN; only experiments need it",
        "run the experiment with sudo",
    )


def terminal(_: Places) -> Finding:
    """What the terminal can show."""
    columns = shutil.get_terminal_size((80, 24)).columns
    encoding = (sys.stdout.encoding or "?").upper()
    text = f"{columns} columns, {encoding}"
    if columns < 60 or not encoding.startswith("UTF"):
        return Finding("terminal", LIMITED, text, "export LANG=C.UTF-8, and widen it to 80 columns")
    return Finding("terminal", WORKS, text)


def peers(_: Places) -> Finding:
    """Other tools, only for the side-by-side comparison of `make bench`."""
    packages = {
        "fio": "fio",
        "iperf3": "iperf3",
        "likwid-bench": "likwid",
        "stress-ng": "stress-ng",
    }
    missing = [package for tool, package in packages.items() if shutil.which(tool) is None]
    if missing:
        text = f"not here: {', '.join(missing)}; only `make bench` uses them"
        return Finding("peers (optional)", LIMITED, text, f"apt install {' '.join(missing)}")
    return Finding("peers (optional)", WORKS, ", ".join(packages))


def tools(_: Places) -> Finding:
    """The well-known tools that adapters drive; only those benchmarks need them."""
    from nephoscope.adapters import ADAPTERS

    good, bad, fixes = [], [], []
    for name, adapter in ADAPTERS.items():
        version, problem = _tool_version(adapter)
        if problem:
            bad.append(f"{name}: {problem}")
            fixes.append(adapter.spec.install)
        else:
            good.append(f"{name} {version}")
    state = LIMITED if bad else WORKS
    return Finding("adapters' tools", state, "; ".join([*good, *bad]), "; ".join(fixes))


def _tool_version(adapter: Adapter) -> tuple[str, str]:
    """Version of an adapter's tool here, and what is wrong with it ('' when nothing is)."""
    from nephoscope.adapters import Output, ToolError

    spec, look = adapter.spec, adapter.look
    path = shutil.which(spec.tool)
    if path is None:
        return "", f"{spec.tool} is not here; only this benchmark needs it"
    try:
        done = subprocess.run(
            [path, *look.arguments],
            input=look.input.encode(),
            capture_output=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
        text = done.stdout.decode(errors="replace")
        version = adapter.version(Output(text, done.stderr.decode(errors="replace")))
    except (OSError, subprocess.TimeoutExpired, ToolError) as error:
        return "", f"{path} does not answer as {spec.tool}: {error}"
    if not adapter.recent(version):
        return "", f"version {version}, and {spec.minimum} or newer is needed"
    return version, ""


CHECKS: tuple[Callable[[Places], Finding], ...] = (
    system,
    python,
    probe,
    store,
    temporary,
    direct_io,
    io_uring,
    clock,
    tsc,
    cpus,
    cgroup,
    steal,
    pressure,
    huge_pages,
    memory_lock,
    loopback,
    deadline,
    net_admin,
    terminal,
    tools,
    peers,
)
