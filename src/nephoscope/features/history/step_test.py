"""Tests a series for a step of its mean, with a trend, a daily season and autocorrelated noise.

Regression with AR(1) errors: the step's time is the one whose step explains most; the
autocorrelation is estimated beside that step (a step that is left in the residuals would count
as autocorrelation), and the step's t statistic is taken after whitening with it (Prais & Winsten
1954; unknown time of the step: Andrews, Econometrica 61, 1993). Residuals are clipped twice, as
values and as innovations, so that a few outliers are no step (Huber 1981).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nephoscope.stats.statistics.values import Array

Indices = NDArray[np.intp]

DAY_S = 86_400.0
HARMONICS = 2
"""Sine waves that describe a daily season: of a day and of half a day."""
SEASON_DAYS = 3.0
"""Days that a series has to cover before it is tested, where it has several points a day."""
MINIMUM_BEFORE = 20
MINIMUM_AFTER = 4
"""Points on either side of a step."""
MINIMUM_POINTS = 40
CLIP = 3.0
"""Robust standard deviations beyond which a residual counts as one of that size."""
_ROBUST_SD = 1.4826
_MAX_CORRELATION = 0.98
_POSITION_LOSS = 7.35
"""Loss of explained squares, in noise variances, up to which a position is plausible (95 %)."""
_CONDITION = 1e-4
_MIN_SQUARE = 0.5
"""Candidates that the other regressors explain almost wholly cannot be told from them."""


@dataclass(frozen=True, slots=True)
class StepTest:
    """The most likely step of a series.

    index: of the first point behind the step; first, last: the interval in which it lies with a
    confidence of 95 % (likelihood ratio of the position: Hansen, Econometrica 68, 2000). score:
    absolute t statistic of the step. correlation: estimated autocorrelation of neighbouring points.
    size: of the step, in the unit of the values, and se: its standard error. noise_sd: standard
    deviation of the noise. effective: see `effective_points`; of the points less the fitted
    parameters.
    """

    index: int
    first: int
    last: int
    score: float
    correlation: float
    size: float
    se: float
    noise_sd: float
    effective: float


def has_season(at_s: Array) -> bool:
    """States whether points lie densely enough that a daily season shows in them."""
    return at_s.size > 1 and _median(np.diff(at_s)) < DAY_S / 2


def is_testable(at_s: Array) -> bool:
    """States whether a series is long enough to be tested."""
    if at_s.size < MINIMUM_POINTS:
        return False
    return not has_season(at_s) or float(at_s[-1] - at_s[0]) >= SEASON_DAYS * DAY_S


def effective_points(points: int, correlation: float) -> float:
    """Returns the number of independent points whose mean is as uncertain as that of these."""
    positive = max(0.0, correlation)
    return points * (1 - positive) / (1 + positive)


def regressors(at_s: Array) -> Array:
    """Returns the columns of the mean without steps: level, trend and daily season."""
    span = float(at_s[-1] - at_s[0]) or 1.0
    columns = [np.ones(at_s.size), (at_s - at_s[0]) / span - 0.5]
    if has_season(at_s) and span >= SEASON_DAYS * DAY_S:
        columns += list(season(at_s).T)
    return np.stack(columns, axis=1)


def season(at_s: Array) -> Array:
    """Returns the columns of a daily season."""
    columns = []
    for harmonic in range(1, HARMONICS + 1):
        angle = 2 * np.pi * harmonic * at_s / DAY_S
        columns += [np.cos(angle), np.sin(angle)]
    return np.stack(columns, axis=1)


def step_test(
    at_s: Array,
    values: Array,
    known: Sequence[int] = (),
    between: tuple[int, int] | None = None,
) -> StepTest:
    """Returns the most likely step of a series.

    at_s: times, ascending, of at least MINIMUM_POINTS points. known: indices of steps that the
    series has besides. between: indices between which the step lies; None for anywhere.
    """
    index = np.arange(at_s.size)
    candidates = index[MINIMUM_BEFORE : at_s.size - MINIMUM_AFTER + 1]
    if between is not None:
        inside = (candidates > between[0]) & (candidates < between[1])
        candidates = candidates[inside] if np.any(inside) else candidates
    columns = [regressors(at_s), *((index >= step)[:, None].astype(float) for step in known)]
    mean = np.column_stack(columns)
    fitted = mean.shape[1]
    basis = _basis(mean)
    clipped = _clipped(values, basis)
    correlation = correlation_of(_best(clipped, basis, candidates).rest, fitted + 1)
    clipped = _whitened(clipped, correlation)
    basis = _basis(_whitened(mean, correlation))
    # Innovations are clipped about the best step, which would else be clipped itself.
    rest = _best(clipped, basis, candidates, correlation).rest
    limit = CLIP * _scale(rest)
    clipped = clipped - rest + np.clip(rest, -limit, limit)
    best = _best(clipped, basis, candidates, correlation)
    innovation_sd = float(np.sqrt(best.rest @ best.rest / (at_s.size - fitted - 1)))
    # Values without noise leave nothing but the rounding of their arithmetic.
    exact = innovation_sd <= 1e-12 * float(np.max(np.abs(values)))
    se = 0.0 if exact or best.length <= 0 else innovation_sd / best.length
    if exact:
        score = np.inf if abs(best.size) > 1e-9 * float(np.max(np.abs(values))) else 0.0
    else:
        score = abs(best.size) / se if se > 0 else 0.0
    near = best.gains >= best.gains[best.place] - _POSITION_LOSS * innovation_sd**2
    plausible = candidates[near]
    return StepTest(
        int(candidates[best.place]),
        int(plausible[0]),
        int(plausible[-1]),
        float(score),
        correlation,
        best.size,
        se,
        innovation_sd / float(np.sqrt(1 - correlation**2)),
        effective_points(at_s.size - fitted - 1, correlation),
    )


def _basis(columns: Array) -> Array:
    """An orthonormal basis; of well-conditioned columns by Cholesky, which takes a third of QR."""
    with contextlib.suppress(np.linalg.LinAlgError):
        lower = np.linalg.cholesky(columns.T @ columns)
        diagonal = np.diag(lower)
        if diagonal.min() > _CONDITION * diagonal.max():
            return np.asarray(columns @ np.linalg.inv(lower).T)
    basis, upper = np.linalg.qr(columns)
    diagonal = np.abs(np.diag(upper))
    return basis[:, diagonal > 1e-9 * diagonal.max()]


def _clipped(values: Array, basis: Array) -> Array:
    fit = basis @ (basis.T @ values)
    for _ in range(2):
        rest = values - fit
        middle = _median(rest)
        limit = CLIP * _scale(rest - middle)
        clipped = fit + np.clip(rest, middle - limit, middle + limit)
        fit = basis @ (basis.T @ clipped)
    return clipped


def _scale(rest: Array) -> float:
    return _ROBUST_SD * _median(np.abs(rest)) or float(np.std(rest))


def _median(values: Array) -> float:
    """The upper median: np.median takes most of the time of a test."""
    half = values.size // 2
    return float(np.partition(values, half)[half])


@dataclass(frozen=True, slots=True)
class _Step:
    """A candidate: its position, its size, what it leaves of the values, the length of its column
    beside the other regressors; and of all candidates the sum of squares that each explains."""

    place: int
    size: float
    rest: Array
    length: float
    gains: Array


def _best(values: Array, basis: Array, candidates: Indices, correlation: float = 0.0) -> _Step:
    """Returns the step that explains most.

    The column of a step is whitened as values and basis are: 1 at its first point, then
    1 - correlation. So products with it are sums from a point on.
    """
    rest = values - basis @ (basis.T @ values)
    products_of_columns = _step_products(np.column_stack([rest, basis]), candidates, correlation)
    products, inside = products_of_columns[:, 0], products_of_columns[:, 1:]
    lengths = 1 + (values.size - candidates - 1) * (1 - correlation) ** 2
    squares = lengths - np.einsum("ij,ij->i", inside, inside)
    usable = squares > _MIN_SQUARE
    gains = np.where(usable, products**2 / np.where(usable, squares, 1.0), 0.0)
    place = int(np.argmax(gains))
    if not usable[place]:
        return _Step(place, 0.0, rest, 0.0, gains)
    size = float(products[place] / squares[place])
    column = np.where(np.arange(values.size) > candidates[place], 1 - correlation, 0.0)
    column[candidates[place]] = 1.0
    left = rest - size * (column - basis @ inside[place])
    return _Step(place, size, left, float(np.sqrt(squares[place])), gains)


def _step_products(columns: Array, candidates: Indices, correlation: float) -> Array:
    """Returns the product of the step at each candidate (row) with each column."""
    sums = np.cumsum(columns[::-1], axis=0)[::-1]
    # A step has points behind its first one, so that the row after it exists.
    return np.asarray(columns[candidates] + (1 - correlation) * sums[candidates + 1])


def correlation_of(rest: Array, fitted: int) -> float:
    """Returns the lag-1 autocorrelation of residuals, with the bias of fitted columns added back.

    fitted: number of the columns.
    """
    square = float(rest @ rest)
    if square <= 0:
        return 0.0
    raw = float(rest[1:] @ rest[:-1]) / square
    corrected = raw + (fitted + (fitted + 2) * raw) / rest.size
    return float(np.clip(corrected, -0.5, _MAX_CORRELATION))


def _whitened(columns: Array, correlation: float) -> Array:
    out = columns.copy()
    out[1:] -= correlation * columns[:-1]
    out[0] *= np.sqrt(1 - correlation**2)
    return out
