"""What scheduler inference says, in words for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from nephoscope.core.estimate_text import unbounded_text
from nephoscope.core.model import Estimate
from nephoscope.features.scheduler.inference.onset import Onsets
from nephoscope.features.scheduler.inference.replenishments import (
    EXACT_NS,
    Replenished,
    Replenishments,
)
from nephoscope.features.scheduler.inference.timing import LITTLE, Pattern, Timing
from nephoscope.features.scheduler.inference.verdict import Fit, ObservationWindow, Word, of_kind

NEEDED_WINDOWS = "one busy loop, and one on every CPU at once (run `nephoscope scheduler`)"

MOST_TURNS_NS = 1e8
"""A weight of 1 in 25 gives a slice of 4 ms in this time; cycles of turns are rarely longer."""

ENOUGH_NS = 1e9
"""Ten of the usual periods of 100 ms: fewer refills tell no period."""

NEXT = {
    Word.DEDICATED: "Repeat at another hour; an idle neighbour may be active then.",
    Word.RESERVATION_PER_CPU: "Plan with this share; it does not grow when neighbours are idle.",
    Word.CAP_PER_MACHINE: (
        "Run fewer busy threads or rent a larger instance; the cap applies to all CPUs together."
    ),
    Word.WEIGHT_ONLY: (
        "Repeat `nephoscope scheduler` at other hours; the share depends on the load of "
        "the neighbours."
    ),
    Word.SMT_SIBLING_SHARED: (
        "Count each of these CPUs as half a core; two of them are hardware threads of one core."
    ),
    Word.OWN_QUOTA: (
        "Raise the CPU quota of the cgroup (cpu.max, cpu.cfs_quota_us), which is under "
        "your control."
    ),
    Word.RESERVATION_OR_CAP: "Repeat on a machine with two CPUs, where reservation and cap differ.",
    Word.PERIODIC_TASK: (
        "Find the program that wakes at this period (`perf sched timehist`, real-time priorities "
        "in `ps -eo cls,rtprio,comm`), and move it to another CPU."
    ),
    Word.OTHER_PROGRAMS: (
        "Stop these programs, or wait until they end, and run `nephoscope scheduler` again."
    ),
    Word.STOPPED: (
        "Find the program that stops and continues these processes (cpulimit, a freezer control "
        "group, a debugger)."
    ),
}

AMBIGUOUS_ONSET = (
    "The gaps start and end with a timer, as those of a periodic task of higher priority; whether "
    "they come later after a sleep, as those of a reservation or cap do, could not be seen."
)

INEXACT = (
    "The gaps follow a rhythm, but neither their starts nor their ends do so as exactly as a timer."
)

AFTER_SLEEP = {
    Replenished.FIXED: "Refills continued at fixed times during sleeps, as with a quota or a cap.",
    Replenished.ON_WAKING: (
        "After a sleep, a new period started at the wake-up, as with a reservation."
    ),
}

DIFFERENT = "One busy loop lost its CPU in turns, another one at regular moments: two mechanisms."

_MOST_PROGRAMS = 5

_CYCLES = 14
"""Repetitions after which a period is certain, in spite of gaps that other programs make."""
_PART_OF_OBSERVATION = 2.5 / 8.5
"""Of the whole observation, that of one busy loop."""
_SHORTEST_SECOND_S, _LONGEST_SECOND_S = 60, 600


def next_step(word: Word, windows: Sequence[ObservationWindow], cycle_ns: float) -> str:
    """Returns what to do about a verdict; for *unclear*, the command that would decide."""
    if word is not Word.UNCLEAR:
        return NEXT[word]
    needed_s = _CYCLES * cycle_ns / 1e9 / _PART_OF_OBSERVATION
    seconds = min(_LONGEST_SECOND_S, max(_SHORTEST_SECOND_S, 10 * math.ceil(needed_s / 10)))
    if sum(window.window_ns for window in windows) >= 0.9e9 * seconds:
        return (
            "Repeat when no other program of the machine is busy: more time than this observation "
            "had would not decide."
        )
    return (
        f"Run `nephoscope scheduler --duration {seconds}s`: it sees at least {_CYCLES} cycles of "
        f"{ms(cycle_ns)}, and a policy shows in them."
    )


def excluded(
    windows: Sequence[ObservationWindow], cycle_ns: float, grid: Replenishments | None
) -> tuple[str, ...]:
    """The policies that what was seen rules out."""
    lost = max(1 - loop.share for window in windows for loop in window.loops)
    exclusions = (
        [f"Dedicated CPUs are excluded: a loop lost {percent(lost)}."] if lost >= LITTLE else []
    )
    if any(window.throttled_count == 0 for window in windows):
        exclusions.append("Not a CPU quota of its own: no throttling was counted.")
    causes = {gap.cause for window in windows for loop in window.loops for gap in loop.gaps}
    if causes & {"preempted", "throttled", "stolen"} and "stopped" not in causes:
        exclusions.append("Stopped processes are excluded: no loop gave up its CPU by itself.")
    if cycle_ns >= MOST_TURNS_NS:
        exclusions.append(
            f"Time sharing by weight alone is excluded: its cycles are shorter than {ms(cycle_ns)}."
        )
    if grid is None:
        exclusions.append(
            f"In {ms(max(window.window_ns for window in windows))} the gaps neither ended nor "
            "started on a regular grid often enough for a reservation, a cap or a periodic task."
        )
    return tuple(exclusions)


def percent(value: float) -> str:
    """'75.1 %'."""
    return f"{100 * value:.1f} %"


def ms(ns: float) -> str:
    """'40.0 ms'."""
    return f"{ns / 1e6:.3g} ms" if ns < 1e6 else f"{ns / 1e6:.1f} ms"


def _interval(estimate: Estimate, show: Callable[[float], str]) -> str:
    """'75.1 % (74.9 % to 75.3 %, n = 62)', '99 % (1 trial)'."""
    known = unbounded_text(estimate.n)
    if estimate.low is not None and estimate.high is not None:
        known = f"{show(estimate.low)} to {show(estimate.high)}, n = {estimate.n}"
    return f"{show(estimate.value)} ({known})"


def sentence(word: Word, fit: Fit, target: str) -> str:
    """The verdict as one sentence."""
    share = rule = ""
    if fit.share is not None:
        is_share = fit.share.unit == "ratio"
        share = _interval(fit.share, percent if is_share else lambda value: f"{value:.3f} CPUs")
    if fit.slice_ns is not None and fit.period_ns is not None:
        rule = f": {_interval(fit.slice_ns, ms)} in every {_interval(fit.period_ns, ms)}"
    texts = {
        Word.DEDICATED: f"The CPUs of {target} look dedicated: each busy loop obtained {share}.",
        Word.RESERVATION_PER_CPU: (
            f"Each CPU of {target} receives {share}, independent of the others{rule}."
        ),
        Word.CAP_PER_MACHINE: f"All CPUs of {target} together are capped at {share}{rule}.",
        Word.WEIGHT_ONLY: (
            f"{target} shares its CPUs by weight: each contended CPU gave {share}, depending on "
            "the load of the others."
        ),
        Word.SMT_SIBLING_SHARED: (
            f"The CPUs of {target} are never taken away, but they share cores: with all busy, "
            "each is much slower."
        ),
        Word.OWN_QUOTA: f"The cgroup quota limits {target} to {share}{rule}.",
        Word.RESERVATION_OR_CAP: (
            f"{target} receives {share}{rule}; reservation and cap cannot be distinguished from "
            "inside."
        ),
        Word.PERIODIC_TASK: (
            f"A periodic task of higher priority takes CPUs of {target} away and leaves "
            f"{share}{rule}; this is no limit of {target}."
        ),
        Word.OTHER_PROGRAMS: (
            f"Other programs of {target} take its CPUs, so that its scheduling policy cannot be "
            f"inferred while they run: busy loops obtained {share}."
        ),
        Word.STOPPED: (
            f"The programs of {target} are stopped and continued, as by SIGSTOP and SIGCONT or a "
            f"freezer, and receive {share}."
        ),
        Word.UNCLEAR: (
            f"The CPUs of {target} are taken away, but the gaps match no known scheduling policy."
        ),
    }
    return texts[word]


def pattern(timing: Timing) -> str:
    """Returns how one loop lost the CPU."""
    name = timing.loop.name
    lost = f"{name} lost {percent(timing.lost)}"
    grid = timing.replenishments
    if timing.pattern is Pattern.REPLENISHMENTS and grid is not None:
        how = "also at a timer tick" if timing.aligned else "by a separate timer"
        return (
            f"{lost}; {percent(grid.regular)} of that ended on a grid of {ms(grid.period_ns)} "
            f"({grid.n} refills), {how}."
        )
    if timing.pattern is Pattern.CLOCKED and grid is not None:
        return (
            f"{lost}; {percent(grid.regular)} of that started on a grid of {ms(grid.period_ns)} "
            f"({grid.n} gaps)."
        )
    if timing.pattern is Pattern.TURNS:
        return (
            f"{lost} in gaps of {ms(timing.gap_ns or 0)} after runs of {ms(timing.run_ns or 0)}: "
            "no longer than the time slice of a fair scheduler."
        )
    if timing.gap_ns is None:
        return f"{lost} in too few gaps to infer a policy."
    return (
        f"{lost} in gaps of {ms(timing.gap_ns)} after runs of {ms(timing.run_ns or 0)}, at "
        "irregular times."
    )


def onset(onsets: Onsets) -> tuple[str, ...]:
    """Why gaps follow a clock and no budget."""
    reasons = []
    if onsets.starts is not None:
        reasons.append(
            f"{percent(onsets.starts.exact)} of the lost time starts with a timer, to "
            f"{ms(EXACT_NS)}; a budget is used up at ticks of the kernel."
        )
    if onsets.ticks[0]:
        reasons.append(
            f"{onsets.ticks[0]} of {sum(onsets.ticks)} gaps of two processes on one CPU began off "
            "the ticks at which these take turns."
        )
    slept = onsets.slept
    if slept.on_time:
        reasons.append(
            f"{slept.on_time} of {slept.on_time + slept.delayed} gaps after sleeps came at their "
            "usual time, before a budget could be used up."
        )
    if slept.late:
        reasons.append(
            f"After {slept.late} of {slept.late + slept.at_once} sleeps that ended in such a gap "
            "the CPU came late; a budget would have waited."
        )
    return tuple(reasons)


def programs(windows: Iterable[ObservationWindow]) -> tuple[str, ...]:
    """The programs that used the CPUs, the busiest of all observations first."""
    used: dict[str, list[float]] = {}
    observations = list(windows)
    for window in observations:
        for name, cpus in window.programs:
            used.setdefault(name, []).append(cpus)
    means = {name: sum(own) / len(observations) for name, own in used.items()}
    busiest = sorted(means.items(), key=lambda mean: -mean[1])[:_MOST_PROGRAMS]
    named = ", ".join(f"{name} {cpus:.2f}" for name, cpus in busiest)
    lost = sum(window.lost_cpus for window in observations) / len(observations)
    return (
        f"CPUs used by programs of this system on average: {named}; the loops lost {lost:.2f}.",
    )


def gave_up(window: ObservationWindow) -> str:
    """The loops went to sleep, which they never do."""
    gaps = [gap for loop in window.loops for gap in loop.gaps]
    own = sum(gap.length_ns for gap in gaps if gap.cause == "stopped")
    count = sum(gap.cause == "stopped" for gap in gaps)
    lost = sum(gap.length_ns for gap in gaps)
    return (
        f"{percent(own / lost)} of the lost time is in {count} gaps in which the loops gave the "
        "CPU up, by the kernel's counters of voluntary switches: a busy loop does that only when "
        "it is stopped."
    )


def counters(window: ObservationWindow) -> str:
    """The own quota said so itself."""
    return (
        f"The cgroup was throttled {window.throttled_count} times in "
        f"{window.window_ns / 1000000000.0:g} s ({window.throttled_ratio or 0:.2f} CPUs on "
        "average), which covers most of the lost time."
    )


def accounted(windows: Sequence[ObservationWindow]) -> str:
    """Returns whether the machine's own kernel took the time."""
    loops = [
        (loop.share, loop.thread_cpu_ratio)
        for window in of_kind(windows, "one", "all")
        for loop in window.loops
        if loop.thread_cpu_ratio is not None and loop.share < 1 - LITTLE
    ]
    if not loops:
        return ""
    share = sum(share for share, _ in loops) / len(loops)
    own = sum(share for _, share in loops) / len(loops)
    if own > share + LITTLE:
        return (
            f"The local kernel accounts {percent(own)} to the loops, which obtained "
            f"{percent(share)}: the time was lost below the kernel."
        )
    return (
        f"The machine itself took the CPU, by other programs, a limit or its scheduling policy: "
        f"its kernel accounts {percent(own)} to the loops."
    )


