"""What the truth tests of disk and network share: a trial's lines, sandboxes."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests import hardware
from tests.hardware import Feature
from truth_marks import READING, Sample

from nephoscope.core.programs import find_probe

needs_root = hardware.needs(Feature.ROOT, os.geteuid() == 0)


def probe_path() -> str:
    """The static probe of this tree, or the one that NEPHOSCOPE_PROBE names."""
    return str(find_probe())


class Trial:
    """The lines of one trial that went well, and what the kernel accounted to its process."""

    def __init__(self, text: str, usage: resource.struct_rusage | None = None) -> None:
        lines = [json.loads(line) for line in text.splitlines()]
        assert "done" in lines[-1], lines[-1]
        self.done: dict[str, Any] = lines[-1]["done"]
        self.samples = [Sample(line).falsified() for line in lines[:-1]]
        self._usage = usage
        assert self.done["samples"] == len(self.samples)

    @property
    def usage(self) -> resource.struct_rusage:
        assert self._usage is not None, "nobody waited for this process alone"
        return self._usage

    @property
    def read_bytes(self) -> int:
        # The kernel counts blocks of 512 bytes.
        return self.usage.ru_inblock * 512

    @property
    def written_bytes(self) -> int:
        return self.usage.ru_oublock * 512

    @property
    def cpu_s(self) -> float:
        """CPU time of the process and of those that it waited for."""
        return self.usage.ru_utime + self.usage.ru_stime

    @property
    def notes(self) -> str:
        return " ".join(self.done.get("notes", []))

    @property
    def metrics(self) -> set[str]:
        return {sample["metric"] for sample in self.samples}

    def all(self, metric: str) -> list[Sample]:
        """The samples of a metric, with their factors."""
        return [sample for sample in self.samples if sample["metric"] == metric]

    def series(self, metric: str, **factors: Any) -> list[float]:
        """The values of a metric in order, of the samples that have these factors."""
        samples = [s for s in self.all(metric) if factors.items() <= s.get("factors", {}).items()]
        return [float(sample["value"]) for sample in samples]

    def by(self, metric: str, factor: str) -> dict[Any, float]:
        """The values of a metric by one of its factors."""
        return {sample["factors"][factor]: sample["value"] for sample in self.all(metric)}

    def document(self, metric: str) -> dict[str, Any]:
        (sample,) = self.all(metric)
        found: dict[str, Any] = sample["document"]
        return found

    def one(self, metric: str) -> float:
        (sample,) = self.all(metric)
        return float(sample["value"])

    def histogram(self, metric: str, **factors: Any) -> tuple[int, float]:
        """Count and mean of a histogram, or of its part with these factors."""
        samples = [s for s in self.all(metric) if factors.items() <= s.get("factors", {}).items()]
        pairs = [(s["value"], s["count"]) for s in samples]
        count = sum(number for _, number in pairs)
        return count, sum(value * number for value, number in pairs) / count


def command(benchmark: str, params: dict[str, Any], deadline_s: int = 60) -> list[str]:
    READING.benchmarks.add(benchmark)
    return [
        probe_path(),
        "run",
        benchmark,
        "--params",
        json.dumps(params),
        "--deadline",
        str(deadline_s),
    ]


def start(
    benchmark: str,
    params: dict[str, Any],
    inside: Callable[[], None] | None = None,
    before: list[str] | None = None,
) -> subprocess.Popen[str]:
    """Starts a trial; `inside` runs in the child first, `before` are words ahead of the probe's."""
    pipe = subprocess.PIPE
    words = [*(before or []), *command(benchmark, params)]
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, preexec_fn=inside)


def run(
    benchmark: str,
    params: dict[str, Any],
    inside: Callable[[], None] | None = None,
    before: list[str] | None = None,
) -> Trial:
    """One trial that has to go well."""
    return finished(start(benchmark, params, inside, before))


def run_words(words: list[str]) -> Trial:
    """The trial of a command line that has to go well."""
    pipe = subprocess.PIPE
    return finished(subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True))


def finished(process: subprocess.Popen[str]) -> Trial:
    """Waits for a trial that has to go well."""
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        out, errors = process.stdout.read(), process.stderr.read()
        # wait4 gives the usage of this child alone.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, out[-500:] + errors
    return Trial(out, usage)


def refused(
    benchmark: str, params: dict[str, Any], inside: Callable[[], None] | None = None
) -> tuple[int, str]:
    """Exit code and error name of a trial that has to be refused; its sentences are checked."""
    with start(benchmark, params, inside) as process:
        out, errors = process.communicate(timeout=90)
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == 1, "a refused trial gives its error and no sample"
    error = lines[-1]["error"]
    assert errors.strip() == f"nephoscope-probe: {error['message']} {error['hint']}"
    assert error["message"].endswith(".")
    assert error["hint"].endswith(".")
    return process.returncode, error["name"]


@contextlib.contextmanager
def real_time(priority: int = 1, *, inherited: bool = False) -> Iterator[None]:
    """This thread goes before ordinary ones, where the kernel allows it; told where it does not.

    inherited: whether what it starts meanwhile does so too.
    """
    policy = os.SCHED_FIFO if inherited else os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    try:
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except PermissionError:
        print("no real-time priority here: others may keep this test waiting")  # noqa: T201
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextlib.contextmanager
def without_idle_cpus() -> Iterator[None]:
    """Keeps each CPU busy with a program that runs only when nothing else wants to: a virtual CPU
    that is idle takes up to a millisecond to wake. Those programs wait for a CPU, so that pressure
    shows no disturbance (`attempt(contends=True)`)."""
    words = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(words) for _ in os.sched_getaffinity(0)]
    try:
        for program in busy:
            os.sched_setscheduler(program.pid, os.SCHED_IDLE, os.sched_param(0))
        yield
    finally:
        for program in busy:
            program.kill()
            program.wait()


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false and constant of an instruction of a filter."""


def forbid(system_call: int) -> None:
    """Makes a system call answer EPERM from now on, as the filters of container engines do."""
    filter_calls(
        [
            (0x20, 0, 0, 0),  # load the number of the system call
            (0x15, 0, 1, system_call),  # is it this one?
            (0x06, 0, 0, 0x00050001),  # then return EPERM
            (0x06, 0, 0, 0x7FFF0000),  # else allow
        ]
    )


def filter_calls(program: Sequence[Instruction]) -> None:
    """Lets a filter decide on each system call of this process from now on."""
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = (_Instruction * len(program))(*(_Instruction(*words) for words in program))
    filters = _Program(len(program), instructions)
    no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if libc.prctl(set_seccomp, mode_filter, ctypes.byref(filters), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")
