"""Verdicts on looks that a simulated kernel gives, with parameters drawn by Hypothesis."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.profiles import by_profile
from tests.rates import holds_rate
from tests.stats.scheduler.simulated import (
    STEP_NS,
    Budget,
    Turns,
    always,
    look,
    side_by_side,
)

from nephoscope.core import documents
from nephoscope.features.scheduler.inference import sentences
from nephoscope.features.scheduler.inference.infer import infer
from nephoscope.features.scheduler.inference.replenishments import find, to_nearest
from nephoscope.features.scheduler.inference.verdict import Gap, ObservationWindow, Scheduler, Word

MS = 1_000_000
TICK_NS = 4 * MS

# Each example simulates seconds of a kernel in steps of 100 us.
slow = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
periods = st.integers(20, 150)
phases = st.integers(0, 20 * MS)
seeds = st.integers(0, 2**32)


def verdict(*looks: ObservationWindow) -> Scheduler:
    return infer("t", looks)


def budgets(loops: int, share: float, period: int, rng: random.Random) -> Budget:
    return Budget(
        loops,
        round(share * period * MS),
        period * MS,
        rng.randrange(period * MS),
        tick_phase_ns=rng.randrange(TICK_NS),
    )


def check_fit(found: Scheduler, share: float, period_ns: float) -> None:
    """Share within 1.5 points, period within 1 %, both inside intervals that hold the value."""
    assert found.fit.share is not None, found
    assert found.fit.period_ns is not None, found
    assert abs(found.fit.share.value - share) <= 0.015, found.sentence
    assert abs(found.fit.period_ns.value / period_ns - 1) <= 0.01, found.sentence
    assert found.fit.slice_ns is not None
    for one in (found.fit.share, found.fit.period_ns, found.fit.slice_ns):
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.value <= one.high
        assert one.n >= 6


def of_reservations(period: int, share: float, seed: int) -> Scheduler:
    """The verdict on one reservation alone, and on two beside each other."""
    rng = random.Random(seed)
    one = look(budgets(1, share, period, rng), noise=rng)
    every = look(
        side_by_side([budgets(1, share, period, rng), budgets(1, share, period, rng)]), noise=rng
    )
    return verdict(one, every)


# Below 8 ms of slice or gap, a period of whole ticks looks like turns: see the guide.
@given(periods.filter(lambda ms: ms >= 40), st.floats(0.25, 0.75), seeds)
@slow
def test_a_reservation_is_the_same_alone_and_beside(period: int, share: float, seed: int) -> None:
    assume(abs(to_nearest(share * period * MS, TICK_NS)) > TICK_NS / 16)
    found = of_reservations(period, share, seed)
    assert found.word is Word.RESERVATION_PER_CPU, found
    check_fit(found, share, period * MS)


def test_a_slice_of_whole_ticks_may_be_a_periodic_task() -> None:
    """Its gaps begin as exactly as a timer; only looks with sleep or two programs could tell."""
    found = of_reservations(40, 20 / 40, seed=30)
    assert found.word is Word.UNCLEAR
    assert sentences.AMBIGUOUS_ONSET in found.evidence


@given(periods.filter(lambda ms: ms >= 40), st.floats(0.5, 1.6), seeds)
@slow
def test_a_cap_is_shared_by_all_cpus(period: int, cap: float, seed: int) -> None:
    rng = random.Random(seed)
    alone = always(1) if cap >= 1 else budgets(1, cap, period, rng)
    found = verdict(look(alone, noise=rng), look(budgets(2, cap, period, rng), noise=rng))
    assert found.word is Word.CAP_PER_MACHINE, found
    check_fit(found, cap, period * MS)


@pytest.mark.parametrize(
    ("shift", "word"), [(0, Word.CAP_PER_MACHINE), (100 * MS, Word.UNCLEAR)], ids=["with", "apart"]
)
def test_a_cpu_that_loses_little_tells_by_when_it_has_the_cpu_again(shift: int, word: Word) -> None:
    """A mild cap may stop one of two CPUs for a moment only, and not in every period."""
    period = 300 * MS

    def rule(step: int) -> list[bool]:
        now = step * STEP_NS
        left, shifted = period - now % period, period - (now + shift) % period
        seldom = now // period % 2 == 1
        return [left > 24 * MS, not (seldom and shifted <= 9 * MS)]

    found = verdict(look(always(1)), look(rule))
    assert found.word is word, found


@given(periods.filter(lambda ms: ms >= 40), st.floats(0.25, 0.75), seeds)
@slow
def test_one_cpu_leaves_reservation_and_cap_open(period: int, share: float, seed: int) -> None:
    rng = random.Random(seed)
    found = verdict(look(budgets(1, share, period, rng), noise=rng, machine_cpus=1))
    # Where starts and ends are equally exact, a timer cannot be excluded from one observation.
    assert found.word in (Word.RESERVATION_OR_CAP, Word.UNCLEAR), found
    if found.word is Word.RESERVATION_OR_CAP:
        check_fit(found, share, period * MS)


def test_one_cpu_seldom_leaves_more_open_than_reservation_and_cap() -> None:
    words = []
    for seed in range(by_profile(quick=15, whole=60)):
        rng = random.Random(seed)
        period, share = rng.randint(40, 100), rng.uniform(0.25, 0.75)
        found = verdict(look(budgets(1, share, period, rng), noise=rng, machine_cpus=1))
        words.append(found.word is Word.RESERVATION_OR_CAP)
    holds_rate("a budget of one CPU", words, promised=0.9)


@given(
    st.sampled_from([50, 100, 200, 300]),
    st.lists(st.sampled_from([50, 100, 200, 300]), min_size=1, max_size=3),
    st.sampled_from([3.0, 10 / 3, 4.0]),
    seeds,
)
@slow
def test_turns_by_weight_are_no_budget(
    own: int, others: list[int], tick_ms: float, seed: int
) -> None:
    rng = random.Random(seed)
    turns = Turns(own, others, tick_ns=round(tick_ms * 1e6))
    found = verdict(look(turns, noise=rng))
    assert found.word is Word.WEIGHT_ONLY, found
    assert found.fit.share is not None
    # Interrupts take up to half a point, a window cuts a cycle.
    assert abs(found.fit.share.value - own / (own + sum(others))) <= 0.015, found.sentence


@given(st.integers(1, 4), seeds)
@slow
def test_an_undisturbed_machine_is_dedicated(loops: int, seed: int) -> None:
    rng = random.Random(seed)
    found = verdict(look(always(1), noise=rng), look(always(loops), noise=rng))
    assert found.word is Word.DEDICATED, found
    assert found.fit.period_ns is None


@pytest.mark.parametrize(
    ("ratio", "word"),
    [(1.0, Word.DEDICATED), (1.2, Word.DEDICATED), (1.3, Word.SMT_SIBLING_SHARED)],
)
def test_a_shared_core_shows_in_the_cost_of_a_look_only(ratio: float, word: Word) -> None:
    """No machine with two threads on a core was at hand: these looks are made up."""
    one, every = look(always(1), cost_ns=15.0), look(always(2), cost_ns=15.0 * ratio)
    found = verdict(one, every)
    assert found.word is word
    assert any(f"{ratio:.2f} times" in sentence for sentence in found.evidence)


def test_a_shared_core_is_held_against_the_slowest_look_alone() -> None:
    """Looks differ by themselves: a stranger may have been on the core's other thread."""
    one, every = look(always(1), cost_ns=12.0), look(always(2), cost_ns=17.0)
    slow = look(Turns(100, [100]), processes=1, cost_ns=16.5, sleep_ns=MS)
    assert verdict(one, every).word is Word.SMT_SIBLING_SHARED
    assert verdict(one, every, slow).word is Word.DEDICATED