def contradictions(word: Word, windows: Sequence[ObservationWindow]) -> tuple[str, ...]:
    """Returns what steal and pressure say against the word."""
    known = [window.steal_ratio for window in windows if window.steal_ratio is not None]
    if not known:
        return ()
    steal = max(known)
    lost = max(1 - loop.share for window in windows for loop in window.loops)
    contradicting = []
    if word in (Word.DEDICATED, Word.SMT_SIBLING_SHARED) and steal >= LITTLE:
        contradicting.append(
            f"Steal time is {percent(steal)}, but the loops lost at most {percent(lost)}: the "
            "hypervisor took time from other programs, or counts differently."
        )
    by_others = (Word.RESERVATION_PER_CPU, Word.CAP_PER_MACHINE, Word.WEIGHT_ONLY)
    if word in (*by_others, Word.RESERVATION_OR_CAP) and steal < 0.25 * lost:
        contradicting.append(
            f"Steal time is only {percent(steal)}, but the loops lost up to {percent(lost)}: "
            "either the hypervisor does not report it, or the local kernel took the CPU."
        )
    if word is Word.OWN_QUOTA and steal >= LITTLE:
        contradicting.append(
            f"In addition to the quota, the hypervisor took {percent(steal)} (steal time)."
        )
    return tuple(contradicting)


def missing(windows: Sequence[ObservationWindow], word: Word) -> tuple[str, ...]:
    "Missing observations that would add evidence."
    kinds = {window.kind for window in windows}
    cpus = max((window.machine_cpus or 0 for window in windows), default=0)
    reasons = []
    if "all" not in kinds and cpus != 1:
        reasons.append("one busy loop on every CPU at once")
    if "one" not in kinds:
        reasons.append("one busy loop alone")
    longest = max((window.window_ns for window in windows), default=0)
    if word is Word.UNCLEAR and longest < ENOUGH_NS:
        reasons.append(
            f"an observation of {ms(ENOUGH_NS)}, which periods of 100 ms need (the longest "
            f"lasted {ms(longest)})"
        )
    if word in (Word.RESERVATION_OR_CAP, Word.UNCLEAR) and "sleeping" not in kinds:
        reasons.append("a loop that sleeps now and then")
    return tuple(reasons)
