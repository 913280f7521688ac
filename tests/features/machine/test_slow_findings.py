"""Slow trials of an ordinary run get their word by the rule, from the counters beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nephoscope.core.model import MetricResult
from nephoscope.stats.target_evidence import TargetTrials
from stats.judging import judge, line

QUIET = {
    "steal_ratio": 0.0,
    "psi_cpu_some_ratio": 0.0,
    "throttled_ratio": 0.0,
    "others_busy_cpus": 0.0,
}


def values(slow_from: int, slow_by: float, n: int = 24, seed: int = 3) -> list[float]:
    rng = np.random.default_rng(seed)
    return [
        float(1e6 * rng.uniform(0.995, 1.005) * (slow_by if at >= slow_from else 1))
        for at in range(n)
    ]


def of(times: list[float]) -> MetricResult:
    return line("cpu.pi", "pi_time_ns", 1e6, headline=True, values=tuple(times))


def trials(times: list[float], slow_from: int, **counters: float) -> TargetTrials:
    """Counters that rise in the slow trials only, one trial a round."""
    placed: dict[tuple[str, int], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for at in range(len(times)):
        noise = at % 3 / 1e4
        risen = counters if at >= slow_from else {}
        beside = {key: level + noise for key, level in {**QUIET, **risen}.items()}
        placed[("cpu.pi", at + 1)] = [({}, beside)]
    return TargetTrials(valid=len(times), placed=placed)


@pytest.mark.parametrize(
    ("counters", "word"),
    [
        ({"steal_ratio": 0.4}, "neighbour"),
        ({"psi_cpu_some_ratio": 0.4}, "neighbour"),
        ({"throttled_ratio": 0.4, "psi_cpu_some_ratio": 0.4}, "own quota"),
        ({"others_busy_cpus": 0.8, "psi_cpu_some_ratio": 0.4}, "local load"),
        ({}, "unexplained"),
    ],
)
def test_a_group_of_slow_trials_gets_its_word(counters: dict[str, float], word: str) -> None:
    times = values(16, 1.8)
    finding = judge(None, (of(times),), trials(times, 16, **counters))["slow_trials"]
    ending = "no system counter explains it." if word == "unexplained" else f"cause: {word}."
    assert f"; {ending}" in finding.sentence
    assert " times as slow in 8 of 24 trials" in finding.sentence
    assert finding.evidence
    assert finding.next_step


def test_a_drift_is_told_by_its_ends() -> None:
    times = [1e6 * (1 + at / 60) for at in range(24)]
    finding = judge(None, (of(times),), trials(times, 12, steal_ratio=0.3))["slow_trials"]
    assert "times as slow in the last third of the trials" in finding.sentence
    assert "cause: neighbour." in finding.sentence


def test_even_trials_are_nobodys_doing() -> None:
    times = values(24, 1.0)
    assert "slow_trials" not in judge(None, (of(times),), trials(times, 12, steal_ratio=0.4))


def test_trials_that_cannot_be_told_apart_are_no_evidence() -> None:
    times = values(16, 1.8)
    both = trials(times, 16, steal_ratio=0.4)
    doubled = {place: [*entries, *entries] for place, entries in both.placed.items()}
    finding = judge(None, (of(times),), TargetTrials(valid=24, placed=doubled))["slow_trials"]
    assert "; no system counter explains it." in finding.sentence
