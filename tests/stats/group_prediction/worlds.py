"""Groups with planted effects: a smooth function of features, shifted by group, with noise."""

from __future__ import annotations

import numpy as np

from nephoscope.stats.statistics.values import Array


def world(
    rng: np.random.Generator,
    groups: int,
    rows: int,
    *,
    between: float = 0.05,
    noise: float = 0.05,
    columns: int = 4,
) -> tuple[Array, Array, Array]:
    """Features, values and groups; logarithms of the values are a curve of the first two columns,
    a shift of the group and noise."""
    features = rng.normal(size=(groups * rows, columns)) + np.repeat(
        rng.normal(scale=0.3, size=(groups, columns)), rows, axis=0
    )
    shifts = np.repeat(rng.normal(scale=between, size=groups), rows)
    logs = 0.5 * features[:, 0] + 0.3 * np.sin(features[:, 1]) + shifts
    values = np.exp(logs + rng.normal(scale=noise, size=len(logs)))
    return features, values, np.repeat([f"group-{number}" for number in range(groups)], rows)
