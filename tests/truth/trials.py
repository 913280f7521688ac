"""What the truth tests of disk and network share: a trial's lines, sandboxes."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nephoscope.core.programs import find_probe

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root: it makes a control group, a mount or a network namespace"
)


def probe_path() -> str:
    """The static probe of this tree, or the one that NEPHOSCOPE_PROBE names."""
    return str(find_probe())


class Trial:
    """The lines of one trial that went well, and the blocks the kernel accounted to it."""

    def __init__(self, text: str, read_bytes: int = 0, written_bytes: int = 0) -> None:
        lines = [json.loads(line) for line in text.splitlines()]
        assert "done" in lines[-1], lines[-1]
        self.done: dict[str, Any] = lines[-1]["done"]
        self.samples: list[dict[str, Any]] = lines[:-1]
        self.read_bytes = read_bytes
        self.written_bytes = written_bytes
        assert self.done["samples"] == len(self.samples)

    @property
    def notes(self) -> str:
        return " ".join(self.done.get("notes", []))

    @property
    def metrics(self) -> set[str]:
        return {sample["metric"] for sample in self.samples}

    def one(self, metric: str) -> float:
        (sample,) = [sample for sample in self.samples if sample["metric"] == metric]
        return float(sample["value"])

    def histogram(self, metric: str) -> tuple[int, float]:
        """Count and mean of a histogram."""
        pairs = [(s["value"], s["count"]) for s in self.samples if s["metric"] == metric]
        count = sum(number for _, number in pairs)
        return count, sum(value * number for value, number in pairs) / count


def command(benchmark: str, params: dict[str, Any]) -> list[str]:
    probe = probe_path()
    return [probe, "run", benchmark, "--params", json.dumps(params), "--deadline", "60"]


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
    with start(benchmark, params, inside, before) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        out, errors = process.stdout.read(), process.stderr.read()
        # wait4 gives the usage of this child alone; the kernel counts blocks of 512 bytes.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, out[-500:] + errors
    return Trial(out, usage.ru_inblock * 512, usage.ru_oublock * 512)


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


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


def forbid(system_call: int) -> None:
    """Makes a system call answer EPERM from now on, as the filters of container engines do."""
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = (_Instruction * 4)(
        _Instruction(0x20, 0, 0, 0),  # load the number of the system call
        _Instruction(0x15, 0, 1, system_call),  # is it this one?
        _Instruction(0x06, 0, 0, 0x00050001),  # then return EPERM
        _Instruction(0x06, 0, 0, 0x7FFF0000),  # else allow
    )
    program = _Program(4, instructions)
    no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if libc.prctl(set_seccomp, mode_filter, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")