def test_a_shared_core_is_not_named_from_another_cpus_cost() -> None:
    one = look(always(1), cost_ns=15.0)
    every = look(always(2), cost_ns=30.0, cpu=1)
    assert verdict(one, every).word is Word.DEDICATED


def throttled(seen: ObservationWindow) -> ObservationWindow:
    gaps = [
        replace(loop, gaps=tuple(replace(gap, cause="throttled") for gap in loop.gaps))
        for loop in seen.loops
    ]
    return replace(seen, loops=tuple(gaps), throttled_count=25, throttled_ratio=0.5)


def test_the_own_counters_name_the_own_quota() -> None:
    rng = random.Random(1)
    one = look(budgets(1, 0.5, 100, rng))
    every = look(budgets(2, 0.5, 100, rng))
    found = verdict(throttled(one), throttled(every))
    assert found.word is Word.OWN_QUOTA
    check_fit(found, 0.5, 100 * MS)
    # The counters rose a little while something else took most of it: that is another mechanism.
    some = replace(one, throttled_count=1, throttled_ratio=0.001)
    assert verdict(some).word is Word.RESERVATION_OR_CAP


def preempted(seen: ObservationWindow, *programs: tuple[str, float]) -> ObservationWindow:
    loops = tuple(
        replace(loop, gaps=tuple(replace(gap, cause="preempted") for gap in loop.gaps))
        for loop in seen.loops
    )
    return replace(seen, loops=loops, programs=programs)


