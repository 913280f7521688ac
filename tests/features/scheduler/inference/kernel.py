"""Observations that an exact model of a kernel's CPU gives, event by event, with sleeping loops.

One CPU has a tick, an optional budget (a quota of all loops, or a reservation of each), competitors
by weight, and spans that a neighbour of higher priority takes. Budgets are seen to be used up at
ticks and refilled by a timer of their own; what was taken too much is paid back. A reservation
whose loop slept begins a new period when it wakes (constant bandwidth server); a quota is refilled
at fixed moments. Sources: as in `inference.replenishments`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from nephoscope.features.scheduler.inference.verdict import Gap, Loop, ObservationWindow

MS = 1_000_000
SLICE_NS = 2_800_000
SEEN_NS = 100_000
"""Gaps from here on are seen, as by `cpu.gaps`."""

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Task:
    """A neighbour of higher priority: it has the CPU for `work_ns` of every period.

    jitter: as a part of the work. ends_at_ticks: never rests, so that the kernel stops it, at
    ticks, when its budget of `work_ns` is used up (SCHED_DEADLINE); else it rests by itself.
    """

    work_ns: float
    period_ns: float
    jitter: float = 0.0
    ends_at_ticks: bool = False

    def spans(self, until_ns: float, tick: Tick, rng: random.Random) -> list[Span]:
        """When it has the CPU; the kernel's own work of switching adds some 10 us to each."""
        found = []
        start = -rng.random() * self.period_ns
        left = self.work_ns
        while start < until_ns:
            if self.ends_at_ticks:
                end = tick.after(start + max(left, 0.0))
                left = min(self.work_ns, left + self.work_ns - (end - start))
            else:
                end = start + self.work_ns * rng.uniform(1 - self.jitter, 1 + self.jitter)
            if end > 0:
                late = abs(rng.gauss(0, 1e4))
                found.append((max(0.0, start + late), end + abs(rng.gauss(0, 2e4))))
            start += self.period_ns
        return found


@dataclass(frozen=True, slots=True)
class Tick:
    """Moments at which the kernel looks."""

    every_ns: float = 4e6
    phase_ns: float = 0.0

    def after(self, moment: float) -> float:
        """The first tick not before a moment."""
        return self.phase_ns - -(moment - self.phase_ns) // self.every_ns * self.every_ns


@dataclass
class Budget:
    """`slice_ns` of CPU time in every period: of all loops together, or of each (`wakes`)."""

    slice_ns: float
    period_ns: float
    wakes: bool
    next_ns: float = 0.0
    left_ns: float = field(init=False)

    def __post_init__(self) -> None:
        self.left_ns = self.slice_ns

    def refill(self) -> None:
        """A period is over."""
        self.left_ns = min(self.slice_ns, self.left_ns + self.slice_ns)
        self.next_ns += self.period_ns

    def wake(self, now: float) -> None:
        """A loop woke: a reservation that its period has left behind begins anew."""
        if self.wakes:
            rest = self.next_ns - now
            if rest <= 0 or self.left_ns * self.period_ns > rest * self.slice_ns:
                self.left_ns = self.slice_ns
                self.next_ns = now + self.period_ns


@dataclass
class _Loop:
    sleeps_at: float
    asleep_since: float | None = None
    wakes_at: float = 0.0
    runs: list[Span] = field(default_factory=list)
    sleeps: list[Span] = field(default_factory=list)

    def wants(self, now: float) -> bool:
        """Returns whether it would run."""
        return self.asleep_since is None or now >= self.wakes_at


@dataclass
class Turns:
    """Whose turn it is among weights, the loops' own first: earliest eligible virtual deadline."""

    weights: Sequence[int]
    had: list[float] = field(init=False)
    due: list[float] = field(init=False)
    who: int = 0

    def __post_init__(self) -> None:
        self.had = [0.0 for _ in self.weights]
        self.due = [SLICE_NS / weight for weight in self.weights]

    def pick(self, own_wants: bool) -> None:
        """At a tick: of those who had no more than their part, the one that is due first."""
        self.due[self.who] = self.had[self.who] + SLICE_NS / self.weights[self.who]
        fair = self._fair()
        numbers = range(0 if own_wants or len(self.weights) == 1 else 1, len(self.weights))
        able = [number for number in numbers if self.had[number] <= fair * (1 + 1e-9)]
        self.who = min(able or numbers, key=lambda number: self.due[number])

    def wake(self) -> None:
        """The loops come back with what everybody had, and run at once."""
        self.had[0] = self._fair()
        self.who = 0

    def _fair(self) -> float:
        pairs = zip(self.had, self.weights, strict=True)
        return sum(had * weight for had, weight in pairs) / sum(self.weights)


