"""Deployments in planted worlds, of which only noisy measurements are known, beside the best ones.

A world holds if the recommended deployment keeps the objective in 95 % of the draws of instances
and outages. It is near if the deployment costs at most 10 % more than that of somebody who knows
the truth.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.features.sizing import worlds

from nephoscope.features.sizing import application
from nephoscope.features.sizing.result import analyse

WORLDS, SURVIVING = 10, 5
DEAREST = 1.10


@pytest.mark.slow
def test_recommended_deployments_hold_and_are_near_the_best(tmp_path: Path) -> None:
    rows = []
    for seed in range(WORLDS):
        world = worlds.draw_world(seed)
        file = worlds.write(worlds.measured(world), tmp_path)
        best = analyse(application.load(file, tmp_path)).deployments[0]
        kind = world.types[best.type]
        ratio = worlds.cost(kind, best.counts) / worlds.clairvoyant(world)[0]
        rows.append((worlds.kept_ratio(world, kind, best.counts, 2_000), ratio))
    table = "\n".join(f"{seed}: {row[0]:.3f} {row[1]:.3f}" for seed, row in enumerate(rows))
    assert all(kept >= worlds.KEPT for kept, _ in rows), table
    assert all(ratio <= DEAREST for _, ratio in rows), table


@pytest.mark.slow
def test_deployments_survive_a_region_and_pay_for_data_near_the_best(tmp_path: Path) -> None:
    rows = []
    for seed in range(SURVIVING):
        world = worlds.with_data_to_users(worlds.draw_world(seed, types_in_all=2))
        # Two regions that work 99.8 % of the time reach 99.9 %, if one of them does alone.
        values = {**worlds.measured(world), "region_availability": 0.998}
        analysis = analyse(application.load(worlds.write(values, tmp_path), tmp_path))
        best = analysis.deployments[0]
        assert best.survived_failures == 1
        kind = world.types[best.type]
        ratio = worlds.cost(kind, best.counts, world) / worlds.clairvoyant(world, 200, 1)[0]
        rows.append((worlds.held_ratio(world, kind, best.counts, 2_000, 1), ratio))
    table = "\n".join(f"{seed}: {row[0]:.3f} {row[1]:.3f}" for seed, row in enumerate(rows))
    assert all(kept >= worlds.KEPT for kept, _ in rows), table
    assert all(ratio <= DEAREST for _, ratio in rows), table


@pytest.mark.slow
def test_worlds_that_hardly_anybody_measured_are_named_as_thin(tmp_path: Path) -> None:
    for seed in range(WORLDS):
        values = worlds.measured(worlds.draw_world(seed), instances=1)
        file = worlds.write(values, tmp_path)
        analysis = analyse(application.load(file, tmp_path))
        assert not analysis.is_answered
        assert "too thin to recommend a deployment: how much instances of" in analysis.sentence
        assert "Measure the spread of type" in analysis.recommended_measurement


@pytest.mark.slow
def test_the_truth_agrees_with_queues_that_are_played() -> None:
    """The formula of the worlds is that of a queue in order of arrival with one worker."""
    rng = np.random.default_rng(1)
    rate, services, requests = 400.0, 480.0, 2_000_000
    gaps, needed = rng.exponential(1 / rate, requests), rng.exponential(1 / services, requests)
    # Lindley's recursion: the wait is the distance of a random walk from its minimum.
    walk = np.concatenate([[0.0], np.cumsum(needed[:-1] - gaps[1:])])
    times = walk - np.minimum.accumulate(walk) + needed
    late = float(np.mean(times > worlds.LIMIT_S))
    expected = float(np.exp(-(services - rate) * worlds.LIMIT_S))
    # Busy periods are long: the mean of 200 blocks has the error of what depends.
    blocks = (times > worlds.LIMIT_S).reshape(200, -1).mean(axis=1)
    assert abs(late - expected) < 4 * blocks.std(ddof=1) / np.sqrt(200)
