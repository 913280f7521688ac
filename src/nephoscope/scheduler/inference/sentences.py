"""What scheduler inference says, in words for people."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.model import Estimate
from nephoscope.scheduler.inference.refills import Refilled, Refills
from nephoscope.scheduler.inference.timing import LITTLE, Pattern, Timing
from nephoscope.scheduler.inference.verdict import Fit, Look, Word, of_kind

NEED_LOOKS = "One busy loop alone and one on every CPU at once: `nephoscope scheduler`."

ENOUGH_NS = 1e9
"""Ten of the usual periods of 100 ms: fewer refills tell no period."""

NEXT = {
    Word.DEDICATED: "Look again at another hour: a neighbour who slept may be awake then.",
    Word.RESERVATION_PER_CPU: "Count on this share of each CPU, no more: it does not grow when "
    "neighbours are idle.",
    Word.CAP_PER_MACHINE: "Run fewer busy threads, or buy a larger instance: all CPUs together get "
    "no more than this.",
    Word.WEIGHT_ONLY: "Measure again at other hours: the share moves with the neighbours' load. "
    "`nephoscope scheduler` shows by how much.",
    Word.SMT_SIBLING_SHARED: "Count these CPUs as half: two of them are threads of one core.",
    Word.OWN_QUOTA: "Raise the quota of the control group (cpu.max, cpu.cfs_quota_us): it is on "
    "your own side.",
    Word.RESERVATION_OR_CAP: "Look at a machine with two CPUs of this kind: there the two differ.",
    Word.UNCLEAR: "Look again when nothing else runs on this machine, or for longer.",
}


def percent(value: float) -> str:
    """'75.1 %'."""
    return f"{100 * value:.1f} %"


def ms(ns: float) -> str:
    """'40.0 ms'."""
    return f"{ns / 1e6:.3g} ms" if ns < 1e6 else f"{ns / 1e6:.1f} ms"


def interval(found: Estimate, text: str, low: str, high: str) -> str:
    """'75.1 % (74.9 % to 75.3 %, n = 62)'."""
    if found.low is None or found.high is None:
        return f"{text} (no interval, n = {found.n})"
    return f"{text} ({low} to {high}, n = {found.n})"


def share_text(found: Estimate) -> str:
    """A share or a number of CPUs with its interval."""
    show = percent if found.unit == "ratio" else lambda value: f"{value:.3f} CPUs"
    low = "" if found.low is None else show(found.low)
    high = "" if found.high is None else show(found.high)
    return interval(found, show(found.value), low, high)


def time_text(found: Estimate) -> str:
    """A time with its interval."""
    low = "" if found.low is None else ms(found.low)
    high = "" if found.high is None else ms(found.high)
    return interval(found, ms(found.value), low, high)


def sentence(word: Word, fit: Fit, target: str) -> str:
    """The verdict as one sentence."""
    share = "" if fit.share is None else share_text(fit.share)
    rule = ""
    if fit.slice_ns is not None and fit.period_ns is not None:
        rule = f": {time_text(fit.slice_ns)} in every {time_text(fit.period_ns)}"
    texts = {
        Word.DEDICATED: f"{target} has its CPUs for itself: each busy loop had {share}.",
        Word.RESERVATION_PER_CPU: f"Each CPU of {target} is given {share}, whatever the others "
        f"do{rule}.",
        Word.CAP_PER_MACHINE: f"All CPUs of {target} together are capped at {share}{rule}.",
        Word.WEIGHT_ONLY: f"{target} takes turns with others: each contended CPU gave {share}, and "
        "that moves with their load.",
        Word.SMT_SIBLING_SHARED: f"Nothing takes the CPUs of {target} away, but they share cores: "
        "with all busy each is much slower.",
        Word.OWN_QUOTA: f"The own control group's quota holds {target} to {share}{rule}.",
        Word.RESERVATION_OR_CAP: f"{target} is given {share}{rule}; whether that is a reservation "
        "or a cap, nothing inside can tell.",
        Word.UNCLEAR: f"What takes the CPUs of {target} away follows no rule that is known here.",
    }
    return texts[word]


def pattern(one: Timing) -> str:
    """How one loop lost the CPU."""
    name = one.loop.name
    lost = f"{name} lost {percent(one.lost)}"
    if one.pattern is Pattern.REFILLS and one.refills is not None:
        grid = one.refills
        how = "at a tick, too" if one.aligned else "by a timer of its own"
        return (
            f"{lost}; {percent(grid.regular)} of that ended on a grid of {ms(grid.period_ns)} "
            f"({grid.n} refills), {how}."
        )
    if one.pattern is Pattern.TURNS:
        return (
            f"{lost} in turns of {ms(one.gap_ns or 0)} after runs of {ms(one.run_ns or 0)}: no "
            "longer than a scheduler's slice."
        )
    if one.gap_ns is None:
        return f"{lost} in too few gaps to see a rule."
    return (
        f"{lost} in gaps of {ms(one.gap_ns)} after runs of {ms(one.run_ns or 0)}, at no regular "
        "moments."
    )


def undisturbed(least: float, loops: int) -> str:
    """Nothing was lost."""
    return f"The least of {loops} busy loops had {percent(least)} of its CPU; no gaps worth a name."


def slower(ratio: float) -> str:
    """The core is shared."""
    return (
        f"A look at the clock takes {ratio:.2f} times as long while all CPUs are busy, and no time "
        "is missing: the CPUs share the units of a core."
    )


def as_fast(ratio: float) -> str:
    """The core is not shared."""
    return f"A look at the clock takes {ratio:.2f} times as long while all CPUs are busy."


def counters(look: Look) -> str:
    """The own quota said so itself."""
    return (
        f"The own control group counted {look.throttled_count} stops in "
        f"{look.window_ns / 1e9:g} s, {look.throttled_ratio or 0:.2f} CPUs all the time; most of "
        "what the loops lost fell on them."
    )


def moved(alone: float, together: float) -> str:
    """The share depends on who runs where."""
    return f"One busy CPU had {percent(alone)}, all at once {percent(together)} each: it moves."


def compared(alone: float, together: float, loops: int) -> str:
    """One CPU against all."""
    return (
        f"One busy CPU had {percent(alone)}; {loops} at once had {together:.3f} CPUs together, "
        f"{percent(together / loops)} each."
    )


def apart(grid: Refills) -> str:
    """Whether loops are refilled at one moment."""
    return f"The loops were refilled {ms(grid.apart_ns)} apart."


def several(look: Look) -> str:
    """Several processes on one CPU."""
    each = ", ".join(percent(loop.share) for loop in look.loops)
    return (
        f"{look.processes} processes on one CPU had {each}: {percent(look.obtained_cpus)} together."
    )


def after_sleep(found: Refilled) -> str:
    """What a sleep does to the refills."""
    if found is Refilled.FIXED:
        return "Refills went on at fixed moments through sleeps, as those of a quota or a cap do."
    return "After a sleep a new period began with the wake-up, as that of a reservation does."


def accounted(looks: Sequence[Look]) -> str:
    """Whether the machine's own kernel took the time."""
    loops = [
        (loop.share, loop.thread_cpu_ratio)
        for look in of_kind(looks, "one", "all")
        for loop in look.loops
        if loop.thread_cpu_ratio is not None and loop.share < 1 - LITTLE
    ]
    if not loops:
        return ""
    share = sum(one for one, _ in loops) / len(loops)
    own = sum(one for _, one in loops) / len(loops)
    if own > share + LITTLE:
        return (
            f"This kernel believes to have given the loops {percent(own)} where they had "
            f"{percent(share)}: the time went missing below it."
        )
    return (
        f"This kernel itself accounts the loops with {percent(own)}: it knows that they did not "
        "run (a limit, a scheduling policy or other programs on this very machine)."
    )


