"""Windows of load from drawn requests, and rounds in random order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.model import Sample
from nephoscope.features.platforms import windows
from nephoscope.features.platforms.density import is_decided
from nephoscope.features.platforms.windows import GuestWindow, Round
from nephoscope.measure.targets.base import Done, TargetTrial


def window(scale: float, seed: int, requests: int = 100, failure: str = "") -> GuestWindow:
    draw = np.random.default_rng(seed)
    values = np.sort(scale * draw.exponential(1e6, requests))
    return GuestWindow((values, np.ones(requests, dtype=np.int64)), requests, failure)


def test_the_ratio_of_the_first_guest_is_recovered() -> None:
    found = [Round(window(1, at), (window(3, 100 + at), window(9, 200 + at))) for at in range(6)]
    step = windows.step_of(found, seed=1)
    assert step.guests == step.live == 2
    assert step.p99_ratio is not None
    assert step.p99_ratio.low is not None
    assert step.p99_ratio.high is not None
    assert step.p99_ratio.low < 3 < step.p99_ratio.high
    assert step.p99_ratio.n == 6
    assert step.completed_per_s.value == 200


def test_a_guest_that_fails_once_is_not_live() -> None:
    found = [
        Round(window(1, at), (window(1, at), window(1, at, failure="3 failed" if at == 4 else "")))
        for at in range(6)
    ]
    step = windows.step_of(found, seed=1)
    assert (step.guests, step.live) == (2, 1)
    assert step.p99_ratio is not None


def test_a_dead_first_guest_has_a_reason_and_no_ratio() -> None:
    dead = GuestWindow(windows.DEAD, 0.0, "the probe ended")
    step = windows.step_of([Round(dead, (dead,))] * 6, seed=1)
    assert step.p99_ratio is None
    assert step.reason.startswith("the probe ended; ")
    assert step.live == 0


def test_a_trial_becomes_a_window() -> None:
    samples = (
        Sample("latency_ns", 1000.0, 3),
        Sample("latency_ns", 2000.0, 1),
        Sample("requests_per_s", 4.0),
        Sample("errors_count", 7.0, factors={"kind": "any"}),
        Sample("errors_count", 2.0, factors={"kind": "timeout"}),
        Sample("errors_count", 5.0, factors={"kind": "unsent"}),
    )
    found = windows.window_of(TargetTrial(samples, {}, Done(1, 5), None))
    assert found.latencies == ([1000.0, 2000.0], [3, 1])
    assert found.completed_per_s == 4.0
    assert found.failure == "failed requests: 2 timeout"
    slow = tuple(one for one in samples if one.factors.get("kind") != "timeout")
    assert windows.window_of(TargetTrial(slow, {}, Done(1, 5), None)).failure == ""
    failed = TargetTrial((), {}, None, BenchmarkFailed("no_server", "Nobody answers.", ""))
    assert windows.window_of(failed).failure == "Nobody answers."


@pytest.mark.parametrize(("scale", "rounds"), [(8, 6), (2, 18)])
def test_rounds_are_added_while_it_is_undecided(
    scale: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    async def drawn(guests: Sequence[Any], seed: int, look: int) -> list[Round]:
        looks.append(look)
        return [
            Round(window(1, 100 * look + at), (window(scale, 1000 * (look + 1) + at),))
            for at in range(windows.ROUNDS)
        ]

    monkeypatch.setattr(windows, "rounds", drawn)
    ratio = asyncio.run(windows.measure([], 1)).p99_ratio
    assert ratio is not None
    assert ratio.n == rounds == len(looks) * windows.ROUNDS
    assert ratio.confidence == 0.95
    assert is_decided(ratio) is (rounds == 6)


def test_both_windows_of_a_round_come_in_random_order(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[int] = []

    async def load(guests: Sequence[Any], seed: int) -> list[GuestWindow]:
        loaded.append(len(guests))
        return [window(1, len(loaded))] * len(guests)

    monkeypatch.setattr(windows, "load", load)
    guests: Any = [object()] * 4
    orders = set()
    for seed in range(8):
        loaded.clear()
        found = asyncio.run(windows.rounds(guests, seed))
        assert len(found) == windows.ROUNDS
        assert all(len(one.loaded) == 4 for one in found)
        pairs = [tuple(loaded[at : at + 2]) for at in range(0, len(loaded), 2)]
        assert {tuple(sorted(pair)) for pair in pairs} == {(1, 4)}
        orders.add(tuple(pairs))
    assert len(orders) > 1


def with_unsent(own: GuestWindow, count: int, waited_ns: float) -> GuestWindow:
    """The same window with requests that were never sent."""
    values, counts = own.latencies
    latencies = (np.append(values, waited_ns), np.append(counts, count))
    return GuestWindow(latencies, own.completed_per_s, "", ([waited_ns], [count]))


def test_unsent_requests_of_the_loaded_guest_make_the_ratio_a_lower_bound() -> None:
    found = [Round(window(1, at), (with_unsent(window(1, 100 + at), 20, 9e8),)) for at in range(6)]
    ratio = windows.step_of(found, seed=1).p99_ratio
    assert ratio is not None
    assert ratio.censored
    assert ratio.high is None
    assert ratio.value > 100
    assert is_decided(ratio)
    assert "120 of 720 requests had no answer" in ratio.note


def test_unsent_requests_that_leave_the_ratio_open_are_a_reason() -> None:
    found = [Round(window(1, at), (with_unsent(window(1, at), 20, 4e6),)) for at in range(6)]
    step = windows.step_of(found, seed=1)
    assert step.p99_ratio is None
    assert "reach the p99 of the loaded guest, which is at least" in step.reason
    alone = [Round(one.loaded[0], (window(1, 7),)) for one in found]
    step = windows.step_of(alone, seed=1)
    assert step.reason == "Requests without an answer reach the p99 of the guest alone."


def test_unsent_requests_below_the_percentile_leave_the_ratio() -> None:
    found = [Round(window(1, at), (with_unsent(window(3, at, 8000), 1, 1e3),)) for at in range(6)]
    ratio = windows.step_of(found, seed=1).p99_ratio
    assert ratio is not None
    assert not ratio.censored


def test_a_window_has_its_unsent_requests_apart() -> None:
    samples = (
        Sample("latency_ns", 1000.0, 3),
        Sample("unanswered_ns", 1000.0, 1),
        Sample("requests_per_s", 2.0),
        Sample("errors_count", 1, factors={"kind": "unsent"}),
    )
    found = windows.window_of(TargetTrial(samples, {}, Done(5, 4), None))
    assert (found.unanswered, found.failure) == (([1000.0], [1]), "")
