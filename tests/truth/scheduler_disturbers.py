"""Programs that take the CPU away by no limit: a real-time task, and one that stops others.

    task   POLICY CPU PERIOD_MS WORK_MS JITTER SEED
    stops  METHOD PERIOD_MS SHARE JITTER SEED FOLDER...

They print a line when they begin, and run until they are ended. Both wait for moments on the
monotonic clock.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PR_SET_PDEATHSIG = 1
SCHED_DEADLINE = 6
SCHED_SETATTR = 314
"""Number of the system call, which Python has no name for."""
PRIORITY = 50
"""Above every ordinary program and the test itself."""

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def wait_until(moment: float) -> None:
    """Sleeps until a moment of the monotonic clock."""
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)


def reserve(cpu: int, period_s: float, work_s: float) -> None:
    """Puts this process under SCHED_DEADLINE on a CPU, which it then stays on: the kernel takes no
    process that is pinned."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    os.sched_setaffinity(0, allowed)
    times = (round(seconds * 1e9) for seconds in (work_s, period_s, period_s))
    attributes = struct.pack("IIQiIQQQ", 48, SCHED_DEADLINE, 0, 0, 0, *times)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(SCHED_SETATTR, 0, attributes, 0):
        raise OSError(ctypes.get_errno(), f"SCHED_DEADLINE {work_s} of {period_s} s")


def work_periodically(
    policy: str, cpu: int, period_s: float, work_s: float, jitter: float, seed: int
) -> None:
    """Uses the CPU for `work_s` of every period; where its work does not vary, until a moment.

    With `deadline`, without end, as the kernel allows, or until it yields where its work varies.
    """
    if policy == "deadline":
        reserve(cpu, period_s, work_s * (1 + jitter))
    else:
        os.sched_setaffinity(0, {cpu})
    rng = random.Random(seed)
    moment = time.monotonic()
    while policy == "deadline" and jitter == 0:
        pass
    while True:
        used = time.thread_time()
        length = work_s * rng.uniform(1 - jitter, 1 + jitter)
        while time.thread_time() - used < length if jitter else time.monotonic() < moment + length:
            pass
        if policy == "deadline":
            os.sched_yield()
            continue
        moment += period_s
        wait_until(moment)


def processes(folders: list[Path]) -> set[int]:
    """The processes of control groups."""
    return {int(word) for one in folders for word in (one / "cgroup.procs").read_text().split()}


def used_s(pids: set[int]) -> float:
    """CPU time that processes have used, as the kernel counts it in ticks."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks * TICK_S


@contextlib.contextmanager
def stopped(folders: list[Path], frozen: list[Path]) -> Iterator[None]:
    """Holds all programs: by freezing the groups of `frozen`, else by signals."""
    pids = set() if frozen else processes(folders)
    for one in frozen:
        one.write_text("FROZEN" if one.name == "freezer.state" else "1")
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        for one in frozen:
            one.write_text("THAWED" if one.name == "freezer.state" else "0")


def stop_periodically(
    method: str, period_s: float, share: float, jitter: float, seed: int, folders: list[Path]
) -> None:
    """Lets programs run for `share` of each period; as cpulimit does, of what they use."""
    rng = random.Random(seed)
    names = ("freezer.state", "cgroup.freeze")
    frozen = [one / name for one in folders for name in names if (one / name).exists()][:1]
    rate = share
    usage = None
    before = (time.monotonic(), used_s(processes(folders)))
    moment = time.monotonic()
    while True:
        moment += period_s * rate * rng.uniform(1 - jitter, 1 + jitter)
        wait_until(moment)
        with stopped(folders, frozen if method == "freezer" else []):
            moment += period_s * (1 - rate) * rng.uniform(1 - jitter, 1 + jitter)
            wait_until(moment)
        if method == "cpulimit":
            now = (time.monotonic(), used_s(processes(folders)))
            seen = max(0.0, now[1] - before[1]) / (now[0] - before[0])
            usage = seen if usage is None else 0.92 * usage + 0.08 * seen
            before = now
            rate = min(0.98, max(0.02, rate / max(usage, 0.01) * share))


def main(words: list[str]) -> None:
    """Runs one of both until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # A test that is killed must not leave a real-time program behind.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    print("ready", flush=True)  # noqa: T201
    if words[0] == "task":
        policy, cpu, period_ms, work_ms, jitter, seed = words[1:]
        times_s = (float(period_ms) / 1e3, float(work_ms) / 1e3)
        work_periodically(policy, int(cpu), *times_s, float(jitter), int(seed))
    else:
        method, period_ms, share, jitter, seed, *folders = words[1:]
        paths = [Path(folder) for folder in folders]
        stop_periodically(
            method, float(period_ms) / 1e3, float(share), float(jitter), int(seed), paths
        )


if __name__ == "__main__":
    main(sys.argv[1:])
