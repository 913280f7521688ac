"""Schedulers whose every gap is computed here: what the picture is held to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nephoscope.core.model import Estimate
from nephoscope.features.scheduler.inference.verdict import (
    Fit,
    Gap,
    Loop,
    ObservationWindow,
    Obtained,
    Scheduler,
    Word,
)

MS = 1e6
WINDOW_NS = 1_200_000_000


def estimate(value: float, unit: str, spread: float = 0.01) -> Estimate:
    low, high = value * (1 - spread), value * (1 + spread)
    return Estimate(value, low, high, 0.95, 10, unit, "median of looks, made")


def cut(slice_ms: float, period_ms: float, offset_ms: float, cause: str) -> tuple[Gap, ...]:
    """Gaps of a loop that runs `slice_ms` in each period, the first from `offset_ms` on."""
    length = (period_ms - slice_ms) * MS
    starts = range(round(offset_ms * MS), WINDOW_NS, round(period_ms * MS))
    # An interrupt in the middle of each run: too short to be a scheduler's doing.
    middles = [round(at - slice_ms * MS / 2) for at in starts]
    short = [Gap(at, 2e5, "unexplained") for at in middles if at >= 0]
    long = [Gap(at, length, cause) for at in starts]
    return tuple(sorted([*short, *long], key=lambda gap: gap.start_ns))


def loop(cpu: int | None, gaps: Sequence[Gap], process: int = 0) -> Loop:
    lost = sum(min(gap.end_ns, WINDOW_NS) - gap.start_ns for gap in gaps)
    return Loop(cpu, process, 1 - lost / WINDOW_NS, gaps=tuple(gaps))


def looks(
    gaps_of: Callable[[int, int, int], Sequence[Gap]], target: str
) -> tuple[ObservationWindow, ...]:
    """Three rounds of one busy CPU and of two; gaps_of: (busy CPUs, CPU, round)."""
    return tuple(
        ObservationWindow(
            target,
            f"r{number}-{busy}",
            1,
            WINDOW_NS,
            tuple(loop(cpu, gaps_of(busy, cpu, number)) for cpu in range(busy)),
        )
        for number in range(3)
        for busy in (1, 2)
    )


def reservation(target: str = "sedf") -> Scheduler:
    """Each of two CPUs has 30 of 40 ms, whatever the other does."""

    def gaps(busy: int, cpu: int, number: int) -> Sequence[Gap]:
        del busy
        return cut(30, 40, 5 + 7 * number + 13 * cpu, "preempted")

    return Scheduler(
        target,
        Word.RESERVATION_PER_CPU,
        "each CPU has 30.0 ms in 40.0 ms, alone or together.",
        (
            Obtained("one", 0, 1, (0.75,), estimate(0.75, "cpus")),
            Obtained("all", 0, 1, (0.75,), estimate(0.75, "cpus")),
            Obtained("all", 1, 1, (0.75,), estimate(0.75, "cpus")),
        ),
        Fit(estimate(0.75, "ratio"), estimate(30 * MS, "ns"), estimate(40 * MS, "ns")),
        ("One busy CPU has 75.0 %, two have 75.0 % each.", "Gaps are exact, not of whole ticks."),
        ("Steal rose by 3 % meanwhile, and a reservation takes nothing from others.",),
        ("behaviour after sleeping",),
        "Run `nephoscope scheduler`.",
        windows=looks(gaps, target),
    )


def cap(target: str = "credit") -> Scheduler:
    """One busy CPU has all, two share 150 %: 180 of 240 ms each."""

    def gaps(busy: int, cpu: int, number: int) -> Sequence[Gap]:
        del cpu
        return cut(180, 240, 20 + 31 * number, "unexplained") if busy == 2 else ()

    return Scheduler(
        target,
        Word.CAP_PER_MACHINE,
        "the machine has 1.50 CPUs in 240 ms, however many are busy.",
        (
            Obtained("one", 0, 1, (1.0,), estimate(1.0, "cpus", 0.001)),
            Obtained("all", 0, 1, (0.75,), estimate(0.75, "cpus")),
            Obtained("all", 1, 1, (0.75,), estimate(0.75, "cpus")),
        ),
        Fit(estimate(1.5, "cpus"), estimate(360 * MS, "ns"), estimate(240 * MS, "ns")),
        ("One busy CPU has 100 %, two have 75.0 % each.",),
        windows=looks(gaps, target),
    )


def unclear(target: str = "hidden") -> Scheduler:
    """Nothing was seen."""
    return Scheduler(
        target,
        Word.UNCLEAR,
        "one look at one CPU does not tell.",
        missing=("all CPUs busy",),
        next_step="Run `nephoscope scheduler`.",
    )
