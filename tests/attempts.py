"""Attempts of tests that measure: one is repeated only when counters show that it was disturbed.

A measurement that misses its bound on an undisturbed machine is a failure, at once. One during
which the hypervisor took CPU time, or other programs used it, is measured again, later. The bound
is the same every time, and every attempt is printed with what the counters showed. A test of which
every attempt was disturbed is undecided: it is named, and too many of them fail the whole run
(conftest.py).
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pytest

PAUSES_S = (1, 2, 5, 10, 20, 30, 40)
"""Before each further attempt: eight over two minutes, longer than most builds and bursts."""

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
"""The unit of the kernel's counters of CPU time."""

DISTURBING_RATIO = 0.005
"""Of one CPU's time. The narrowest bounds on shares of a CPU are 1 to 2 %: less than this moves
none of them past its bound, and a machine at rest stays below it."""


class Undecided(AssertionError):
    """Every attempt was disturbed and missed the bound: the test has neither passed nor failed."""


class Unmeasurable(Undecided):
    """What a test measures was not to be had in any attempt, as a reading of its own showed."""


@dataclass(frozen=True, slots=True)
class Counters:
    """CPU time at one moment, in seconds since boot: what the kernel accounts to whom.

    steal: of each CPU, taken by the hypervisor. others: of all programs in sight but this one and
    its descendants. user: of all programs of the machine but `others`, in sight or not; own_user:
    the part of it that this program and its descendants used. pressure: time in which some task
    waited for a CPU; None where the kernel does not report it.
    """

    at: float
    steal: tuple[float, ...]
    user: float
    own_user: float
    others: float
    pressure: float | None

    @classmethod
    def read(cls) -> Counters:
        """Returns the counters of this moment."""
        steal, user = _machine()
        own_user, others, others_user = _programs()
        return cls(time.monotonic(), steal, user - others_user, own_user, others, _pressure())


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What the counters showed during one attempt."""

    elapsed_s: float
    steal_s: float
    others_s: float
    pressure_s: float | None

    def reasons(self, *, contends: bool) -> list[str]:
        """Returns which counters are too high for the attempt to count, each with its value.

        contends: whether programs of the test itself wait for a CPU, so that the pressure says
        nothing about others.
        """
        allowed = DISTURBING_RATIO * self.elapsed_s
        pressure_s = 0.0 if contends or self.pressure_s is None else self.pressure_s
        return [
            f"{name} {1e3 * taken_s:.0f} ms in {self.elapsed_s:.1f} s"
            for name, taken_s, limit_s in (
                # The hypervisor's own clock, cut to whole ticks: one tick may be almost two.
                ("steal", self.steal_s, max(allowed - TICK_S, 0.0)),
                ("other programs", self.others_s, max(allowed, TICK_S)),
                ("CPU pressure", pressure_s, max(allowed, 1e-3)),
            )
            if taken_s > limit_s
        ]

    @property
    def text(self) -> str:
        """Returns the counters in one line."""
        pressure = "unknown" if self.pressure_s is None else f"{1e3 * self.pressure_s:.0f} ms"
        return (
            f"steal {1e3 * self.steal_s:.0f} ms, other programs {1e3 * self.others_s:.0f} ms, "
            f"CPU pressure {pressure} in {self.elapsed_s:.1f} s"
        )


def disturbance(before: Counters, after: Counters) -> Disturbance:
    """Returns what happened between two readings."""
    steal_s = max((b - a for a, b in zip(before.steal, after.steal, strict=False)), default=0.0)
    # Programs of other containers have no entry in /proc. Their time is in the machine's sum, which
    # is counted by ticks: a twentieth of a CPU is what its errors leave certain.
    unseen_s = (after.user - before.user) - (after.own_user - before.own_user)
    elapsed_s = after.at - before.at
    certain_s = unseen_s if unseen_s > max(0.05 * elapsed_s, 5 * TICK_S) else 0.0
    pressure_s = None
    if before.pressure is not None and after.pressure is not None:
        pressure_s = after.pressure - before.pressure
    others_s = max(after.others - before.others, certain_s, 0.0)
    return Disturbance(elapsed_s, steal_s, others_s, pressure_s)


def attempt(
    name: str,
    measure: Callable[[], tuple[str, bool]],
    *,
    contends: bool = False,
    witness: Callable[[], str] = lambda: "",
    read: Callable[[], Counters] = Counters.read,
    pauses_s: Iterable[float] = PAUSES_S,
) -> None:
    """Measures once, and again after a pause while the attempt missed its bound and was disturbed.

    measure: returns what it saw, in words, and whether the bound was held; an assertion that fails
    in it is a bound that was missed. contends: whether the test makes its own programs wait for a
    CPU, so that pressure shows no disturbance. witness: names a further disturbance that a reading
    of its own shows, during an attempt that missed or right after it, "" for none. Raises
    Undecided, with all that was seen, where every attempt was disturbed; Unmeasurable, where the
    witness named a disturbance after each of them; the assertion's error, where one failed in each
    of them: what is never right is no matter of disturbances.
    """
    seen: list[str] = []
    witnessed: list[str] = []
    errors: list[AssertionError] = []
    for pause_s in chain((0,), pauses_s):
        time.sleep(pause_s)
        before = read()
        try:
            text, held = measure()
        except Undecided:
            raise
        except AssertionError as error:
            errors.append(error)
            text, held = (str(error) or "an assertion failed").splitlines()[0], False
        during = disturbance(before, read())
        seen.append(f"{text} ({during.text})")
        print(f"{name}, attempt {len(seen)}: {seen[-1]}")  # noqa: T201
        if held:
            return
        witnessed.append(witness())
        reasons = [text for text in (*during.reasons(contends=contends), witnessed[-1]) if text]
        if not reasons:
            missed = f"{name}: the bound was missed, and nothing disturbed it: {seen}"
            raise pytest.fail.Exception(missed) from (errors[-1] if errors else None)
        print(f"{name}: measured again because of {', '.join(reasons)}")  # noqa: T201
    if len(errors) == len(seen):
        raise errors[-1]
    text = f"{name}: all {len(seen)} attempts were disturbed and missed the bound: {seen}"
    raise Unmeasurable(text) if all(witnessed) else Undecided(text)


def _machine() -> tuple[tuple[float, ...], float]:
    """Returns the stolen time of each CPU, and the user time of the whole machine."""
    lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    steal = [float(line[8]) * TICK_S for line in lines if line[0].startswith("cpu")][1:]
    return tuple(steal), (float(lines[0][1]) + float(lines[0][2])) * TICK_S


def _pressure() -> float | None:
    try:
        line = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except OSError:
        return None
    return int(line.rsplit("=", 1)[1]) / 1e6


def _programs() -> tuple[float, float, float]:
    """Returns own user time, other programs' CPU time, and the part of it that is user time.

    A process's time moves to its parent when that has waited for it, so that the sum over all
    processes and their ended children loses nothing.
    """
    programs: dict[int, tuple[int, float, float]] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            fields = Path(entry.path, "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # it ended meanwhile
            continue
        user = (int(fields[11]) + int(fields[13])) * TICK_S
        system = (int(fields[12]) + int(fields[14])) * TICK_S
        programs[int(entry.name)] = (int(fields[1]), user, user + system)
    own, kernel = {os.getpid()}, {2}
    for _ in programs:
        size = len(own) + len(kernel)
        own |= {pid for pid, (parent, _, _) in programs.items() if parent in own}
        kernel |= {pid for pid, (parent, _, _) in programs.items() if parent in kernel}
        if len(own) + len(kernel) == size:
            break
    others = programs.keys() - own - kernel
    others -= {pid for pid in others if _in_a_lab(pid)}
    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    own_user = sum(one.ru_utime for one in used)
    own_user += sum(programs[pid][1] for pid in own - {os.getpid()} if pid in programs)
    return (
        own_user,
        sum(programs[pid][2] for pid in others),
        sum(programs[pid][1] for pid in others),
    )


def _in_a_lab(pid: int) -> bool:
    """Returns whether a process is in a lab's control group: the test's own, whoever its parent."""
    try:
        return "/nephoscope" in Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return False
