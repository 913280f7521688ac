"""From the windows at one target to a verdict: the rules, in their order.

1. *own quota*: the machine's own counters say that a control group's quota stopped the loops.
   *Stopped and continued*: the loops gave the CPU up themselves, as programs do that get SIGSTOP or
   are frozen, and in no other way while they only look at the clock.
   *Other programs*: programs of the same system used the lost time, by their own CPU times.
2. *dedicated*: nothing worth a name was lost; *SMT sibling shared* if a look at the clock then
   takes much longer while all CPUs are busy.
3. *weight only*: the CPU is lost in turns of a scheduler's slice.
4. *periodic task*: the CPU is taken away by a timer, whatever the loops used (see `onset`).
5. The CPU is given back at regular moments, so there is a budget. *Reservation per CPU* if each
   CPU has as much alone as with all busy; *cap per machine* if all together have no more than one
   alone, or less than all of their CPUs where one alone has all of its own. With one CPU there is
   no telling: *reservation or cap*.
6. *unclear*, with what is excluded and what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from nephoscope.features.scheduler.inference import (
    observation,
    onset,
    replenishments,
    sentences,
    shares,
    timing,
)
from nephoscope.features.scheduler.inference.observation import View
from nephoscope.features.scheduler.inference.onset import Onset, Onsets
from nephoscope.features.scheduler.inference.replenishments import Replenishments
from nephoscope.features.scheduler.inference.sentences import percent
from nephoscope.features.scheduler.inference.timing import Pattern
from nephoscope.features.scheduler.inference.verdict import (
    Fit,
    ObservationWindow,
    Obtained,
    Scheduler,
    Word,
    of_kind,
)
from nephoscope.stats.statistics.values import Array

SLOWER = 1.25
"""Cost of a clock read with all CPUs busy over one alone from which a shared core is named. Clock
rates drop by up to a fifth when all cores are busy; two
threads of a core take 1.3 to 2 times as long."""


def infer(target: str, windows: Iterable[ObservationWindow]) -> Scheduler:
    """Returns what schedules the CPUs of a target, from its windows.

    Never refuses: without anything to go by the word is *unclear*, and `missing` says what lacks.
    """
    own = [window for window in windows if window.target == target and window.loops]
    busy = of_kind(own, "one", "all")
    if not busy:
        unclear = Scheduler(target, Word.UNCLEAR, "There is no observation without sleep.")
        return replace(unclear, missing=(sentences.NEEDED_WINDOWS,), windows=tuple(own))
    longest = max(window.window_ns for window in busy)
    losing = replenishments.losing(busy)
    grid = replenishments.find([loop.gaps for loop in losing], longest)
    begun = onset.find(own, busy, grid)
    single, every = (
        observation.view_of_kind(own, kind, losing, grid, begun) for kind in ("one", "all")
    )
    single, every = observation.without_minor(single, every)
    views = [view for view in (single, every) if view is not None]
    word, fit, evidence = _named(
        single, every, views, observation.clock_read_slowdown(own, every), begun
    )
    if word is Word.WEIGHT_ONLY and observation.observations_differ(busy):
        word, evidence = Word.UNCLEAR, (*evidence, sentences.DIFFERENT)
    cycle_ns = max(observation.cycle_ns(view) for view in views)
    if word is Word.UNCLEAR:
        evidence = (*evidence, *sentences.excluded(busy, cycle_ns, grid))
    used = tuple(own)
    return Scheduler(
        target=target,
        word=word,
        sentence=sentences.sentence(word, fit, target),
        per_cpu=tuple(_per_cpu(used)),
        fit=fit,
        evidence=(*evidence, *_further(used, word, fit)),
        contradictions=sentences.contradictions(word, [view.window for view in views]),
        missing=sentences.missing(used, word),
        next_step=sentences.next_step(word, used, cycle_ns),
        windows=used,
    )


Named = tuple[Word, Fit, tuple[str, ...]]


def _named(
    single: View | None,
    every: View | None,
    views: Sequence[View],
    slower: float | None,
    begun: Onsets,
) -> Named:
    lossy = [view for view in views if view.lossy]
    if stopped := [view for view in views if observation.is_stopped_often(view)]:
        # Also where they cost little: a busy loop never gives its CPU up.
        lossy = lossy or stopped
    if not lossy:
        return _undisturbed(views, slower)
    if all(
        view.window.throttled_count and observation.is_caused_by(view, "throttled")
        for view in lossy
    ):
        return Word.OWN_QUOTA, _cap_fit(lossy[-1:]), (sentences.counters(lossy[-1].window),)
    if all(observation.is_caused_by(view, "stopped") for view in lossy):
        return _stopped(lossy)
    is_clocked = all(view.all_are(Pattern.CLOCKED) for view in lossy) and begun.starts is not None
    if not is_clocked and all(observation.is_caused_by_programs(view) for view in lossy):
        share = shares.over_window(observation.loops_of(lossy[-1]), "cpus")
        return Word.OTHER_PROGRAMS, Fit(share), sentences.programs(view.window for view in lossy)
    if all(view.all_are(Pattern.TURNS) for view in lossy) and not observation.may_be_cap(
        single, every
    ):
        return _turns(single, every, lossy)
    if is_clocked:
        return _periodic(lossy, begun)
    pattern_texts = tuple(sentences.pattern(single) for view in lossy for single in view.lossy)
    if all(view.all_are(Pattern.REPLENISHMENTS) for view in lossy):
        if begun.onset is not Onset.UNKNOWN or not observation.lost_by_own_kernel(lossy):
            return _budget(single, every)
        ambiguous = sentences.INEXACT if begun.starts is None else sentences.AMBIGUOUS_ONSET
        pattern_texts = (*pattern_texts, ambiguous)
    return (
        Word.UNCLEAR,
        Fit(shares.over_window(observation.loops_of(lossy[-1]), "cpus")),
        pattern_texts,
    )


def _undisturbed(views: Sequence[View], slower: float | None) -> Named:
    values = [loop.loop.share for view in views for loop in view.loops]
    share = shares.mean_over_window(observation.loops_of(views[-1]))
    lowest = (
        f"The minimum of {len(values)} busy loops was {percent(min(values))} of a CPU, without "
        "notable gaps."
    )
    if slower is None:
        return Word.DEDICATED, Fit(share), (lowest,)
    reads = f"A clock read takes {slower:.2f} times as long while all CPUs are busy"
    if slower < SLOWER:
        return Word.DEDICATED, Fit(share), (lowest, f"{reads}.")
    shared = f"{reads}, without gaps: the CPUs share the units of a core."
    return Word.SMT_SIBLING_SHARED, Fit(share), (lowest, shared)


def _stopped(lossy: Sequence[View]) -> Named:
    view = lossy[-1]
    loops = observation.loops_of(view)
    grid = observation.common_replenishments(view)
    share = shares.over_window(loops, "cpus")
    fit = Fit(share, None, shares.cycle_ns(loops)) if grid is None else shares.fit_of(share, grid)
    return Word.STOPPED, fit, (sentences.gave_up(view.window),)


def _periodic(lossy: Sequence[View], begun: Onsets) -> Named:
    """Returns what is left beside a task that wakes by a timer: of the CPUs that it runs on."""
    values = [
        shares.apart([loop_timing.loop], loop_timing.replenishments)
        for view in lossy
        for loop_timing in view.lossy
        if loop_timing.replenishments is not None
    ]
    share = shares.share_of(np.concatenate(values), "ratio")
    patterns = tuple(sentences.pattern(loop_timing) for view in lossy for loop_timing in view.lossy)
    return (
        Word.PERIODIC_TASK,
        shares.fit_of(share, begun.starts),
        (*patterns, *sentences.onset(begun)),
    )


def _turns(single: View | None, every: View | None, lossy: Sequence[View]) -> Named:
    view = lossy[-1]
    contended = [loop.loop for loop in view.lossy]
    evidence = [sentences.pattern(loop) for loop in view.lossy]
    if single is not None and every is not None and abs(single.share - every.share) > timing.LITTLE:
        evidence.append(
            f"One busy CPU obtained {percent(single.share)}, all at once {percent(every.share)} "
            "each: the share depends on the load."
        )
    fit = Fit(shares.mean_over_window(contended), None, shares.cycle_ns(contended))
    return Word.WEIGHT_ONLY, fit, tuple(evidence)


def _budget(single: View | None, every: View | None) -> Named:
    """Refills: one word for each way in which one busy CPU and all of them compare."""
    views = [view for view in (single, every) if view is not None]
    evidence = tuple(sentences.pattern(loop) for view in views for loop in view.lossy)
    if single is None or every is None:
        return _one_kind(views[-1], evidence)
    alone, together = (
        observation.obtained_in_periods_cpus(single),
        observation.obtained_in_periods_cpus(every),
    )
    loops = len(every.loops)
    compared = (
        f"One busy CPU obtained {percent(alone)}; {loops} at once obtained {together:.3f} "
        f"CPUs in total, {percent(together / loops)} each."
    )
    if not single.lossy:
        # One CPU has all of itself and all of them have less: only their sum can be limited.
        if observation.all_share_replenishments(every):
            return Word.CAP_PER_MACHINE, _cap_fit([every]), (*evidence, compared)
        return Word.UNCLEAR, Fit(), (*evidence, compared)
    # 1 for a cap, as many as there are loops for a reservation of each.
    times = together / alone
    if times >= 1 + 0.75 * (loops - 1):
        return Word.RESERVATION_PER_CPU, _reservation_fit(views), (*evidence, compared)
    if times <= 1 + 0.25 * (loops - 1):
        return Word.CAP_PER_MACHINE, _cap_fit(views), (*evidence, compared)
    return Word.UNCLEAR, Fit(), (*evidence, compared)


def _one_kind(view: View, pattern_texts: tuple[str, ...]) -> Named:
    if len(view.loops) == 1:
        return Word.RESERVATION_OR_CAP, _reservation_fit([view]), pattern_texts
    # Loops that one budget stops are started again at one moment; reservations run apart.
    grid = observation.common_replenishments(view)
    if grid is not None:
        pattern_texts = (
            *pattern_texts,
            f"The loops were refilled {sentences.ms(grid.apart_ns)} apart.",
        )
    return Word.RESERVATION_OR_CAP, _cap_fit([view]), pattern_texts


def _cap_fit(views: Sequence[View]) -> Fit:
    """Budget of the whole machine: what all loops of each window had together, period by period."""
    fit = _fit_of_periods(views, shares.together, "cpus")
    return fit or Fit(shares.over_window(observation.loops_of(views[-1]), "cpus"))


def _reservation_fit(views: Sequence[View]) -> Fit:
    """Budget of each CPU: what each loop had in each of its own periods, all in one."""
    return (
        _fit_of_periods(views, lambda window, grid: shares.apart(window.loops, grid), "ratio")
        or Fit()
    )


def _fit_of_periods(
    views: Sequence[View], obtained: Callable[[ObservationWindow, Replenishments], Array], unit: str
) -> Fit | None:
    """Returns the fit of what loops obtained in each period; None where no view has a grid."""
    grids = [
        (view.window, grid) for view in views if (grid := observation.common_replenishments(view))
    ]
    if not grids:
        return None
    values = np.concatenate([obtained(window, grid) for window, grid in grids])
    # Of several with the most moments of refill the last one.
    _, longest = max(reversed(grids), key=lambda pair: pair[1].n)
    return shares.fit_of(shares.share_of(values, unit), longest)


def _further(windows: Sequence[ObservationWindow], word: Word, fit: Fit) -> tuple[str, ...]:
    """Returns what the windows with several processes and with sleep add."""
    evidence = []
    for window in of_kind(windows, "several")[:1]:
        if word not in (Word.UNCLEAR, Word.RESERVATION_PER_CPU) and window.loops[0].cpu is not None:
            each = ", ".join(percent(loop.share) for loop in window.loops)
            evidence.append(
                f"{window.processes} processes on one CPU obtained {each}: "
                f"{percent(window.obtained_cpus)} in total."
            )
    if word in (Word.RESERVATION_PER_CPU, Word.CAP_PER_MACHINE, Word.RESERVATION_OR_CAP):
        for window in of_kind(windows, "sleeping")[:1]:
            if (refill := replenishments.replenished(window, fit)) is not None:
                evidence.append(sentences.AFTER_SLEEP[refill])
    if (own := sentences.accounted(windows)) and word not in (Word.DEDICATED, Word.UNCLEAR):
        evidence.append(own)
    return tuple(evidence)


def _per_cpu(windows: Sequence[ObservationWindow]) -> Iterable[Obtained]:
    """Yields what each CPU gave in each kind of window, the first window of each kind."""
    for kind in ("one", "all", "several", "sleeping"):
        for window in of_kind(windows, kind)[:1]:
            for cpu in dict.fromkeys(loop.cpu for loop in window.loops):
                loops = [loop for loop in window.loops if loop.cpu == cpu]
                total = shares.over_window(loops, "cpus")
                each = tuple(loop.share for loop in loops)
                yield Obtained(kind, cpu, len(loops), each, total)
