"""Commands that are killed at drawn moments, and what is left of them after the next command."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nephoscope.measure.lab import leases as lab_leases
from nephoscope.measure.lab import sweep
from nephoscope.store import Store

from .conftest import PROGRAM

PATIENCE_S = 240.0
"""For what takes seconds on a quiet machine."""
ENDING_S = 30.0
"""A probe whose parent was killed ends within a second of a quiet machine."""
POLL_S = 0.05
"""Time is counted in polls: while all of this is stopped, or waits for a CPU, it does not pass."""
CPU_S = (0.1, 1.2)
"""CPU time of a command when it is killed, from its first imports to its measuring; below the least
that it took when it ended before."""
WAITING_S = 1.5
"""Time that a measuring command may have waited before it is killed, besides its CPU time."""
CLOCK_HZ = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Kill:
    """A command that was killed. by: whether its descendants were killed at the same moment."""

    words: str
    by: str
    was_killed: bool
    moment_s: float
    problems: tuple[str, ...]


class Cage:
    """A folder with a TMPDIR, a state and a store, by which processes and leftovers are known.

    lab: name of the lab that its commands make, if not one of their own.
    """

    def __init__(self, folder: Path, lab: str = "") -> None:
        self.folder = folder
        self.lab = lab
        self.scratch = folder / "tmp"
        self.state = folder / "state"
        self.scratch.mkdir()
        self._took_s: dict[str, float] = {}

    def environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "TMPDIR": str(self.scratch),
            "XDG_STATE_HOME": str(self.state),
            "NEPHOSCOPE_STORE": str(self.folder / "store"),
        }

    def processes(self) -> set[int]:
        """Processes that were started with this TMPDIR, whoever their parent is now."""
        mark = f"TMPDIR={self.scratch}".encode()
        alive = set()
        for entry in os.listdir("/proc"):
            with suppress(OSError):
                if entry.isdigit() and mark in Path("/proc", entry, "environ").read_bytes():
                    alive.add(int(entry))
        return alive

    def left(self) -> Iterator[str]:
        """What is here of commands that have ended."""
        yield from (f"process {pid}: {_words(pid)}" for pid in self.processes())
        yield from (f"{path.name} in TMPDIR" for path in self.scratch.iterdir())
        yield from (f"lease {path.name}" for path in self.state.rglob("leases/*"))
        # Tests that run at the same time have labs of their own, which a living process leases.
        labs = {
            name for name in sweep.labs_here() if name == self.lab or lab_leases.is_abandoned(name)
        }
        yield from (f"lab {name}" for name in labs)

    def trials(self) -> Mapping[str, int]:
        """Stored trials of each run."""
        runs = Store(self.folder / "store").runs()
        return {run.id: run.trial_count() for run in runs}

    def _stopped(self, pid: int) -> set[int]:
        """Stops all processes of a command, so that none is started while they are killed."""
        stopped: set[int] = set()
        while new := (self.processes() | {pid}) - stopped:
            for each in new:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGSTOP)
            stopped |= new
        return stopped

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end; ends it with TimeoutExpired after PATIENCE_S of polls."""
        words = [*PROGRAM, *shlex.split(line)]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen(
                words, cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                stdout=out, stderr=err,
            )  # fmt: skip
            try:
                if not _polled(lambda: process.poll() is not None, PATIENCE_S):
                    raise subprocess.TimeoutExpired(words, PATIENCE_S)
            finally:
                process.kill()
                process.wait()
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(words, process.returncode, out.read(), err.read())

    def kill(self, line: str, draw: random.Random, following: str = "verify") -> Kill:
        """Starts a command, kills it at a drawn moment, and runs the following one."""
        by = draw.choice(("alone", "with all its processes"))
        latest_s = min(CPU_S[1], 0.9 * self._took_s.get(line, CPU_S[1]))
        cpu_s, waited_s = draw.uniform(CPU_S[0], latest_s), draw.uniform(0, WAITING_S)
        used_s = 0.0
        process = subprocess.Popen(
            [*PROGRAM, *shlex.split(line)], cwd=self.folder, env=self.environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        began_s = time.monotonic()
        while process.poll() is None and used_s < cpu_s:
            used_s = max(used_s, _cpu_s(process.pid))
            # A command that waits uses no CPU time: it is killed all the same.
            if time.monotonic() - began_s > waited_s + 20 * used_s:
                break
            time.sleep(0.005)
        moment_s = time.monotonic() - began_s
        victims = {process.pid} if by == "alone" else self._stopped(process.pid)
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        was_killed = process.wait() == -signal.SIGKILL
        if not was_killed:
            self._took_s[line] = max(CPU_S[0], min(used_s, self._took_s.get(line, used_s)))
        stored = self.trials()
        done = self.run(following)
        trials = self.trials()
        problems = [
            f"run {run}: {trials.get(run, 0)} of {count} trials"
            for run, count in stored.items()
            if trials.get(run, 0) < count
        ]
        if done.returncode != 0 or "defect" in done.stderr or "Traceback" in done.stderr:
            problems.append(f"{following}: {done.returncode} {(done.stdout + done.stderr)[-400:]}")
        _polled(lambda: not any(self.left()), ENDING_S)
        left = list(self.left())
        for pid in self.processes():  # not to be counted again after the next kill
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return Kill(line, by, was_killed, moment_s, (*problems, *left))


def _polled(is_done: Callable[[], bool], patience_s: float) -> bool:
    """Polls until something is done; returns whether it was within so many seconds of polls."""
    for _ in range(round(patience_s / POLL_S)):
        if is_done():
            return True
        time.sleep(POLL_S)
    return is_done()


def _cpu_s(pid: int) -> float:
    """CPU time of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / CLOCK_HZ


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:100]
    except (OSError, UnicodeDecodeError):
        return "has ended"
