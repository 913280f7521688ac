"""From the looks at one target to a verdict: the rules, in their order.

1. *own quota*: the machine's own counters say that a control group's quota stopped the loops.
   *Stopped and continued*: the loops gave the CPU up themselves, as programs do that get SIGSTOP or
   are frozen, and in no other way while they only look at the clock.
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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nephoscope.scheduler.inference import onset, refills, sentences, shares, timing
from nephoscope.scheduler.inference.onset import Onset, Onsets
from nephoscope.scheduler.inference.refills import Refills
from nephoscope.scheduler.inference.timing import Pattern, Timing
from nephoscope.scheduler.inference.verdict import (
    Fit,
    Look,
    Loop,
    Obtained,
    Scheduler,
    Word,
    of_kind,
)

SLOWER = 1.25
"""Look cost with all CPUs busy over one alone from which a shared core is named. Clock rates drop
by up to a fifth when all cores are busy; two threads of a core take 1.3 to 2 times as long."""

_HALF_OF_LOSS = 0.5
_LEAST_STOPS, _LEAST_STOPPED = 5, 0.005
"""Stops and the time in them from which programs are stopped and continued: a page that has to be
read from disk stops a loop, too, but not in every second."""
_GRID_OF_TURNS = 0.8
_MINOR = 0.25
"""Of what a mechanism took, so much may other programs take without being a second one."""


@dataclass(frozen=True, slots=True)
class View:
    """A look with the pattern of each of its loops.

    minor: a loss below it that follows no timer is another program's, beside a mechanism that does.
    """

    look: Look
    loops: tuple[Timing, ...]

    minor: float = 0.0

    @property
    def lossy(self) -> tuple[Timing, ...]:
        """The loops that lost more than a little, and by no rule more than `minor`."""
        return tuple(
            one
            for one in self.loops
            if one.pattern is not Pattern.NONE
            and (one.pattern in (Pattern.REFILLS, Pattern.CLOCKED) or one.lost >= self.minor)
        )

    @property
    def share(self) -> float:
        """Mean share of its loops."""
        return float(np.mean([one.loop.share for one in self.loops]))

    def all_are(self, pattern: Pattern) -> bool:
        """Whether every loop that lost anything did so in this way, and one did."""
        return bool(self.lossy) and all(one.pattern is pattern for one in self.lossy)


def infer(target: str, looks: Iterable[Look]) -> Scheduler:
    """What schedules the CPUs of a target, from its looks.

    Never refuses: without anything to go by the word is *unclear*, and `missing` says what lacks.
    """
    mine = [look for look in looks if look.target == target and look.loops]
    busy = of_kind(mine, "one", "all")
    if not busy:
        found = Scheduler(target, Word.UNCLEAR, "There is no observation without sleep.")
        return replace(found, missing=(sentences.NEED_LOOKS,), looks=tuple(mine))
    longest = max(look.window_ns for look in busy)
    losing = refills.losing(busy)
    grid = refills.find([loop.gaps for loop in losing], longest)
    begun = onset.find(mine, busy, grid)
    one, every = (_chosen(mine, kind, losing, grid, begun) for kind in ("one", "all"))
    one, every = _without_minor(one, every)
    views = [view for view in (one, every) if view is not None]
    word, fit, evidence = _named(one, every, views, _slower(mine, every), begun)
    if word is Word.WEIGHT_ONLY and _differ(busy):
        word, evidence = Word.UNCLEAR, (*evidence, sentences.DIFFERENT)
    cycle_ns = max(_cycle_ns(view) for view in views)
    if word is Word.UNCLEAR:
        evidence = (*evidence, *sentences.excluded(busy, cycle_ns, grid))
    used = tuple(mine)
    return Scheduler(
        target=target,
        word=word,
        sentence=sentences.sentence(word, fit, target),
        per_cpu=tuple(_per_cpu(used)),
        fit=fit,
        evidence=(*evidence, *_further(used, word, fit)),
        contradictions=sentences.contradictions(word, [view.look for view in views]),
        missing=sentences.missing(used, word),
        next_step=sentences.next_step(word, used, cycle_ns),
        looks=used,
    )


def _chosen(
    looks: Sequence[Look],
    kind: str,
    losing: Sequence[Loop],
    grid: Refills | None,
    begun: Onsets,
) -> View | None:
    """The look of a kind to go by: of the longest ones the one with the median share.

    losing: the loops that `grid` and `begun` were found in; a few short gaps of others would lie on
    any grid.
    """
    found = of_kind(looks, kind)
    if not found:
        return None
    longest = max(look.window_ns for look in found)
    found = sorted(
        (look for look in found if look.window_ns == longest), key=lambda look: look.obtained_cpus
    )
    look = found[(len(found) - 1) // 2]
    starts = begun.starts if begun.onset is Onset.CLOCK else None
    loops = []
    for loop in look.loops:
        lost = any(loop is loser for loser in losing)
        timed = timing.of_loop(look, loop, grid if lost else None)
        loops.append(timing.clocked(timed, starts) if lost and starts is not None else timed)
    return View(look, tuple(loops))


def _differ(busy: Sequence[Look]) -> bool:
    """Whether observations of one kind show turns in one and a budget's grid in another."""
    patterns = [
        {timing.of_loop(look, loop).pattern for look in of_kind(busy, kind) for loop in look.loops}
        for kind in ("one", "all")
    ]
    return any({Pattern.TURNS, Pattern.REFILLS} <= seen for seen in patterns)


