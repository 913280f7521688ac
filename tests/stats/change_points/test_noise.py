"""Noise models: what whitening does, and what a step is worth beside each."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.stats.change_points.noise import MODELS, WHITE, NoiseModel


@pytest.mark.parametrize("model", MODELS)
def test_whitening_turns_the_noise_of_a_model_into_innovations(model: NoiseModel) -> None:
    points = 60
    unit = np.eye(points)
    matrix = model.whitened(unit)
    column = (np.arange(points) >= 25).astype(float)
    assert matrix @ column == pytest.approx(model.step(points, 25))
    assert model.step_squares(points)[25] == pytest.approx(np.sum((matrix @ column) ** 2))
    products = model.step_products(matrix)[25]
    assert products == pytest.approx((matrix @ column) @ matrix)


def test_noise_that_depends_on_itself_hides_a_step() -> None:
    assert WHITE.is_white
    assert NoiseModel(0.6).correlation == pytest.approx(0.6)
    squares = [NoiseModel(phi).step_squares(100)[50] for phi in (0.0, 0.3, 0.6)]
    assert squares == sorted(squares, reverse=True)
