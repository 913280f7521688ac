"""A Gaussian process on standardised features, of which any group of rows can be left out cheaply.

A linear and a Gaussian part, through inducing points (deterministic training conditional:
Quiñonero-Candela and Rasmussen, JMLR 6 (2005)); what the inducing points do not show of the
Gaussian part counts as variance, so that it grows away from the data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular

from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.values import Array

INDUCING = 300
"""Inducing points: the cost is rows times their square, for each choice of a shape."""

_CONSTANT = 3.0
_JITTER = 1e-6


@dataclass(frozen=True, slots=True)
class ProcessShape:
    """Parameters of the process, relative to the standard deviation of the values.

    scale: length of the Gaussian part in root mean squares of standardised features. noise:
    variance of a row. amplitude, linear: variances of the Gaussian part, and of a slope.
    """

    scale: float
    noise: float
    amplitude: float
    linear: float = 0.3


@dataclass(frozen=True, slots=True)
class Predicted:
    """Means and standard deviations, one a row."""

    mean: Array
    deviation: Array


class StandardRows:
    """Features of rows, each column with mean 0 and standard deviation 1, and inducing points.

    features: shape (rows, columns).
    """

    def __init__(self, features: Array) -> None:
        self._centre = features.mean(axis=0)
        spread = features.std(axis=0)
        self._spread = np.where(spread < _JITTER, 1.0, spread)
        self.rows = self.of(features)
        self.inducing = self.rows[_spread_out(self.rows, INDUCING)]

    def of(self, features: Array) -> Array:
        """Returns other rows on the same scale."""
        result: Array = (features - self._centre) / self._spread
        return result


class GroupedProcess:
    """The process of one shape on rows with groups.

    values: shape (rows,). weights: of the rows in the fit.
    """

    def __init__(
        self,
        standard: StandardRows,
        values: Array,
        groups: Array,
        weights: Array,
        shape: ProcessShape,
    ) -> None:
        self._shape = shape
        self._standard = standard
        self._length = shape.scale * float(np.sqrt(standard.rows.shape[1]))
        self._inducing = standard.inducing
        among = self._kernel(self._inducing, self._inducing)
        self._root = np.linalg.cholesky(among + _JITTER * np.eye(len(among)))
        self._mean, self._unit = float(values.mean()), float(values.std()) or 1.0
        self._groups = groups
        self._columns, self._rest = self._expanded(standard.rows)
        self._values = (values - self._mean) / self._unit
        weighted = self._columns * weights[:, None]
        self._parts = {}
        for group in np.unique(groups):
            own = groups == group
            self._parts[group] = (
                weighted[own].T @ self._columns[own],
                weighted[own].T @ self._values[own],
            )
        self._gram = np.sum([gram for gram, _ in self._parts.values()], axis=0)
        self._moment = np.sum([moment for _, moment in self._parts.values()], axis=0)

    def left_out(self) -> Predicted:
        """Returns each row as the rows of the other groups predict it."""
        mean, deviation = np.empty(len(self._values)), np.empty(len(self._values))
        for group, (gram, moment) in self._parts.items():
            own = self._groups == group
            mean[own], deviation[own] = self._solved(
                self._gram - gram, self._moment - moment, self._columns[own], self._rest[own]
            )
        return Predicted(self._mean + self._unit * mean, self._unit * deviation)

    def predict(self, features: Array) -> Predicted:
        """Returns new rows, from all groups. features: shape (rows, columns)."""
        columns, rest = self._expanded(self._standard.of(features))
        mean, deviation = self._solved(self._gram, self._moment, columns, rest)
        return Predicted(self._mean + self._unit * mean, self._unit * deviation)

    def _solved(
        self, gram: Array, moment: Array, columns: Array, rest: Array
    ) -> tuple[Array, Array]:
        noise = self._shape.noise
        inverse = np.linalg.inv(gram / noise + np.eye(len(gram)))
        mean = columns @ (inverse @ moment) / noise
        variance = ((columns @ inverse) * columns).sum(axis=1)
        return mean, np.sqrt(np.maximum(variance, 0.0) + rest + noise)

    def _expanded(self, standard: Array) -> tuple[Array, Array]:
        """Returns the columns of the linear model, and the variance that they do not show."""
        smooth = solve_triangular(
            self._root, self._kernel(self._inducing, standard), lower=True, check_finite=False
        ).T
        rest = np.maximum(self._shape.amplitude - (smooth**2).sum(axis=1), 0.0)
        slopes = np.sqrt(self._shape.linear) * standard
        constant = np.full((len(standard), 1), _CONSTANT)
        return np.hstack([smooth, slopes, constant]), rest

    def _kernel(self, first: Array, second: Array) -> Array:
        squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None]
        distance = np.maximum(squares - 2 * first @ second.T, 0.0)
        result: Array = self._shape.amplitude * np.exp(-0.5 * distance / self._length**2)
        return result


def _spread_out(rows: Array, most: int) -> Sequence[int]:
    """Returns the places of rows that lie far apart, the farthest from all before it next."""
    chosen = [0]
    distance = ((rows - rows[0]) ** 2).sum(axis=1)
    while len(chosen) < most:
        place = int(np.argmax(distance))
        if distance[place] <= _JITTER:
            break
        chosen.append(place)
        distance = np.minimum(distance, ((rows - rows[place]) ** 2).sum(axis=1))
    return chosen