def test_programs_of_the_same_system_that_take_the_cpu_are_named() -> None:
    rng = random.Random(1)
    turns = look(Turns(100, [100]), noise=rng)
    assert verdict(turns).word is Word.WEIGHT_ONLY
    lost = turns.lost_cpus
    found = verdict(preempted(turns, ("cargo", 0.6 * lost), ("python", 0.3 * lost)))
    assert found.word is Word.OTHER_PROGRAMS
    assert "cannot be inferred while they run" in found.sentence
    assert any("cargo" in one and "python" in one for one in found.evidence)
    assert "Stop these programs" in found.next_step
    # Programs that used little explain nothing: a neighbour took the rest.
    little = preempted(turns, ("sshd", 0.1 * lost))
    assert verdict(little).word is Word.WEIGHT_ONLY


def test_what_follows_no_rule_is_unclear() -> None:
    rng = random.Random(5)
    away = [rng.random() < 0.3 for _ in range(150)]
    lengths = [rng.randint(6 * MS, 31 * MS) for _ in away]
    gaps, now = [], 0
    for gone, length in zip(away, lengths, strict=True):
        if gone:
            gaps.append(Gap(now, float(length)))
        now += length + rng.randint(6 * MS, 9 * MS)
    seen = look(always(1))
    share = 1 - sum(gap.length_ns for gap in gaps) / now
    loop = replace(seen.loops[0], share=share, gaps=tuple(gaps))
    found = verdict(replace(seen, loops=(loop,), window_ns=now))
    assert found.word is Word.UNCLEAR
    assert "irregular times" in " ".join(found.evidence)


def test_nothing_to_go_by_says_what_is_missing() -> None:
    found = infer("t", [])
    assert found.word is Word.UNCLEAR
    assert "schedul" in found.missing[0]


def test_steal_that_contradicts_is_told() -> None:
    rng = random.Random(2)
    halved = look(budgets(1, 0.5, 100, rng))
    for word, seen, steal, told in (
        (Word.RESERVATION_OR_CAP, halved, 0.0, "Steal time is only 0.0 %"),
        (Word.RESERVATION_OR_CAP, halved, 0.45, ""),
        (Word.RESERVATION_OR_CAP, halved, None, ""),
        (Word.DEDICATED, look(always(1)), 0.2, "Steal time is 20.0 %"),
        (Word.OWN_QUOTA, throttled(halved), 0.2, "In addition to the quota"),
    ):
        found = verdict(replace(seen, steal_ratio=steal))
        assert found.word is word
        assert told in " ".join(found.contradictions)
        assert bool(told) == bool(found.contradictions)


