"""Noise models of a series: independent values, short memory, slow wandering beside them, 1/f.

A model whitens: it turns its noise into independent innovations of one variance. Whitening is a
causal filter, so that a step, whitened, is the same response from its first point on, and products
with steps at all places are one filter over the reversed values.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.stats.linear_filter import linear_filter
from nephoscope.stats.statistics.values import Array


@dataclass(frozen=True)
class NoiseModel:
    """x(t) = phi x(t-1) + e(t) + theta e(t-1), or fractionally integrated noise of an order.

    phi 0 and theta 0 are independent values, theta 0 is AR(1), theta below 0 is AR(1) beside
    independent values: a slow wave with fast noise. order 0.5 is 1/f noise.
    """

    phi: float = 0.0
    theta: float = 0.0
    order: float = 0.0

    @property
    def parameters(self) -> int:
        """Number of parameters that were chosen."""
        return sum(parameter != 0 for parameter in (self.phi, self.theta, self.order))

    @property
    def is_white(self) -> bool:
        """States whether the values are independent."""
        return self.parameters == 0

    @cached_property
    def variance(self) -> float:
        """Returns the variance of the noise in variances of the innovations."""
        if self.order:
            return 1.0
        own = self.phi, self.theta
        return (1 + 2 * own[0] * own[1] + own[1] ** 2) / (1 - own[0] ** 2)

    @cached_property
    def correlation(self) -> float:
        """Returns the autocorrelation of neighbouring points."""
        if self.order:
            return self.order / (1 - self.order) if self.order < 0.5 else 0.95
        return self.phi + self.theta / self.variance

    def whitened(self, columns: Array) -> Array:
        """Returns the whitened columns; the first point has the variance of the innovations."""
        if self.is_white:
            return columns
        if self.order:
            return linear_filter(_weights(self.order, len(columns)), [1.0], columns)
        out = np.empty_like(columns)
        out[0] = columns[0] / np.sqrt(self.variance)
        state = -(self.phi + self.theta / self.variance) * columns[:1]
        out[1:] = linear_filter([1.0, -self.phi], [1.0, self.theta], columns[1:], state)
        return out

    def step_products(self, columns: Array) -> Array:
        """Returns the product of each column with a whitened step at each point (row)."""
        backwards = columns[::-1]
        if self.is_white:
            return np.asarray(np.cumsum(backwards, axis=0)[::-1])
        if self.order:
            numerator, denominator = _weights(self.order, len(columns)), [1.0, -1.0]
        else:
            numerator = np.array([1.0, -self.phi])
            denominator = [1.0, self.theta - 1.0, -self.theta]
        return linear_filter(numerator, denominator, backwards)[::-1]

    def step(self, points: int, place: int) -> Array:
        """Returns a whitened step of size 1 at a place."""
        out = np.zeros(points)
        out[place:] = _response(self, points)[: points - place]
        return out

    def step_squares(self, points: int) -> Array:
        """Returns the square of the length of a whitened step at each place."""
        return np.cumsum(_response(self, points) ** 2)[::-1]


WHITE = NoiseModel()
MODELS = (
    WHITE,
    *(NoiseModel(phi) for phi in (-0.3, 0.3, 0.5, 0.7, 0.85, 0.95)),
    *(NoiseModel(0.8, theta) for theta in (-0.4, -0.6)),
    *(NoiseModel(0.9, theta) for theta in (-0.4, -0.6, -0.75)),
    *(NoiseModel(0.95, theta) for theta in (-0.5, -0.7, -0.85)),
    *(NoiseModel(0.99, theta) for theta in (-0.4, -0.6, -0.8, -0.9)),
    *(NoiseModel(order=order) for order in (0.25, 0.4, 0.5)),
)


@cache
def _weights(order: float, points: int) -> Array:
    """The filter (1 - B) ** order."""
    index = np.arange(1, points)
    return np.concatenate([[1.0], np.cumprod((index - 1 - order) / index)])


@cache
def _response(model: NoiseModel, points: int) -> Array:
    """A whitened step from its first point on."""
    if model.is_white:
        return np.ones(points)
    if model.order:
        return np.asarray(np.cumsum(_weights(model.order, points)))
    ones = np.ones(points)
    return linear_filter([1.0, -model.phi], [1.0, model.theta], ones)