def _without_minor(one: View | None, every: View | None) -> tuple[View | None, View | None]:
    """Both with the loss that counts as other programs' beside a mechanism that follows a timer."""
    timed = (Pattern.REFILLS, Pattern.CLOCKED)
    known = [view for view in (one, every) if view is not None]
    lost = [loop.lost for view in known for loop in view.loops if loop.pattern in timed]
    minor = _MINOR * max(lost, default=0.0)
    alone, together = (
        None if view is None else replace(view, minor=minor) for view in (one, every)
    )
    return alone, together


Named = tuple[Word, Fit, tuple[str, ...]]


def _named(
    one: View | None,
    every: View | None,
    views: Sequence[View],
    slower: float | None,
    begun: Onsets,
) -> Named:
    lossy = [view for view in views if view.lossy]
    if stopped := [view for view in views if _stops(view)]:
        # Also where they cost little: a busy loop never gives its CPU up.
        lossy = lossy or stopped
    if not lossy:
        return _undisturbed(views, slower)
    if all(_throttled(view) for view in lossy):
        return _quota(lossy[-1])
    if all(_caused(view, "stopped") for view in lossy):
        return _stopped(lossy)
    if all(view.all_are(Pattern.TURNS) for view in lossy) and not _may_be_cap(one, every):
        return _turns(one, every, lossy)
    if all(view.all_are(Pattern.CLOCKED) for view in lossy) and begun.starts is not None:
        return _periodic(lossy, begun)
    said = tuple(sentences.pattern(one) for view in lossy for one in view.lossy)
    if all(view.all_are(Pattern.REFILLS) for view in lossy):
        if begun.onset is not Onset.UNKNOWN or not _by_own_kernel(lossy):
            return _budget(one, every)
        said = (*said, sentences.AMBIGUOUS_ONSET)
    return Word.UNCLEAR, Fit(shares.over_window(_loops(lossy[-1]), "cpus")), said


def _may_be_cap(one: View | None, every: View | None) -> bool:
    """Whether turns are on a grid, and only while all CPUs are busy.

    Virtual CPUs that share one of the host's do so, and a cap with gaps of a tick.
    """
    if one is None or every is None or one.lossy:
        return False
    return all(
        loop.refills is not None and loop.refills.regular >= _GRID_OF_TURNS for loop in every.lossy
    )


def _by_own_kernel(views: Sequence[View]) -> bool:
    """Whether the kernel itself accounts for what the loops lost.

    Its budgets are used up at ticks; a hypervisor may have a timer that ends them exactly.
    """
    loops = [one.loop for view in views for one in view.lossy]
    known = [loop for loop in loops if loop.thread_cpu_ratio is not None]
    return bool(known) and all(
        (loop.thread_cpu_ratio or 0.0) <= loop.share + timing.LITTLE for loop in known
    )


def _cycle_ns(view: View) -> float:
    """Usual time from main gap to main gap in nanoseconds; the window for fewer than two."""
    cycles = [
        float(b.start_ns - a.start_ns)
        for loop in view.look.loops
        for a, b in pairwise(refills.main_gaps(loop.gaps))
    ]
    return refills.median_by_time(np.array(cycles)) or float(view.look.window_ns)


def _loops(view: View) -> list[Loop]:
    return [one.loop for one in view.loops]


def _undisturbed(views: Sequence[View], slower: float | None) -> Named:
    values = [loop.loop.share for view in views for loop in view.loops]
    total = shares.over_window(_loops(views[-1]), "cpus")
    n = len(views[-1].loops)
    share = replace(
        total,
        value=total.value / n,
        low=None if total.low is None else total.low / n,
        high=None if total.high is None else total.high / n,
        unit="ratio",
    )
    said: tuple[str, ...] = (sentences.undisturbed(min(values), len(values)),)
    if slower is not None and slower >= SLOWER:
        return Word.SMT_SIBLING_SHARED, Fit(share), (*said, sentences.slower(slower))
    if slower is not None:
        said = (*said, sentences.as_fast(slower))
    return Word.DEDICATED, Fit(share), said