@dataclass
class Cpu:
    """One CPU for a while. weights: of the loops together, then of each competitor.

    sleep_ns: how long a loop sleeps at a time, after `busy_ns`; 0 for one that never does.
    """

    until_ns: float
    tick: Tick
    loops: int = 1
    taken: Sequence[Span] = ()
    budgets: Sequence[Budget] = ()
    weights: Sequence[int] = (100,)
    sleep_ns: float = 0.0
    busy_ns: float = 420e6

    _loops: list[_Loop] = field(init=False)
    _turns: Turns = field(init=False)
    _throttled: list[bool] = field(init=False)
    _one: int = field(default=0, init=False)
    _used_ns: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        first = self.busy_ns if self.sleep_ns else math.inf
        self._loops = [_Loop(first) for _ in range(self.loops)]
        self._turns = Turns(self.weights)
        self._throttled = [False] * len(self.budgets)

    def run(self) -> list[_Loop]:
        """When each loop ran and slept."""
        spans = iter((*self.taken, (math.inf, math.inf)))
        span = next(spans)
        now = 0.0
        while now < self.until_ns:
            while span[1] <= now:
                span = next(spans)
            is_taken = span[0] <= now
            loop = None if is_taken or self._turns.who else self._chosen(now)
            if loop is not None and loop.asleep_since is not None:
                loop.sleeps.append((loop.asleep_since, now))
                loop.asleep_since, loop.sleeps_at = None, now + self.busy_ns
            tick = self.tick.after(now + 1)
            end = min(
                tick,
                span[1] if is_taken else span[0],
                math.inf if loop is None else max(loop.sleeps_at, now + 1),
                *(each.wakes_at for each in self._loops if each.wakes_at > now),
                *(budget.next_ns for budget in self.budgets if budget.next_ns > now),
            )
            self._use(loop, now, end, is_taken)
            now = end
            if loop is not None and now >= loop.sleeps_at:
                loop.asleep_since, loop.wakes_at = now, now + self.sleep_ns
                self._turns.pick(self._wants(now))
            self._refill(now)
            if now >= tick:
                self._look(now)
        return self._loops

    def _wants(self, now: float) -> bool:
        return any(loop.wants(now) for loop in self._loops)

    def _ready(self, now: float) -> list[int]:
        return [
            number
            for number, loop in enumerate(self._loops)
            if loop.wants(now) and not (self.budgets and self._throttled[number % self._kept])
        ]

    @property
    def _kept(self) -> int:
        return max(1, len(self.budgets))

    def _chosen(self, now: float) -> _Loop | None:
        """The loop that runs where none of others does."""
        ready = self._ready(now)
        if not ready:
            return None
        if self._one not in ready:
            self._one, self._used_ns = ready[0], 0.0
        return self._loops[self._one]

    def _use(self, loop: _Loop | None, now: float, end: float, is_taken: bool) -> None:
        if loop is not None:
            loop.runs.append((now, min(end, self.until_ns)))
            self._used_ns += end - now
            if self.budgets:
                self.budgets[self._one % self._kept].left_ns -= end - now
        if not is_taken and (loop is not None or self._turns.who):
            self._turns.had[self._turns.who] += (end - now) / self.weights[self._turns.who]

    def _look(self, now: float) -> None:
        """A tick: budgets that are used up, and whose turn it is."""
        ready = self._ready(now)
        # Reservations run until they are used up, the earlier deadline first.
        if self._used_ns >= SLICE_NS and len(ready) > 1 and len(self.budgets) < 2:
            self._one, self._used_ns = ready[(ready.index(self._one) + 1) % len(ready)], 0.0
        self._throttled = [
            stopped or budget.left_ns <= 0
            for stopped, budget in zip(self._throttled, self.budgets, strict=True)
        ]
        if len(self.weights) > 1:
            self._turns.pick(self._wants(now))

    def _refill(self, now: float) -> None:
        for number, budget in enumerate(self.budgets):
            if now >= budget.next_ns:
                budget.refill()
                self._throttled[number] = budget.left_ns <= 0
        for number, loop in enumerate(self._loops):
            if loop.asleep_since is not None and now == loop.wakes_at:
                self._turns.wake()
                if self.budgets:
                    self.budgets[number % self._kept].wake(now)


def noise(until_ns: float, rng: random.Random) -> list[Span]:
    """Spans that interrupts and daemons take."""
    found = []
    now = 0.0
    while (now := now + rng.expovariate(1 / 30e6)) < until_ns:
        length = rng.uniform(0.1, 0.3) if rng.random() < 0.97 else rng.uniform(1, 4)
        found.append((now, now + length * MS))
        now += length * MS
    return found


