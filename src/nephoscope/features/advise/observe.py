"""Observes a running process, or starts a command, observes it and ends it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import IO

from nephoscope.core.errors import Lacking, RunFailed, UsageError
from nephoscope.core.reading.printable import printable
from nephoscope.core.records import dataclass
from nephoscope.features.advise import machine_counters, processes, sockets, telemetry
from nephoscope.features.advise.hardware_counters import EventCounters
from nephoscope.features.advise.processes import ProcessTree
from nephoscope.features.advise.telemetry import CounterSnapshot, Telemetry

PERIOD_S = 0.1
READING_PART = 0.05
"""Largest part of a CPU that the readings themselves take; the period grows with their cost."""
LEAST_S = 0.5
"""Time of life below which nothing can be told of a process."""
_KILL_AFTER_S = 3.0
_END_STEP_S = 0.02
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_SET_CHILD_SUBREAPER = 36


@dataclass(slots=True)
class _Reader:
    """Takes snapshots of one process tree. notes: what could not be read."""

    tree: ProcessTree
    root: int
    sockets_hidden: bool = False
    notes: tuple[str, ...] = ()
    cpus: int = 1
    counters: EventCounters = field(init=False)

    def __post_init__(self) -> None:
        self.cpus = processes.allowed_cpus(self.root)
        self.tree.refresh()
        self.counters = EventCounters(thread for _, _, thread in self.tree.threads())
        own = sockets.namespace_of(os.getpid())
        if sockets.namespace_of(self.root) not in ("", own):
            self._hide_sockets("it is in another network namespace")

    def snapshot(self) -> CounterSnapshot:
        """Returns all counters now."""
        members = self.tree.refresh()
        numbers = frozenset(pid for pid, _ in members)
        connections = {}
        if not self.sockets_hidden:
            inodes = sockets.inodes_of(numbers)
            try:
                if inodes is None:
                    self._hide_sockets("its files belong to another user")
                elif inodes:
                    connections = sockets.connections(inodes)
            except OSError as error:
                self._hide_sockets(f"the kernel's socket diagnostics fail ({error.strerror})")
        group = machine_counters.own_group(self.root, numbers)
        return CounterSnapshot(
            time.monotonic(),
            members,
            self.tree.threads(),
            connections,
            machine_counters.devices(),
            machine_counters.pressure(),
            machine_counters.pressure(group) if group else {},
        )

    def _hide_sockets(self, reason: str) -> None:
        self.sockets_hidden = True
        self.notes += (f"The process's network connections cannot be read: {reason}.",)


def of_process(pid: int, seconds: float) -> Telemetry:
    """Observes a process and its descendants. Raises UsageError where there is none."""
    if not processes.exists(pid):
        raise UsageError(f"--pid: there is no process {pid}.", "List them with `ps -e`.")
    name = _name(pid)
    reader = _Reader(ProcessTree(pid), pid)
    snapshots = _collect(reader, seconds, lambda: bool(reader.tree.members))
    if _lifetime_s(snapshots) < LEAST_S:
        raise RunFailed(
            f"Process {pid} ended before it could be observed.", "Observe a process that lasts."
        )
    return _analysed(f"{pid} ({name})", reader, snapshots)


def of_command(line: str, seconds: float) -> Telemetry:
    """Starts a command without a shell, observes it, and ends it and its descendants.

    Raises UsageError where it cannot be started, RunFailed where it ends at once.
    """
    words = _words(line)
    heir = os.getpid()
    tree = ProcessTree(heir=heir, before=processes.children_of(heir))
    with tempfile.TemporaryFile() as errors, _ending(tree):
        child = _child(words, errors)
        reader = _Reader(tree, child.pid)
        snapshots = _collect(reader, seconds, lambda: _is_running(tree))
        exit_code = _exit_code(child.pid)
        _end(tree)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_KILL_AFTER_S)
        complaint = _last_line(errors)
    if _lifetime_s(snapshots) < LEAST_S:
        raise RunFailed(
            f"The command ended after less than {LEAST_S} s with exit code {exit_code}{complaint}, "
            "too soon to be observed.",
            "Give it more work, or correct the command.",
        )
    if exit_code:
        reader.notes += (f"The command failed with exit code {exit_code}{complaint}.",)
    return _analysed(line, reader, snapshots, exit_code)


def _analysed(
    name: str, reader: _Reader, snapshots: list[CounterSnapshot], exit_code: int | None = None
) -> Telemetry:
    notes = list(reader.notes)
    if any(entry.storage_bytes is None for entry in snapshots):
        notes.append("Its bytes read and written cannot be read: it belongs to another user.")
    return telemetry.analyse(
        printable(name),
        snapshots,
        reader.cpus,
        hardware=reader.counters.read(),
        sockets_hidden=reader.sockets_hidden,
        exit_code=exit_code,
        notes=notes,
    )


def _collect(
    reader: _Reader, seconds: float, is_running: Callable[[], bool]
) -> list[CounterSnapshot]:
    """Takes snapshots until the time is over or nothing runs any more."""
    snapshots = []
    end = time.monotonic() + seconds
    while True:
        started, used = time.monotonic(), time.thread_time()
        snapshot = reader.snapshot()
        if snapshot.processes:
            snapshots.append(snapshot)
        now = time.monotonic()
        pause = max(PERIOD_S - (now - started), (time.thread_time() - used) / READING_PART)
        if not is_running() or now >= end:
            return snapshots
        # The last interval may be longer than the others, not much shorter.
        time.sleep(pause if end - now > 1.5 * pause else end - now)


def _lifetime_s(snapshots: Sequence[CounterSnapshot]) -> float:
    return snapshots[-1].at_s - snapshots[0].at_s if snapshots else 0.0


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        sentence = f"--command: '{line}' cannot be split: {error}."
        raise UsageError(sentence, "Close the quotes.") from error
    if not words:
        raise UsageError("--command is empty.", "Use, for example, --command 'gzip -k FILE'.")
    return words


@contextlib.contextmanager
def _ending(tree: ProcessTree) -> Iterator[None]:
    """Ends all members of a tree at the end, whatever ends this process.

    Orphans of the tree become children of this process meanwhile.
    """
    inherit = ctypes.CDLL(None).prctl
    inherit(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    handlers = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for pid, _ in _end(tree):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        inherit(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _child(words: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    null = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            words, stdin=null, stdout=null, stderr=errors, start_new_session=True
        )
    except OSError as error:
        raise Lacking(
            f"--command: '{words[0]}' cannot be started: {error.strerror}.",
            "Name an installed program; a shell's own words need `sh -c '…'`.",
        ) from error


def _exit_code(pid: int) -> int | None:
    """Returns how a child has ended, minus the signal where it was one; None while it runs."""
    status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if status is None:
        return None
    return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status


def _is_running(tree: ProcessTree) -> bool:
    """Returns whether a member runs; orphans are members once their parent has ended."""
    for _ in range(2):
        if any(processes.is_member_alive(member) for member in tree.members):
            return True
        tree.refresh()
    return False


def _end(tree: ProcessTree) -> set[processes.ProcessId]:
    """Ends all members, politely first; returns those that there were.

    A process that the kernel does not let go (in uninterruptible sleep) is left behind.
    """
    started = time.monotonic()
    members = set(tree.members)
    notified: set[processes.ProcessId] = set()
    while _is_running(tree) and time.monotonic() < started + 2 * _KILL_AFTER_S:
        late = time.monotonic() > started + _KILL_AFTER_S
        for member in tree.members if late else tree.members - notified:
            if processes.is_member_alive(member):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(member[0], signal.SIGKILL if late else signal.SIGTERM)
        notified |= tree.members
        time.sleep(_END_STEP_S)
        members |= set(tree.refresh())
    return members


def _name(pid: int) -> str:
    try:
        return (processes.PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return "unnamed"


def _last_line(errors: IO[bytes]) -> str:
    """Returns the last line that a command wrote on standard error, as part of a sentence."""
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - 4096))
    lines = printable(errors.read().decode("utf-8", "replace")).split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f" ('{last[:200]}')" if last else ""