def _slower(looks: Sequence[Look], every: View | None) -> float | None:
    """Time of a look on a CPU with all CPUs busy, over the longest of it with that one alone.

    The longest of all looks that kept only one CPU busy: looks differ by themselves, with the clock
    rate and with what strangers do on the other thread of the core.
    """
    if every is None:
        return None
    alone: dict[int | None, float] = {}
    for look in of_kind(looks, "one", "several", "sleeping"):
        for loop in look.loops:
            if loop.look_cost_ns:
                alone[loop.cpu] = max(alone.get(loop.cpu, 0.0), loop.look_cost_ns)
    ratios = [
        one.loop.look_cost_ns / cost
        for one in every.loops
        if one.loop.look_cost_ns and (cost := alone.get(one.loop.cpu))
    ]
    return float(np.median(ratios)) if ratios else None


def _throttled(view: View) -> bool:
    """Whether most of what was lost was lost to the own quota, as the own counters say."""
    return bool(view.look.throttled_count) and _caused(view, "throttled")


def _stops(view: View) -> bool:
    """Whether its loops gave up their CPU again and again."""
    gaps = [gap for loop in view.look.loops for gap in refills.long_gaps(loop.gaps)]
    stops = [gap.length_ns for gap in gaps if gap.cause == "stopped"]
    lost = sum(stops) / view.look.window_ns / len(view.loops)
    return len(stops) >= _LEAST_STOPS and lost >= _LEAST_STOPPED


def _caused(view: View, cause: str) -> bool:
    """Whether most of what was lost in main gaps has this cause by the kernel's counters."""
    gaps = [gap for loop in view.look.loops for gap in refills.main_gaps(loop.gaps)]
    lost = sum(gap.length_ns for gap in gaps)
    own = sum(gap.length_ns for gap in gaps if gap.cause == cause)
    return own >= _HALF_OF_LOSS * lost > 0


def _stopped(lossy: Sequence[View]) -> Named:
    view = lossy[-1]
    loops = _loops(view)
    grid = _grid(view)
    share = shares.over_window(loops, "cpus")
    fit = Fit(share, None, shares.cycle_ns(loops)) if grid is None else shares.fit_of(share, grid)
    return Word.STOPPED, fit, (sentences.gave_up(view.look),)


def _periodic(lossy: Sequence[View], begun: Onsets) -> Named:
    """What is left beside a task that wakes by a timer: of the CPUs that it runs on."""
    values = [
        shares.apart([one.loop], one.refills)
        for view in lossy
        for one in view.lossy
        if one.refills is not None
    ]
    share = shares.share_of(np.concatenate(values), "ratio")
    patterns = tuple(sentences.pattern(one) for view in lossy for one in view.lossy)
    return (
        Word.PERIODIC_TASK,
        shares.fit_of(share, begun.starts),
        (*patterns, *sentences.onset(begun)),
    )


def _quota(view: View) -> Named:
    fit = _cap_fit([view])
    return Word.OWN_QUOTA, fit, (sentences.counters(view.look),)


def _turns(one: View | None, every: View | None, lossy: Sequence[View]) -> Named:
    view = lossy[-1]
    contended = [loop.loop for loop in view.lossy]
    total = shares.over_window(contended, "ratio")
    share = replace(
        total,
        value=total.value / len(contended),
        low=None if total.low is None else total.low / len(contended),
        high=None if total.high is None else total.high / len(contended),
    )
    said = [sentences.pattern(loop) for loop in view.lossy]
    if one is not None and every is not None and abs(one.share - every.share) > timing.LITTLE:
        said.append(sentences.moved(one.share, every.share))
    return Word.WEIGHT_ONLY, Fit(share, None, shares.cycle_ns(contended)), tuple(said)


def _budget(one: View | None, every: View | None) -> Named:
    """Refills: one word for each way in which one busy CPU and all of them compare."""
    views = [view for view in (one, every) if view is not None]
    said = tuple(sentences.pattern(loop) for view in views for loop in view.lossy)
    if one is None or every is None:
        view = views[-1]
        return _one_kind(view, said)
    alone, together = _obtained_in_periods(one), _obtained_in_periods(every)
    loops = len(every.loops)
    compared = sentences.compared(alone, together, loops)
    if not one.lossy:
        # One CPU has all of itself and all of them have less: only their sum can be limited.
        if _share_refills(every):
            return Word.CAP_PER_MACHINE, _cap_fit([every]), (*said, compared)
        return Word.UNCLEAR, Fit(), (*said, compared)
    # 1 for a cap, as many as there are loops for a reservation of each.
    times = together / alone
    if times >= 1 + 0.75 * (loops - 1):
        return Word.RESERVATION_PER_CPU, _reservation_fit(views), (*said, compared)
    if times <= 1 + 0.25 * (loops - 1):
        return Word.CAP_PER_MACHINE, _cap_fit(views), (*said, compared)
    return Word.UNCLEAR, Fit(), (*said, compared)


