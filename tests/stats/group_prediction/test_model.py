"""The process against its closed form, and rows left out against a fit without them."""

from __future__ import annotations

import numpy as np

from nephoscope.stats.group_prediction.model import GroupedProcess, ProcessShape, StandardRows

from .worlds import world

SHAPE = ProcessShape(1.0, 0.03, 1.0)


def _direct(features: np.ndarray, values: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Mean of the Gaussian process with all rows as inducing points (Rasmussen, 2.25)."""
    centre, spread = features.mean(axis=0), features.std(axis=0)
    one, other = (features - centre) / spread, (new - centre) / spread

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        squares = ((a[:, None] - b[None]) ** 2).sum(axis=2)
        smooth = SHAPE.amplitude * np.exp(-squares / (2 * SHAPE.scale**2 * a.shape[1]))
        result: np.ndarray = smooth + SHAPE.linear * a @ b.T + 9.0
        return result

    mean, unit = values.mean(), values.std()
    weights = np.linalg.solve(
        kernel(one, one) + SHAPE.noise * np.eye(len(one)), (values - mean) / unit
    )
    result: np.ndarray = mean + unit * kernel(other, one) @ weights
    return result


def test_with_few_rows_it_is_the_exact_process() -> None:
    features, values, groups = world(np.random.default_rng(1), 4, 20)
    new = world(np.random.default_rng(2), 1, 10)[0]
    process = GroupedProcess(StandardRows(features), np.log(values), groups, np.ones(80), SHAPE)
    expected = _direct(features, np.log(values), new)
    # The jitter of the inducing points is all that differs.
    assert np.allclose(process.predict(new).mean, expected, atol=1e-3)


def test_a_group_is_predicted_from_the_others_only() -> None:
    features, values, groups = world(np.random.default_rng(3), 5, 40)
    standard, weights = StandardRows(features), np.ones(200)
    process = GroupedProcess(standard, np.log(values), groups, weights, SHAPE)
    changed = np.where(groups == "group-2", 100 * values, values)
    again = GroupedProcess(standard, np.log(changed), groups, weights, SHAPE)
    own = groups == "group-2"
    # Other values in the group itself move its prediction by their common scale only.
    shift = (again.left_out().mean - process.left_out().mean)[own]
    assert np.allclose(shift, shift.mean(), atol=0.2)
    assert np.abs(process.left_out().mean - np.log(values)).mean() < 0.15


def test_the_deviation_grows_away_from_the_rows() -> None:
    features, values, groups = world(np.random.default_rng(4), 4, 60)
    process = GroupedProcess(StandardRows(features), np.log(values), groups, np.ones(240), SHAPE)
    near, far = process.predict(np.zeros((1, 4))), process.predict(np.full((1, 4), 6.0))
    assert far.deviation[0] > 2 * near.deviation[0]