def observed(
    loops: Sequence[_Loop], cpu: int, window_ns: float, strangers: Sequence[Span]
) -> list[Loop]:
    """What each loop of a CPU saw: gaps, sleeps, its share.

    The window opens when every loop has had the CPU; a gap that begins in it is seen to its end.
    """
    opens = max(loop.runs[0][0] for loop in loops)
    closes = opens + window_ns
    found = []
    for number, loop in enumerate(loops):
        runs = _joined([run for run in loop.runs if run[1] > opens])
        gaps = []
        for (_, start), (end, _) in pairwise(runs):
            slept = any(low <= start + 1 and end <= high + 1 for low, high in loop.sleeps)
            if end - start >= SEEN_NS and start < closes and not slept:
                gaps.append((max(start, opens), end))
        if runs[0][0] > opens:
            gaps.append((opens, runs[0][0]))
        gaps += [
            (low, high)
            for low, high in strangers
            if low < closes and any(start <= low and high <= end for start, end in runs)
        ]
        gaps.sort()
        sleeps = [span for span in loop.sleeps if span[0] < closes]
        awake_ns = window_ns - sum(min(high, closes) - low for low, high in sleeps)
        lost_ns = sum(min(high, closes) - low for low, high in gaps)
        share = 1 - lost_ns / awake_ns
        seen = tuple(Gap(round(low - opens), high - low, "preempted") for low, high in gaps)
        slept_ns = tuple(Gap(round(low - opens), high - low, "slept") for low, high in sleeps)
        found.append(Loop(cpu, number, share, share, 15.0, seen, slept_ns))
    return found


def _joined(runs: Sequence[Span]) -> list[Span]:
    found: list[Span] = []
    for start, end in runs:
        if found and start - found[-1][1] < 1:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Who takes CPUs away: a task (on the first `on_cpus` of them), a budget, competitors.

    each: the budget is one of each loop (reservation); else all CPUs share it evenly (quota).
    """

    task: Task | None = None
    on_cpus: int = 1
    slice_ns: float = 0.0
    period_ns: float = 0.0
    each: bool = False
    weights: tuple[int, ...] = (100,)
    every_ns: float = 4e6

    def cpu(
        self, number: int, window: _Window, refill_ns: float, tick: Tick, rng: random.Random
    ) -> Cpu:
        """One CPU of a window; what happens goes on for as long as the longest gap after it."""
        until_ns = window.window_ns + 1.5e9
        spans: list[Span] = []
        if self.task is not None and number < self.on_cpus:
            spans = self.task.spans(until_ns, tick, rng)
        budgets = []
        if self.slice_ns and self.each:
            budgets = [
                Budget(self.slice_ns, self.period_ns, wakes=True, next_ns=rng.random() * refill_ns)
                for _ in range(window.processes)
            ]
        elif self.slice_ns:
            part = self.slice_ns / window.cpus
            budgets = [Budget(part, self.period_ns, wakes=False, next_ns=refill_ns)]
        sleep_ns = SLEEP_NS if window.kind == "sleeping" else 0
        return Cpu(
            until_ns, tick, window.processes, spans, budgets, self.weights, sleep_ns, BUSY_NS
        )


@dataclass(frozen=True, slots=True)
class _Window:
    kind: str
    window_ns: float
    cpus: int
    processes: int


SLEEP_NS, BUSY_NS = 233_000_000, 434_000_000
"""As the built-in plan has them."""


def looks(
    mechanism: Mechanism, rng: random.Random, *, cpus: int = 2, stretch: float = 1.0
) -> list[ObservationWindow]:
    """The four windows of the built-in plan, `stretch` times as long."""
    found = []
    for kind, length_ns in (("one", 2.5e9), ("all", 2.5e9), ("several", 1.5e9), ("sleeping", 2e9)):
        busy_cpus, processes = (cpus if kind == "all" else 1), (2 if kind == "several" else 1)
        window = _Window(kind, length_ns * stretch, busy_cpus, processes)
        tick = Tick(mechanism.every_ns, rng.random() * mechanism.every_ns)
        refill_ns = rng.random() * mechanism.period_ns
        loops: list[Loop] = []
        for number in range(busy_cpus):
            cpu = mechanism.cpu(number, window, refill_ns, tick, rng)
            strangers = noise(cpu.until_ns, rng)
            loops += observed(cpu.run(), number, window.window_ns, strangers)
        found.append(
            ObservationWindow(
                "t",
                kind,
                processes,
                round(window.window_ns),
                tuple(loops),
                SLEEP_NS if kind == "sleeping" else 0,
                machine_cpus=cpus,
            )
        )
    return found
