"""Periodic neighbours against budgets and weights, on observations of an exact model of a kernel.

The ranges are those of the guide: periods from 16 ms to 1 s, 8 to 90 % of a period, constant work
or not, ended by the task itself or by the kernel at ticks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.features.scheduler.inference.kernel import MS, Mechanism, Task, looks
from tests.profiles import by_profile
from tests.rates import holds_rate

from nephoscope.features.scheduler.inference.infer import infer
from nephoscope.features.scheduler.inference.verdict import ObservationWindow, Scheduler, Word

BUDGETS = {Word.RESERVATION_PER_CPU, Word.CAP_PER_MACHINE, Word.RESERVATION_OR_CAP}


def verdict(
    mechanism: Mechanism, rng: random.Random, *, cpus: int = 2, stretch: float = 1.0
) -> Scheduler:
    return infer("t", looks(mechanism, rng, cpus=cpus, stretch=stretch))


def task(
    work_ms: float, period_ms: float, jitter: float = 0.0, *, deadline: bool = False, cpus: int = 1
) -> Mechanism:
    return Mechanism(Task(work_ms * MS, period_ms * MS, jitter, deadline), cpus)


def period_ms(rng: random.Random) -> int:
    """As many short ones as long ones."""
    return round(20 * 12.5 ** rng.random()) if rng.random() < 0.5 else rng.randint(250, 1000)


def settings(rng: random.Random, number: int) -> Iterator[tuple[str, Mechanism, Word, int]]:
    """Settings of each kind in turn: its name, what happens, the class, CPUs."""
    for count in range(number):
        cpus = rng.choice((1, 2))
        kind = ("fifo", "deadline", "fifo", "reservation", "deadline", "quota", "weight")[count % 7]
        period = period_ms(rng)
        if kind in ("fifo", "deadline"):
            work = max(2.0, period * rng.uniform(0.08, 0.9))
            jitter = rng.choice((0.0, 0.1, 0.4)) if kind == "fifo" else 0.0
            jitter = min(jitter, 0.9 * (period / work - 1))
            on = rng.randint(1, cpus)
            seen = task(work, period, jitter, deadline=kind == "deadline", cpus=on)
            yield kind, seen, Word.PERIODIC_TASK, cpus
        elif kind == "weight":
            others = rng.choices((20, 50, 100, 300, 700), k=rng.randint(1, 3))
            own = min(rng.choice((20, 50, 100, 300)), 15 * sum(others))
            yield kind, Mechanism(weights=(own, *others)), Word.WEIGHT_ONLY, cpus
        else:
            share = min(max(rng.uniform(0.05, 0.9), 6 / period), 1 - 6 / period)
            each = kind == "reservation"
            slice_ns = share * period * MS * (1 if each else cpus)
            word = Word.RESERVATION_PER_CPU if each else Word.CAP_PER_MACHINE
            word = Word.RESERVATION_OR_CAP if cpus == 1 else word
            yield kind, Mechanism(slice_ns=slice_ns, period_ns=period * MS, each=each), word, cpus


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize(
    "seen",
    [
        task(18, 20),
        task(45, 50),
        task(300, 500),
        task(12, 16, deadline=True),
        task(300, 500, deadline=True),
        task(45, 50, 0.1),
        task(80, 1000),
    ],
    ids=str,
)
def test_a_task_of_round_times_is_a_periodic_task(seen: Mechanism, cpus: int) -> None:
    """All its moments may lie on ticks of 1 ms, or 4 ms, as those of budgets and turns do."""
    found = verdict(seen, random.Random(12), cpus=cpus)
    assert found.word is Word.PERIODIC_TASK, (found.word, found.evidence)
    assert "no limit of" in found.sentence


def test_settings_of_all_ranges_are_told_apart() -> None:
    words = []
    for kind, seen, word, cpus in settings(random.Random(32), by_profile(quick=28, whole=140)):
        found = verdict(seen, random.Random(len(words)), cpus=cpus)
        words.append((found.word, word, kind, seen))
    wrong = [one for one in words if one[0] is not one[1] and one[0] is not Word.UNCLEAR]
    assert len(wrong) <= 0.05 * len(words), wrong
    holds_rate("told apart", [found is word for found, word, *_ in words], promised=0.9)


@pytest.mark.parametrize("others", [(300,), (100, 100, 100), (700,), (25, 700)])
def test_turns_in_an_exact_rhythm_are_no_periodic_task(others: tuple[int, ...]) -> None:
    for seed in range(3):
        found = verdict(Mechanism(weights=(100, *others)), random.Random(seed), cpus=1)
        assert found.word is Word.WEIGHT_ONLY, (found.word, found.evidence)


@pytest.mark.parametrize(("slice_ms", "period"), [(4, 16), (20, 40), (8, 100), (200, 500)])
@pytest.mark.parametrize("each", [True, False])
def test_a_budget_of_whole_ticks_is_no_periodic_task(
    slice_ms: float, period: float, each: bool
) -> None:
    seen = Mechanism(slice_ns=slice_ms * MS, period_ns=period * MS, each=each)
    found = verdict(seen, random.Random(3), cpus=1)
    assert found.word in (Word.RESERVATION_OR_CAP, Word.WEIGHT_ONLY, Word.UNCLEAR), found.evidence
    # A slice of one tick looks like turns.
    assert found.word is not Word.WEIGHT_ONLY or slice_ms == 4


def below_the_kernel(window: ObservationWindow) -> ObservationWindow:
    """The same, where the machine's own kernel does not notice what is lost."""
    loops = tuple(replace(loop, thread_cpu_ratio=1.0) for loop in window.loops)
    return replace(window, loops=loops)


def test_ticks_of_this_kernel_say_nothing_about_a_hypervisor() -> None:
    """Its budgets may end at exact moments of its own, off every tick that is seen here."""
    seen = Mechanism(slice_ns=40 * MS, period_ns=100 * MS, each=False, every_ns=0.5 * MS)
    found = infer("t", map(below_the_kernel, looks(seen, random.Random(5), cpus=1)))
    assert found.word is Word.RESERVATION_OR_CAP, found.evidence


def test_what_no_timer_ends_is_no_budget() -> None:
    """A task that sleeps for a while after its work has no exact grid, and is no budget."""

    class Relative(Task):
        def spans(self, until_ns, tick, rng):  # type: ignore[no-untyped-def]
            found, now = [], rng.random() * self.period_ns
            while now < until_ns:
                end = now + self.work_ns * rng.uniform(0.97, 1.03)
                found.append((now, end))
                now = end + self.period_ns - self.work_ns + rng.uniform(0.05, 0.2) * MS
            return found

    for seed in range(6):
        rng = random.Random(seed)
        period = rng.choice((20, 37, 50))
        seen = Mechanism(Relative(rng.uniform(0.2, 0.8) * period * MS, period * MS))
        found = verdict(seen, rng)
        assert found.word not in BUDGETS, found.evidence


def test_what_stays_open_names_the_longer_observation_that_decides() -> None:
    """Few periods, of whole ticks, that begin at ticks by chance: only more sleeps tell."""
    seen, seed = task(60, 644), 17
    found = verdict(seen, random.Random(seed), cpus=1)
    assert found.word is Word.UNCLEAR, found.evidence
    assert "--duration 60s" in found.next_step
    longer = verdict(seen, random.Random(seed), cpus=1, stretch=60 / 8.5)
    assert longer.word is Word.PERIODIC_TASK, longer.evidence
