"""From the looks at one target to a verdict: the rules, in their order.

1. *own quota*: the machine's own counters say that a control group's quota stopped the loops.
2. *dedicated*: nothing worth a name was lost; *SMT sibling shared* if a look at the clock then
   takes much longer while all CPUs are busy.
3. *weight only*: the CPU is lost in turns of a scheduler's slice.
4. The CPU is given back at regular moments, so there is a budget. *Reservation per CPU* if each
   CPU has as much alone as with all busy; *cap per machine* if all together have no more than one
   alone, or less than all of their CPUs where one alone has all of its own. With one CPU there is
   no telling: *reservation or cap*.
5. *unclear*, with what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nephoscope.scheduler.inference import refills, sentences, shares, timing
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


@dataclass(frozen=True, slots=True)
class View:
    """A look with the pattern of each of its loops."""

    look: Look
    loops: tuple[Timing, ...]

    @property
    def lossy(self) -> tuple[Timing, ...]:
        """The loops that lost more than a little."""
        return tuple(one for one in self.loops if one.pattern is not Pattern.NONE)

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
    one, every = _chosen(mine, "one"), _chosen(mine, "all")
    if one is None and every is None:
        found = Scheduler(target, Word.UNCLEAR, "There is no observation without sleep.")
        return replace(found, missing=(sentences.NEED_LOOKS,), looks=tuple(mine))
    views = [view for view in (one, every) if view is not None]
    word, fit, evidence = _named(one, every, views, _slower(mine, every))
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
        next_step=sentences.NEXT[word],
        looks=used,
    )


def _chosen(looks: Sequence[Look], kind: str) -> View | None:
    """The look of a kind to go by: of the longest ones the one with the median share."""
    found = of_kind(looks, kind)
    if not found:
        return None
    longest = max(look.window_ns for look in found)
    found = sorted(
        (look for look in found if look.window_ns == longest), key=lambda look: look.obtained_cpus
    )
    look = found[(len(found) - 1) // 2]
    return View(look, tuple(timing.of_loop(look, loop) for loop in look.loops))


Named = tuple[Word, Fit, tuple[str, ...]]


def _named(
    one: View | None, every: View | None, views: Sequence[View], slower: float | None
) -> Named:
    lossy = [view for view in views if view.lossy]
    if not lossy:
        return _undisturbed(views, slower)
    if all(_throttled(view) for view in lossy):
        return _quota(lossy[-1])
    if all(view.all_are(Pattern.TURNS) for view in lossy):
        return _turns(one, every, lossy)
    if all(view.all_are(Pattern.REFILLS) for view in lossy):
        return _budget(one, every)
    said = tuple(sentences.pattern(one) for view in lossy for one in view.lossy)
    return Word.UNCLEAR, Fit(shares.over_window(_loops(lossy[-1]), "cpus")), said


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
    if not view.look.throttled_count:
        return False
    gaps = [gap for loop in view.look.loops for gap in loop.gaps]
    lost = sum(gap.length_ns for gap in gaps)
    own = sum(gap.length_ns for gap in gaps if gap.cause == "throttled")
    return own >= _HALF_OF_LOSS * lost > 0


def _quota(view: View) -> Named:
    fit = _cap_fit([view])
    said = [sentences.counters(view.look)]
    return Word.OWN_QUOTA, fit, tuple(said)


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
    alone, together = one.share, every.look.obtained_cpus
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
    return refills.find([loop.gaps for loop in view.look.loops], view.look.window_ns)


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