def contradictions(word: Word, looks: Sequence[Look]) -> tuple[str, ...]:
    """What steal and pressure say against the word."""
    known = [look.steal_ratio for look in looks if look.steal_ratio is not None]
    if not known:
        return ()
    steal = max(known)
    lost = max(1 - loop.share for look in looks for loop in look.loops)
    said = []
    if word in (Word.DEDICATED, Word.SMT_SIBLING_SHARED) and steal >= LITTLE:
        said.append(
            f"Steal counts {percent(steal)}, and the loops lost no more than {percent(lost)}: the "
            "hypervisor took time from something else than these loops, or counts otherwise."
        )
    by_others = (Word.RESERVATION_PER_CPU, Word.CAP_PER_MACHINE, Word.WEIGHT_ONLY)
    if word in (*by_others, Word.RESERVATION_OR_CAP) and steal < 0.25 * lost:
        said.append(
            f"Steal counts only {percent(steal)} where the loops lost up to {percent(lost)}: "
            "either this hypervisor does not tell, or it was this machine's own kernel that took "
            "the CPU."
        )
    if word is Word.OWN_QUOTA and steal >= LITTLE:
        said.append(
            f"Beside the quota the hypervisor took {percent(steal)} (steal): the quota is not all."
        )
    return tuple(said)


def missing(looks: Sequence[Look], word: Word) -> tuple[str, ...]:
    "Missing observations that would add evidence."
    kinds = {look.kind for look in looks}
    cpus = max((look.machine_cpus or 0 for look in looks), default=0)
    said = []
    if "all" not in kinds and cpus != 1:
        said.append("One busy loop on every CPU at once was not looked at.")
    if "one" not in kinds:
        said.append("One busy loop alone was not looked at.")
    longest = max((look.window_ns for look in looks), default=0)
    if word is Word.UNCLEAR and longest < ENOUGH_NS:
        said.append(
            f"The longest look lasted {ms(longest)}: periods of 100 ms need {ms(ENOUGH_NS)}."
        )
    if word in (Word.RESERVATION_OR_CAP, Word.UNCLEAR) and "sleeping" not in kinds:
        said.append("A loop that sleeps now and then was not looked at.")
    return tuple(said)
