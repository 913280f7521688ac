"""Looks that a simulated kernel gives: a tick, budgets with payback, turns, interrupts, sleeps.

One step is 100 µs. A budget is seen to be used up at a tick, and what was taken too much is paid
back from the next period, as CFS bandwidth and SCHED_DEADLINE do; turns change at ticks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nephoscope.features.scheduler.inference.verdict import Gap, Loop, ObservationWindow

STEP_NS = 100_000
Runs = Callable[[int], list[bool]]
"""Step number -> which loops have the CPU in that step."""


@dataclass
class Budget:
    """Time for `loops` loops together in each period, refilled at `phase_ns` and after."""

    loops: int
    budget_ns: int
    period_ns: int
    phase_ns: int
    tick_ns: int = 4_000_000
    tick_phase_ns: int = 0
    left: int = field(init=False)
    stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.left = self.budget_ns

    def __call__(self, step: int) -> list[bool]:
        now = step * STEP_NS
        if (now - self.phase_ns) % self.period_ns < STEP_NS:
            self.left = min(self.left + self.budget_ns, self.budget_ns)
            self.stopped = self.left <= 0
        if (now - self.tick_phase_ns) % self.tick_ns < STEP_NS and self.left <= 0:
            self.stopped = True
        if not self.stopped:
            self.left -= self.loops * STEP_NS
        return [not self.stopped] * self.loops


@dataclass
class Turns:
    """One loop among others by weight, as the kernel's fair scheduler (EEVDF) takes turns.

    At each tick whoever has had no more than his part, and of those the one whose slice is due
    first. Source: Stoica and Abdel-Wahab, Earliest Eligible Virtual Deadline First, 1995.
    """

    weight: int
    others: Sequence[int]
    tick_ns: int = 4_000_000
    tick_phase_ns: int = 0
    slice_ns: int = 2_800_000
    now_runs: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.weights = [self.weight, *self.others]
        self.had = [0.0 for _ in self.weights]
        self.due = [self.slice_ns / weight for weight in self.weights]

    def __call__(self, step: int) -> list[bool]:
        if (step * STEP_NS - self.tick_phase_ns) % self.tick_ns < STEP_NS:
            one = self.now_runs
            self.had[one] += self.tick_ns / self.weights[one]
            self.due[one] = self.had[one] + self.slice_ns / self.weights[one]
            pairs = list(zip(self.had, self.weights, strict=True))
            fair = sum(had * weight for had, weight in pairs) / sum(self.weights)
            eligible = [n for n, had in enumerate(self.had) if had <= fair * (1 + 1e-12)]
            self.now_runs = min(eligible, key=lambda n: self.due[n])
        return [self.now_runs == 0]


def side_by_side(parts: Sequence[Runs]) -> Runs:
    """Loops that know nothing of each other."""
    return lambda step: [runs for part in parts for runs in part(step)]


def always(loops: int) -> Runs:
    """Nothing takes the CPU away."""
    return lambda step: [True] * loops


def look(
    rule: Runs,
    *,
    window_ms: int = 2500,
    processes: int = 1,
    noise: random.Random | None = None,
    cost_ns: float = 15.0,
    cpu: int = 0,
    **more: object,
) -> ObservationWindow:
    """What loops under a rule see; `noise` takes them 0.2 to 2 ms away a few times a second."""
    steps = window_ms * 1_000_000 // STEP_NS
    had = [rule(step) for step in range(steps)]
    loops = len(had[0])
    for number in range(loops):
        for _ in range(window_ms * 3 // 1000 if noise else 0):
            assert noise is not None
            at = noise.randrange(steps)
            for step in range(at, min(steps, at + noise.randint(2, 20))):
                had[step][number] = False
    seen = [
        _loop([one[number] for one in had], cpu + number // processes, number % processes, cost_ns)
        for number in range(loops)
    ]
    return ObservationWindow(
        target="t",
        trial="r0001-s000-t",
        processes=processes,
        window_ns=window_ms * 1_000_000,
        loops=tuple(seen),
        **more,  # type: ignore[arg-type]
    )


def _loop(had: Sequence[bool], cpu: int, process: int, cost_ns: float) -> Loop:
    gaps: list[Gap] = []
    began: int | None = None
    for step, runs in enumerate([*had, True]):
        if not runs and began is None:
            began = step
        elif runs and began is not None:
            gaps.append(Gap(began * STEP_NS, float((step - began) * STEP_NS), "preempted"))
            began = None
    lost = sum(gap.length_ns for gap in gaps)
    share = 1 - lost / (len(had) * STEP_NS)
    return Loop(
        cpu=cpu,
        process=process,
        share=share,
        thread_cpu_ratio=share,
        look_cost_ns=cost_ns,
        gaps=tuple(gaps),
    )