@given(periods, phases, st.integers(8, 40), seeds)
@slow
def test_a_grid_is_found_whatever_its_period(
    period: int, phase: int, number: int, seed: int
) -> None:
    """Ends on a grid, starts anywhere before, a fifth of the periods without a gap."""
    rng = random.Random(seed)
    gaps = []
    for k in range(number):
        if rng.random() < 0.8 or k in (0, 1, number - 1):
            length = rng.uniform(0.2, 0.6) * period * MS
            end = phase + (k + 1) * period * MS + rng.gauss(0, 20_000)
            gaps.append(Gap(round(end - length), length))
    found = find([gaps], number * period * MS)
    assert found is not None
    assert abs(found.period_ns / (period * MS) - 1) < 0.005
    assert found.low_ns <= found.period_ns <= found.high_ns
    assert found.regular > 0.95


def test_the_document_has_no_looks_and_every_interval() -> None:
    rng = random.Random(3)
    found = verdict(look(budgets(1, 0.5, 100, rng)))
    document = documents.to_json(found)
    assert document["word"] == "reservation or cap"
    assert "windows" not in document
    assert document["fit"]["share"]["n"] == found.fit.share.n  # type: ignore[union-attr]
    assert document["per_cpu"][0]["window"] == "one"


def periodic(period_ms: int, work_ms: float, jitter: float, rng: random.Random) -> list[int]:
    """Steps in which a task that wakes every period has the CPU; its work varies by jitter."""
    taken: list[int] = []
    for wake in range(rng.randrange(period_ms), 3000, period_ms):
        work = work_ms * rng.uniform(1 - jitter, 1 + jitter)
        taken += range(round(wake * MS / STEP_NS) + 3, round((wake + work) * MS / STEP_NS))
    return taken


@pytest.mark.parametrize(("period", "work", "jitter"), [(97, 30, 0.2), (310, 140, 0.4)])
def test_a_periodic_task_is_no_reservation(period: int, work: float, jitter: float) -> None:
    rng = random.Random(period)

    def seen(loops: int) -> ObservationWindow:
        taken = set(periodic(period, work, jitter, rng))
        return look(lambda step: [step not in taken, True][:loops], noise=rng)

    found = verdict(seen(1), seen(2))
    assert found.word is Word.PERIODIC_TASK, found.evidence
    assert found.fit.period_ns is not None
    assert abs(found.fit.period_ns.value / (period * MS) - 1) < 0.002


def test_a_period_of_a_second_is_found_in_both_looks_together() -> None:
    rng = random.Random(11)
    one, every = budgets(1, 0.3, 905, rng), [budgets(1, 0.3, 905, rng) for _ in range(2)]
    found = verdict(look(one, noise=rng), look(side_by_side(every), noise=rng))
    assert found.word is Word.RESERVATION_PER_CPU, found.evidence
    assert found.fit.period_ns is not None
    assert abs(found.fit.period_ns.value / (905 * MS) - 1) < 0.01


def stopping(seen: ObservationWindow) -> ObservationWindow:
    loops = [
        replace(loop, gaps=tuple(replace(gap, cause="stopped") for gap in loop.gaps))
        for loop in seen.loops
    ]
    return replace(seen, loops=tuple(loops))


def test_loops_that_give_up_their_cpu_are_stopped() -> None:
    rng = random.Random(4)
    found = verdict(stopping(look(budgets(1, 0.5, 100, rng))))
    assert found.word is Word.STOPPED
    assert "gave the CPU up" in found.evidence[0]


def test_unclear_says_what_is_excluded_and_offers_a_longer_observation() -> None:
    rng = random.Random(5)
    found = verdict(look(budgets(1, 0.6, 1000, rng)))
    assert found.word is Word.UNCLEAR
    assert any("Dedicated CPUs are excluded" in text for text in found.evidence)
    assert any("Stopped processes are excluded" in text for text in found.evidence)
    assert "`nephoscope scheduler --duration 60s`" in found.next_step
    longer = look(budgets(1, 0.6, 1000, rng), window_ms=17_600)
    assert verdict(longer).word is Word.RESERVATION_OR_CAP
    # Where that was too short as well, more of the same is not offered.
    hopeless = replace(found.windows[0], window_ns=60_000 * MS)
    assert "--duration" not in verdict(hopeless).next_step
