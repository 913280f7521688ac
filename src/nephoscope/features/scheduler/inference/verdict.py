"""The records of scheduler inference: what a trial saw, what was fitted, what it is called.

An observation window is one trial of `cpu.gaps`: how many loops were busy where, what each had, and
its gaps. A verdict names the mechanism that takes the CPU away, with the evidence in sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from nephoscope.core.model import INTERNAL, Estimate
from nephoscope.core.records import dataclass


class Word(StrEnum):
    """Scheduling class of a machine's CPUs, as observed from inside."""

    DEDICATED = "dedicated"
    RESERVATION_PER_CPU = "reservation per CPU"
    CAP_PER_MACHINE = "cap per machine"
    WEIGHT_ONLY = "weight only"
    SMT_SIBLING_SHARED = "SMT sibling shared"
    OWN_QUOTA = "own quota"
    PERIODIC_TASK = "periodic task"
    STOPPED = "stopped and continued"
    RESERVATION_OR_CAP = "reservation or cap"
    OTHER_PROGRAMS = "other programs"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Gap:
    """One moment without the CPU; start since the trial began, cause as the probe found it."""

    start_ns: int
    length_ns: float
    cause: str = "unexplained"

    @property
    def end_ns(self) -> float:
        """Returns when the loop had the CPU again."""
        return self.start_ns + self.length_ns


@dataclass(frozen=True, slots=True)
class Loop:
    """CPU time of one loop of a window.

    cpu: None for a loop that could not be pinned. process: its number among those of its CPU.
    share: 1 minus its gaps over the window. thread_cpu_ratio: the same as the kernel accounts it.
    gaps: the gaps kept one by one, in order. sleeps: what the loop was told to sleep, in order.
    """

    cpu: int | None
    process: int
    share: float
    thread_cpu_ratio: float | None = None
    look_cost_ns: float | None = None
    gaps: tuple[Gap, ...] = ()
    sleeps: tuple[Gap, ...] = ()

    @property
    def name(self) -> str:
        """'CPU 1', 'CPU 1, process 0', 'loop 1'."""
        return f"loop {self.process}" if self.cpu is None else f"CPU {self.cpu}"


@dataclass(frozen=True, slots=True)
class ObservationWindow:
    """One trial of `cpu.gaps` as the inference reads it.

    trial: its name in the run. processes: loops on each CPU. window_ns: how long each looked.
    sleep_ns: how long each loop slept at a time; 0 for a loop that was always busy. machine_cpus:
    CPUs that the machine has, None where unknown. steal_ratio: None where the machine hides it.
    throttled_ratio, throttled_count: None where no control group with counters is visible.
    programs: other programs of the same system with the CPUs that each used, the busiest first.
    """

    target: str
    trial: str
    processes: int
    window_ns: int
    loops: tuple[Loop, ...]
    sleep_ns: int = 0
    machine_cpus: int | None = None
    steal_ratio: float | None = None
    throttled_ratio: float | None = None
    throttled_count: int | None = None
    programs: tuple[tuple[str, float], ...] = ()

    @property
    def lost_cpus(self) -> float:
        """CPUs that all loops together did not have."""
        return sum(1 - loop.share for loop in self.loops)

    @property
    def obtained_cpus(self) -> float:
        """CPUs that all loops together had."""
        return sum(loop.share for loop in self.loops)

    @property
    def kind(self) -> str:
        """'one', 'all', 'several', 'sleeping': which of the four windows it is."""
        if self.sleep_ns > 0:
            return "sleeping"
        if self.processes > 1:
            return "several"
        return "one" if len(self.loops) == 1 else "all"


@dataclass(frozen=True, slots=True)
class Fit:
    """The mechanism's parameters; None where it has none, or nothing tells.

    share: of a CPU (unit 'ratio') for a reservation and a weight; CPUs of the whole machine (unit
    'cpus') for a cap and a quota. slice_ns: CPU time in each period. period_ns: from refill to
    refill; without refills (weight) the mean time from gap to gap.
    """

    share: Estimate | None = None
    slice_ns: Estimate | None = None
    period_ns: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Obtained:
    """CPU time that one CPU gave in one kind of window.

    window: one, all, several, sleeping. cpu: None where loops were not pinned. processes: loops on
    it; share: of each of them, in the order of their numbers. total: of all of them together.
    """

    window: str
    cpu: int | None
    processes: int
    share: tuple[float, ...]
    total: Estimate


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Scheduling class of one target with its sentence and evidence.

    per_cpu: share of each CPU in each observation. contradictions: evidence against the word, steal
    first. missing: what was not looked at and would say more. conditions: the levels of what the
    plan varied, under which this holds; empty where it varied nothing. windows: the trials that it
    was read from, for pictures.
    """

    target: str
    word: Word
    sentence: str
    per_cpu: tuple[Obtained, ...] = ()
    fit: Fit = field(default_factory=Fit)
    evidence: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    next_step: str = ""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    windows: tuple[ObservationWindow, ...] = field(default=(), metadata=INTERNAL)


@dataclass(frozen=True, slots=True)
class SchedulerVerdicts:
    """The scheduler of each target under each combination of conditions, in order of execution."""

    targets: tuple[Scheduler, ...]


def of_kind(windows: Iterable[ObservationWindow], *kinds: str) -> list[ObservationWindow]:
    """The windows of these kinds, in their order."""
    return [window for window in windows if window.kind in kinds]