def _obtained_in_periods(view: View) -> float:
    """CPUs that all loops had, over whole periods where those are known."""
    return sum(
        float(np.mean(values))
        if one.refills is not None
        and one in view.lossy
        and (values := shares.apart([one.loop], one.refills)).size
        else one.loop.share
        for one in view.loops
    )


def _share_refills(view: View) -> bool:
    """Whether every loop lost the CPU, those that lost little at the refills of the others."""
    found = [one.refills for one in view.lossy if one.refills is not None]
    grid = max(found, key=lambda refills: refills.n, default=None)
    origin = grid.origins_ns[0] if grid is not None else None
    return all(
        one in view.lossy
        or (
            grid is not None
            and origin is not None
            and refills.ended_on(one.loop.gaps, grid, origin) >= _HALF_OF_LOSS
        )
        for one in view.loops
    )


def _one_kind(view: View, said: tuple[str, ...]) -> Named:
    if len(view.loops) == 1:
        return Word.RESERVATION_OR_CAP, _reservation_fit([view]), said
    # Loops that one budget stops are started again at one moment; reservations run apart.
    grid = _grid(view)
    said = (*said, sentences.apart(grid)) if grid is not None else said
    return Word.RESERVATION_OR_CAP, _cap_fit([view]), said


def _grid(view: View) -> Refills | None:
    """The common period of all loops of a look."""
    found = refills.find([loop.gaps for loop in view.look.loops], view.look.window_ns)
    if found is not None:
        return found
    known = [one.refills for one in view.loops]
    grid = max((one for one in known if one), key=lambda one: one.n, default=None)
    if grid is None:
        return None
    origins = tuple(None if one is None else one.origins_ns[0] for one in known)
    return replace(grid, origins_ns=origins)


def _cap_fit(views: Sequence[View]) -> Fit:
    """Budget of the whole machine: what all loops of each look had together, period by period."""
    values, grid = [], None
    for view in views:
        if (found := _grid(view)) is not None:
            values.append(shares.together(view.look, found))
            if grid is None or found.n >= grid.n:
                grid = found
    if grid is None:
        return Fit(shares.over_window(_loops(views[-1]), "cpus"))
    return shares.fit_of(shares.share_of(np.concatenate(values), "cpus"), grid)


def _reservation_fit(views: Sequence[View]) -> Fit:
    """Budget of each CPU: what each loop had in each of its own periods, all in one."""
    values, grid = [], None
    for view in views:
        if (found := _grid(view)) is not None:
            values.append(shares.apart(view.look.loops, found))
            if grid is None or found.n >= grid.n:
                grid = found
    if grid is None:
        return Fit()
    return shares.fit_of(shares.share_of(np.concatenate(values), "ratio"), grid)


def _further(looks: Sequence[Look], word: Word, fit: Fit) -> tuple[str, ...]:
    """What the looks with several processes and with sleep add."""
    said = []
    for look in of_kind(looks, "several")[:1]:
        if word not in (Word.UNCLEAR, Word.RESERVATION_PER_CPU) and look.loops[0].cpu is not None:
            said.append(sentences.several(look))
    if word in (Word.RESERVATION_PER_CPU, Word.CAP_PER_MACHINE, Word.RESERVATION_OR_CAP):
        for look in of_kind(looks, "sleeping")[:1]:
            said += [sentences.after_sleep(found)] if (found := refills.refilled(look, fit)) else []
    if (own := sentences.accounted(looks)) and word not in (Word.DEDICATED, Word.UNCLEAR):
        said.append(own)
    return tuple(said)


def _per_cpu(looks: Sequence[Look]) -> Iterable[Obtained]:
    """What each CPU gave in each kind of look, the first look of each kind."""
    for kind in ("one", "all", "several", "sleeping"):
        for look in of_kind(looks, kind)[:1]:
            for cpu in dict.fromkeys(loop.cpu for loop in look.loops):
                loops = [loop for loop in look.loops if loop.cpu == cpu]
                total = shares.over_window(loops, "cpus")
                each = tuple(loop.share for loop in loops)
                yield Obtained(kind, cpu, len(loops), each, total)
