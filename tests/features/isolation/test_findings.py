"""Findings on neighbours: nobody is called one without the rule."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.stats.judging import judge

from nephoscope.core.model import Better, Estimate, Severity
from nephoscope.features.isolation.findings import loss
from nephoscope.features.isolation.records import Isolation
from nephoscope.features.isolation.recovery import recovery
from nephoscope.stats import interference
from nephoscope.stats.attribution import Attribution, SlowdownCause
from nephoscope.stats.interference import Triple, around


def cell(
    factor: float,
    *,
    word: SlowdownCause = SlowdownCause.UNEXPLAINED,
    resource: str = "memory",
    better: Better = Better.HIGHER,
    after: float = 1.0,
    noise: float = 0.01,
) -> Any:
    rng = np.random.default_rng(1)
    triples: list[Triple] = []
    for number in range(10):
        before, loaded, later = 100 * np.exp(rng.normal(0, noise, 3))
        rate = better is Better.HIGHER
        loaded = loaded / factor if rate else loaded * factor
        triples.append(around(number, loaded, before, later / after if rate else later * after))
    comparison = interference.factor(triples, better=better)
    return SimpleNamespace(
        victim=SimpleNamespace(
            benchmark="mem.stream", metric="stream_bytes_per_s", target="local", better=better
        ),
        resource=resource,
        intensity=1.0,
        neighbours=1,
        comparison=comparison,
        factor=interference.turned(comparison.ratio, better),
        has_interval=True,
        recovery=recovery(triples, better=better),
        attribution=Attribution(word, "because", ()),
    )


def found(*cells: Any, idle: Any = None) -> dict[str, Any]:
    return judge(parts=(Isolation(cells, (), (), idle, (), (), ()),), metrics=())


@pytest.mark.parametrize(
    ("word", "start"),
    [
        (SlowdownCause.NEIGHBOUR, "A neighbour that loads memory bandwidth costs mem.stream"),
        (SlowdownCause.UNEXPLAINED, "A concurrent load on memory bandwidth costs mem.stream"),
        (SlowdownCause.OWN_QUOTA, "A concurrent load on memory bandwidth costs mem.stream"),
    ],
)
def test_only_the_rule_makes_a_neighbour(word: SlowdownCause, start: str) -> None:
    told = found(cell(1.5, word=word))["interference"]
    assert told.sentence.startswith(start)
    assert told.severity is Severity.WARNING
    assert "n = 10" in told.sentence
    assert told.next_step
    assert f"attributed to: {word.value}" in told.evidence[0]
    assert ("neighbour" in told.sentence) == (word is SlowdownCause.NEIGHBOUR)


def test_a_loss_is_told_of_rates_and_of_times() -> None:
    factor = Estimate(1.25, 1.2, 1.3, 0.95, 10, "ratio", "made")
    assert loss(factor, Better.HIGHER) == "20.0 % [16.7, 23.1]"
    assert loss(factor, Better.LOWER) == "25.0 % [20.0, 30.0]"
    assert "more time" in found(cell(1.5, better=Better.LOWER))["interference"].sentence


def test_the_worst_comes_first_and_small_losses_are_no_warning() -> None:
    told = found(cell(1.1), cell(1.2, resource="cpu"))["interference"]
    assert "CPU time" in told.sentence
    assert told.severity is Severity.NOTICE
    assert len(told.evidence) == 2


def test_nothing_lost_is_told_with_what_it_could_be_at_most() -> None:
    told = found(cell(1.0))
    assert "interference" not in told
    assert "None of 1 pairs" in told["isolated"].sentence
    assert "isolated" not in found(cell(1.0, noise=0.2))
    assert "isolated" not in judge(metrics=())


def test_what_does_not_come_back_is_told() -> None:
    told = found(cell(1.5, after=1.2), cell(1.5))["no_recovery"]
    assert told.sentence.startswith("1 of 2")


def test_idle_neighbours_that_take_something_are_a_warning() -> None:
    share = Estimate(0.5, 0.2, 0.8, 0.95, 10, "ratio", "Wilson")
    loud = SimpleNamespace(share=share, sentence="5 of 10 exclude 1. That is too many.")
    assert found(cell(1.0), idle=loud)["idle_interference"].severity is Severity.WARNING
    calm = SimpleNamespace(share=share, sentence="0 of 10 exclude 1.")
    assert "idle_interference" not in found(cell(1.0), idle=calm)
