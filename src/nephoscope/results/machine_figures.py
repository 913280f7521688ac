"""Figures of a machine that follow from several lines together: memory levels, thread scaling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nephoscope.core.estimate_text import estimate_text
from nephoscope.core.model import Estimate, Factors, LineKey, factors_key
from nephoscope.core.naming import factors_text


@dataclass(frozen=True, slots=True)
class Knee:
    """One plateau of the ladder, in order of length.

    level: 'L1' … 'RAM' where a known size agrees, else 'level 1', 'level 2', … by position.
    first_length_bytes, last_length_bytes: the measured lengths at which it begins and ends.
    plateau_value: median over it, in the unit of the values.
    """

    level: str
    first_length_bytes: int
    last_length_bytes: int
    plateau_value: float


@dataclass(frozen=True, slots=True)
class MemoryLevels:
    """Levels of memory that a metric shows over vector lengths. factors: the others."""

    benchmark: str
    metric: str
    target: str
    factors: Factors
    knees: tuple[Knee, ...]


@dataclass(frozen=True, slots=True)
class ThreadScaling:
    """Part of N times one thread's rate that N threads reach, paired by round; 1 is perfect.

    efficiency: number of threads -> ratio. factors: the others.
    """

    benchmark: str
    metric: str
    target: str
    factors: Factors
    efficiency: Mapping[int, Estimate]

    @property
    def name(self) -> str:
        """The benchmark, with its setting where it has one."""
        setting = factors_text(self.factors)
        return f"{self.benchmark} ({setting})" if setting else self.benchmark

    def sentence(self, threads: int) -> str:
        """Returns 'cpu.pi: 2 threads reach 71 % (1 trial) of twice the single-thread rate.'."""
        times = "twice" if threads == 2 else f"{threads} times"
        share = estimate_text(self.efficiency[threads])
        return f"{self.name}: {threads} threads reach {share} of {times} the single-thread rate."


@dataclass(frozen=True, slots=True)
class MachineFigures:
    """All of them. broken_laws: a sentence for each consistency law that the figures break."""

    memory_levels: tuple[MemoryLevels, ...] = ()
    scaling: tuple[ThreadScaling, ...] = ()
    broken_laws: tuple[str, ...] = ()

    def knees(self, key: LineKey) -> tuple[Knee, ...]:
        """Returns the memory levels of a line without its length; none where it is no ladder."""
        return next(
            (
                memory_level.knees
                for memory_level in self.memory_levels
                if _key(memory_level) == key
            ),
            (),
        )

    def efficiency(self, key: LineKey) -> Mapping[int, Estimate]:
        """Returns the efficiencies of a line without its number of threads."""
        return next((scaling.efficiency for scaling in self.scaling if _key(scaling) == key), {})


def _key(line: MemoryLevels | ThreadScaling) -> LineKey:
    return (line.benchmark, line.metric, line.target, factors_key(line.factors))
