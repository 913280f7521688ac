"""Tests a series for a step of its mean, beside seasons, dependent noise and noise that changes.

Regression with a step at the time that explains most. It is tested against independent noise
first. A step that would be reported is then tested against every noise model: the one that
explains the series best, with or without a step, decides, so that slow waves are no step. Either
side of the step has its own variance as far as its noise is likely to be the larger one. Residuals
are clipped as values and as innovations, so that a few outliers are no step (Huber 1981).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import special

from nephoscope.stats.change_points import seasons
from nephoscope.stats.change_points.noise import MODELS, WHITE, NoiseModel
from nephoscope.stats.statistics.values import Array

Indices = NDArray[np.intp]

MINIMUM_BEFORE = 20
MINIMUM_AFTER = 6
"""Points on either side of a step; fewer do not tell a step from a growth of the noise."""
MINIMUM_POINTS = 40
CLIP = 3.0
"""Robust standard deviations beyond which a residual counts as one of that size."""
_NEIGHBOURS = 3
"""Points on either side with which an outlier is compared."""
_LOOSE_CLIP = 6.0
"""The same where the variance of one side is estimated."""
_SHOCK = 6.0
"""Robust standard deviations from which on an innovation is a shock, which normal noise has not."""
_ROBUST_SD = 1.4826
_STEP_COST = 14.0
"""Twice the log-likelihood that a step has to explain more than another noise model does, and what
it has to explain beyond that in a short series. In one, half of a slow wave looks like a step. Both
were found by simulation: less reports slow waves and 1/f noise, more loses small steps."""
_SHORTNESS_COST = 800.0
"""Further cost, times the number of points."""
_DEPENDENT_COST = 5.0
"""Further cost of a step beside noise that depends on itself, which half explains one."""
_PARAMETER_COST = 2.0
_SIDE_POINTS = 40
"""Points before a step whose variance is compared with that of all."""
_CHANGE_ODDS = 0.3
"""Odds that the noise differs on a side of a step, before its points are seen."""
_PRIOR_POINTS = 1.0
_POSITION_LOSS = 7.35
"""Loss of explained squares, in noise variances, up to which a position is plausible (95 %)."""
_CONDITION = 1e-4
_MIN_SQUARE = 0.25
"""Candidates that the other regressors explain almost wholly cannot be told from them."""


@dataclass(frozen=True, slots=True)
class StepTest:
    """The most likely step of a series.

    index: of the first point behind the step; first, last: the interval in which it lies with a
    confidence of 95 % (likelihood ratio of the position: Hansen, Econometrica 68, 2000). score:
    of the step, as a standard normal value. noise: the model that was chosen. size: of the step,
    in the unit of the values, and se: its standard error, with so many degrees of freedom.
    noise_sd: standard deviation of the noise.
    """

    index: int
    first: int
    last: int
    score: float
    noise: NoiseModel
    size: float
    se: float
    freedom: float
    noise_sd: float


def is_testable(at_s: Array) -> bool:
    """States whether a series is long enough to be tested."""
    return at_s.size >= MINIMUM_POINTS


def step_test(
    at_s: Array,
    values: Array,
    known: Sequence[int] = (),
    between: tuple[int, int] | None = None,
    limit: Callable[[NoiseModel], float] | None = None,
    usual: NoiseModel = WHITE,
    weekends: bool = True,
) -> StepTest:
    """Returns the most likely step of a series.

    at_s: times, ascending, of at least MINIMUM_POINTS points. known: indices of steps that the
    series has besides. between: indices between which the step lies; None for anywhere. limit:
    score above which a step is reported under a noise model; one below it with independent noise
    is not tested further. None tests under every model. usual: model that was chosen a few points
    ago, under which the step is tested before all models are. weekends: whether a step that may be
    the level of a weekend is not told from it; not so where the usual weekends were subtracted.
    """
    index = np.arange(at_s.size)
    candidates = index[MINIMUM_BEFORE : at_s.size - MINIMUM_AFTER + 1]
    if between is not None:
        inside = (candidates > between[0]) & (candidates < between[1])
        candidates = candidates[inside] if np.any(inside) else candidates
    mean = _mean(at_s, values, known, weekends=weekends)
    basis = _basis(mean)
    clipped = _clipped(values, basis)
    # A step of many standard deviations is clipped itself, so that values are clipped about it.
    first = _best(clipped, basis, candidates, WHITE)
    place = int(candidates[first.place])
    rest = values - clipped + first.rest + first.size * first.column
    level = np.zeros(values.size)
    start = max([place - _SIDE_POINTS, 0, *(step for step in known if step < place)])
    end = min([values.size, *(step for step in known if step > place)])
    level[place:] = _median(rest[place:end]) - _median(rest[start:place])
    clipped = level + _clipped(values - level, basis)
    test = _tested(values, clipped, mean, candidates, WHITE)
    for model in (WHITE, usual) if limit is not None else ():
        if not model.is_white:
            test = _tested(values, clipped, mean, candidates, model)
        if limit is not None and test.score <= limit(model):
            return test
    model, cost = _chosen(clipped, mean, candidates)
    # Two levels that are left look like noise that wanders, so that neither step is seen alone.
    if limit is not None and not known and not model.is_white:
        pair = _with_second_step(values, clipped, mean, candidates, cost)
        if pair is not None and pair.score > limit(pair.noise):
            return pair
    return _tested(values, clipped, mean, candidates, model)


def _with_second_step(
    values: Array, clipped: Array, mean: Array, candidates: Indices, cost: float
) -> StepTest | None:
    """Returns the test of a step beside another one that is not reported with it.

    cost: of the best model of a series with one step at most. None where two steps do not explain
    the series better than that.
    """
    points = values.size
    basis = _basis(mean)
    first = _best(clipped, basis, candidates, WHITE)
    places = np.arange(MINIMUM_AFTER, points - MINIMUM_AFTER + 1)
    places = places[np.abs(places - int(candidates[first.place])) >= MINIMUM_AFTER]
    level = (np.arange(points) >= int(candidates[first.place]))[:, None].astype(float)
    second = int(places[_best(clipped, _basis(np.hstack([mean, level])), places, WHITE).place])
    joined = np.hstack([mean, (np.arange(points) >= second)[:, None]])
    away = candidates[np.abs(candidates - second) >= MINIMUM_AFTER]
    model, joint_cost = _chosen(clipped, joined, away)
    if joint_cost + _step_cost(points, model) >= cost:
        return None
    return _tested(values, clipped, joined, away, model)


def _mean(at_s: Array, values: Array, known: Sequence[int], *, weekends: bool) -> Array:
    """Returns the columns of the mean without the step: level, seasons, known steps."""
    index = np.arange(at_s.size)
    columns = [np.ones((at_s.size, 1))]
    if seasons.covers_season(at_s):
        columns.append(seasons.season(at_s, seasons.identified_harmonics(at_s)))
    columns += [(index >= step)[:, None].astype(float) for step in known]
    mean = np.column_stack(columns)
    if not weekends or not seasons.is_coarse(at_s):
        return mean
    zones = seasons.weekends(at_s, MINIMUM_AFTER)
    if not zones.shape[1]:
        return mean
    # The time zone of the weekend is the one that explains most.
    basis = _basis(mean)
    rest = zones - basis @ (basis.T @ zones)
    squares = np.einsum("ij,ij->j", rest, rest)
    gains = (rest.T @ _clipped(values, basis)) ** 2 / np.maximum(squares, _MIN_SQUARE)
    return np.column_stack([mean, zones[:, int(np.argmax(gains))]])


def _step_cost(points: int, model: NoiseModel) -> float:
    """Returns what a step costs beside noise of a model."""
    cost = _STEP_COST + _SHORTNESS_COST / points
    return cost if model.is_white else cost + _DEPENDENT_COST


def _chosen(values: Array, mean: Array, candidates: Indices) -> tuple[NoiseModel, float]:
    """Returns the noise model that explains values best, with or without a step, and its cost."""
    points = values.size
    joined = np.column_stack([values, mean])
    costs = []
    for model in MODELS:
        whitened = model.whitened(joined)
        step = _best(whitened[:, 0], _basis(whitened[:, 1:]), candidates, model)
        own = math.log(model.variance) + _PARAMETER_COST * model.parameters
        with_step = max(step.square - float(np.max(step.gains)), 1e-300)
        without = points * math.log(max(step.square, 1e-300))
        stepped = points * math.log(with_step) + _step_cost(points, model)
        costs.append(own + min(without, stepped))
    best = int(np.argmin(costs))
    return MODELS[best], costs[best]


def _tested(
    values: Array,
    clipped: Array,
    mean: Array,
    candidates: Indices,
    model: NoiseModel,
) -> StepTest:
    """Returns the most likely step under a noise model. clipped: the values without outliers."""
    joined = model.whitened(np.column_stack([clipped, values, mean]))
    basis = _basis(joined[:, 2:])
    best = _best(joined[:, 0], basis, candidates, model)
    # Innovations are clipped about the best step, which would else be clipped itself.
    fit = joined[:, 0] - best.rest
    rest = joined[:, 0] - fit
    scale = _scale(rest)
    best = _best(fit + np.clip(rest, -CLIP * scale, CLIP * scale), basis, candidates, model)
    fit = fit + np.clip(rest, -CLIP * scale, CLIP * scale) - best.rest
    fitted = mean.shape[1]
    sd = float(np.sqrt(best.rest @ best.rest / (values.size - fitted - 1)))
    # Values without noise leave nothing but the rounding of their arithmetic.
    largest = float(np.max(np.abs(values)))
    exact = sd <= 1e-12 * largest
    place = int(candidates[best.place])
    se, freedom, error = 0.0, float(values.size - fitted - 1), None
    if not exact and best.square_of_column > 0:
        loose = np.clip(joined[:, 1] - fit, -_LOOSE_CLIP * scale, _LOOSE_CLIP * scale)
        error = _error(best.column, loose, place, sd, freedom)
        se, freedom = error.likelier()
    if exact:
        score = np.inf if abs(best.size) > 1e-9 * largest else 0.0
    else:
        is_outlier = abs(float(values[place] - clipped[place])) > scale
        lasting = _lasting_size(best, joined[:, 0] - fit, place, scale, is_outlier=is_outlier)
        score = error.score(lasting) if error is not None else 0.0
    plausible = candidates[best.gains >= best.gains[best.place] - _POSITION_LOSS * sd**2]
    return StepTest(
        place,
        int(plausible[0]),
        int(plausible[-1]),
        float(score),
        model,
        best.size,
        se,
        freedom,
        sd * math.sqrt(model.variance),
    )


def _lasting_size(step: _Step, rest: Array, place: int, scale: float, *, is_outlier: bool) -> float:
    """Returns the size of a step without what an outlier or a shock at its place explains.

    rest: innovations without the step and without single outliers. Where they have shocks of so
    many robust standard deviations (`scale`) as well, the one at the place of the step is another
    of them: it counts by what it exceeds the largest. is_outlier: of the value at the place, which
    then counts as one on the new level.
    """
    own = float(step.rest[place] + step.size * step.column[place])
    usual = abs(own)
    if is_outlier:
        usual = min(usual, abs(step.size * float(step.column[place])))
    # An outlier is two shocks that undo each other.
    padded = np.pad(rest, 1)
    pairs = np.abs(padded[:-1] + padded[1:])
    shocks = np.minimum(np.abs(rest), np.minimum(pairs[:-1], pairs[1:]))
    shocks[place] = 0.0
    largest = float(np.max(shocks))
    if largest > _SHOCK * scale:
        usual = min(usual, max(CLIP * scale, abs(own) - largest))
    share = (abs(own) - usual) * float(step.column[place]) / step.square_of_column
    return min(max(0.0, abs(step.size) - math.copysign(share, own * step.size)), abs(step.size))


@dataclass(frozen=True, slots=True)
class _Error:
    """Standard error of a step with its degrees of freedom: with one variance for all points, and
    with an own one for each side (Welch, Satterthwaite). changed: probability that the noise
    differs from side to side."""

    common: tuple[float, float]
    own: tuple[float, float]
    changed: float

    def likelier(self) -> tuple[float, float]:
        """Returns the standard error and the degrees of freedom that the residuals speak for."""
        return self.own if self.changed > 0.5 else self.common

    def score(self, size: float) -> float:
        """Returns the standard normal value that is as rare as a step of this size."""
        rare = self.changed * _rarity(size, *self.own)
        rare += (1 - self.changed) * _rarity(size, *self.common)
        return -float(special.ndtri(max(rare, 1e-300)))


def _error(column: Array, rest: Array, place: int, sd: float, freedom: float) -> _Error:
    """Returns the standard error of a step.

    A side whose residuals vary more than the whole may have its own variance: otherwise a growth of
    the noise would be a step. Few points vary more by chance as well, so that both are weighed by
    their likelihood: the variance of a side is that of all, or drawn from a wide prior (inverse
    gamma, worth _PRIOR_POINTS points).
    """
    variances, degrees, evidence = [], [], 0.0
    for side in (rest[max(0, place - _SIDE_POINTS) : place], rest[place:]):
        square, n = float(side @ side) / sd**2, side.size - 1
        own = (_PRIOR_POINTS + square) / (_PRIOR_POINTS + n)
        if own <= 1:
            variances.append(1.0)
            degrees.append(freedom)
            continue
        shape, further = _PRIOR_POINTS / 2, n / 2
        evidence += special.gammaln(shape + further) - special.gammaln(shape) + square / 2
        evidence += shape * math.log(shape) - (shape + further) * math.log(shape + square / 2)
        variances.append(own)
        degrees.append(_PRIOR_POINTS + n)
    length = float(column @ column)
    before = float(column[:place] @ column[:place]) * variances[0]
    behind = float(column[place:] @ column[place:]) * variances[1]
    total = before + behind
    welch = total**2 / (before**2 / degrees[0] + behind**2 / degrees[1])
    own_error = sd * math.sqrt(total) / length, min(freedom, welch)
    odds = _CHANGE_ODDS * math.exp(min(evidence, 100.0))
    return _Error((sd / math.sqrt(length), freedom), own_error, odds / (1 + odds))


def _rarity(size: float, se: float, freedom: float) -> float:
    """The probability of a step of a size or more by chance (Student's t)."""
    return float(special.stdtr(freedom, -size / se)) if se > 0 else 0.5


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
    """Returns the values without those that are far from the fit and from their neighbours."""
    fit = basis @ (basis.T @ values)
    local = None
    for _ in range(2):
        rest = values - fit
        middle = _median(rest)
        limit = CLIP * _scale(rest - middle)
        usual = fit + middle
        clipped = np.clip(values, usual - limit, usual + limit)
        if np.any(clipped != values):
            local = _local(values) if local is None else local
            clipped = np.clip(
                values, np.minimum(usual, local) - limit, np.maximum(usual, local) + limit
            )
        fit = basis @ (basis.T @ clipped)
    return clipped


def _local(values: Array) -> Array:
    """The median of each value and its _NEIGHBOURS on either side."""
    padded = np.pad(values, _NEIGHBOURS, mode="reflect")
    rows = sliding_window_view(padded, 2 * _NEIGHBOURS + 1)
    return np.asarray(np.partition(rows, _NEIGHBOURS, axis=1)[:, _NEIGHBOURS])


def _scale(rest: Array) -> float:
    return _ROBUST_SD * _median(np.abs(rest)) or float(np.std(rest))


def _median(values: Array) -> float:
    """The upper median: np.median takes most of the time of a test."""
    half = values.size // 2
    return float(np.partition(values, half)[half])


@dataclass(frozen=True, slots=True)
class _Step:
    """A candidate: its position, its size, its column beside the other regressors with its square,
    what it leaves of the values, the square of the values beside the regressors; and of all
    candidates the squares that each explains."""

    place: int
    size: float
    column: Array
    square_of_column: float
    rest: Array
    square: float
    gains: Array


def _best(values: Array, basis: Array, candidates: Indices, model: NoiseModel) -> _Step:
    """Returns the step that explains most. values, basis: whitened."""
    rest = values - basis @ (basis.T @ values)
    every = model.step_products(np.column_stack([rest, basis]))[candidates]
    products, inside = every[:, 0], every[:, 1:]
    squares = model.step_squares(values.size)[candidates]
    squares = squares - np.einsum("ij,ij->i", inside, inside)
    usable = squares > _MIN_SQUARE
    gains = np.where(usable, products**2 / np.where(usable, squares, 1.0), 0.0)
    place = int(np.argmax(gains))
    square = float(rest @ rest)
    if not usable[place]:
        return _Step(place, 0.0, np.zeros(values.size), 0.0, rest, square, gains)
    size = float(products[place] / squares[place])
    column = model.step(values.size, int(candidates[place])) - basis @ inside[place]
    return _Step(place, size, column, float(squares[place]), rest - size * column, square, gains)


def correlation_of(rest: Array, fitted: int) -> float:
    """Returns the lag-1 autocorrelation of residuals, with the bias of fitted columns added back.

    fitted: number of the columns.
    """
    square = float(rest @ rest)
    if square <= 0:
        return 0.0
    raw = float(rest[1:] @ rest[:-1]) / square
    corrected = raw + (fitted + (fitted + 2) * raw) / rest.size
    return float(np.clip(corrected, -0.5, 0.98))
