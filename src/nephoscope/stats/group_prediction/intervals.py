"""Prediction intervals that hold for a group that was never seen: conformal over whole groups.

Every group is predicted from the others; its scores are the errors relative to a power of the
predicted standard deviation. Groups count alike, however large they are, because the next one is
one more draw of a group (Dunn, Wasserman and Ramdas, JASA 118 (2023): two-layer hierarchical
models).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nephoscope.stats.group_prediction.model import (
    GroupedProcess,
    Predicted,
    ProcessShape,
    StandardRows,
)
from nephoscope.stats.statistics.values import Array, Refused

LEAST_GROUPS = 3
"""Groups from which on there is an interval: fewer tell nothing of how groups differ."""
LEAST_ROWS = 30
_LEAST_OF_GROUP = 8
"""Rows from which on a group is one of its own; smaller ones are one group together."""
_WHOLE_GROUP = 30
"""Rows from which on a group counts as much as a large one."""
_MOST_OF_GROUP = 400
"""Rows that a group counts as at most in the fit, so that the largest does not decide alone."""
_FARTHEST = 0.99
"""Quantile of the distances at which left-out groups were predicted; beyond it nothing is."""
_WIDENING = 1.5
"""Power of the predicted deviation with which intervals widen away from the data. With 1 they are
too wide near the data and too narrow far away, because the process takes the rows of a group for
independent ones (measured on published data: decision 0100)."""
_LEVELS = 20
SHAPES = tuple(
    ProcessShape(scale, noise, amplitude)
    for scale in (0.5, 1.0, 2.0)
    for noise in (0.01, 0.03)
    for amplitude in (0.3, 1.0)
)
SMALL_GROUPS = "other"


@dataclass(frozen=True, slots=True)
class GroupCheck:
    """How well a group was predicted from the others: share of its rows inside their intervals,
    median error relative to the value, median half width of the intervals, as ratios."""

    group: str
    rows: int
    coverage: float
    error: float
    half_width: float


@dataclass(frozen=True, slots=True)
class GroupForecast:
    """Predicted values of new rows.

    value, low, high: shape (rows,); NaN where the row is farther from all data than left-out groups
    were. checks: by grouping and group, each predicted from the others.
    """

    value: Array
    low: Array
    high: Array
    is_near: Array
    confidence: float
    rows: int
    shape: ProcessShape
    checks: Mapping[str, Sequence[GroupCheck]]


def forecast(
    features: Array,
    values: Array,
    groupings: Mapping[str, Sequence[str]],
    new: Array,
    *,
    confidence: float = 0.9,
) -> GroupForecast:
    """Returns the values of new rows, which belong to a group of each grouping not seen before.

    features: shape (rows, columns), numbers on a scale on which differences matter alike
    everywhere, such as logarithms. values: positive, shape (rows,); their logarithms are modelled.
    groupings: name -> group of each row. The interval is the widest of those of the groupings, of
    which the first also chooses the shape of the process. new: shape (new rows, columns). Raises
    Refused for too few rows or groups, and for numbers that are none.
    """
    _check(features, values, new)
    logs = np.log(values)
    named = {name: _merged(np.asarray(groups, dtype=object)) for name, groups in groupings.items()}
    first = next(iter(named.values()))
    weights = _weights(first)
    rows = StandardRows(features)
    shape = _chosen(rows, logs, first, weights)
    process = GroupedProcess(rows, logs, first, weights, shape)
    predicted = process.predict(new)
    half, near = np.zeros(len(new)), np.ones(len(new), dtype=bool)
    checks: dict[str, Sequence[GroupCheck]] = {}
    for name, groups in named.items():
        if len(np.unique(groups)) < LEAST_GROUPS:
            if name == next(iter(named)):
                raise Refused(
                    f"The {len(features)} rows are of {len(np.unique(groups))} groups by {name}; "
                    f"an interval for another one needs {LEAST_GROUPS}."
                )
            continue
        own = process if groups is first else GroupedProcess(rows, logs, groups, weights, shape)
        out = own.left_out()
        scores = np.abs(logs - out.mean) / out.deviation**_WIDENING
        level = _level(scores, groups, confidence)
        half = np.maximum(half, _quantile(scores, groups, level) * predicted.deviation**_WIDENING)
        near &= predicted.deviation <= np.quantile(out.deviation, _FARTHEST) * (1 + 1e-9)
        checks[name] = _checks(logs, out, scores, groups, level)
    outside = np.where(near, 0.0, np.nan)
    return GroupForecast(
        np.exp(predicted.mean) + outside,
        np.exp(predicted.mean - half) + outside,
        np.exp(predicted.mean + half) + outside,
        near,
        confidence,
        len(features),
        shape,
        checks,
    )


def _check(features: Array, values: Array, new: Array) -> None:
    if len(values) < LEAST_ROWS:
        raise Refused(f"{len(values)} rows are too few; a prediction needs {LEAST_ROWS}.")
    if not (np.isfinite(features).all() and np.isfinite(new).all()):
        raise Refused("A feature is missing or infinite; leave out such rows or columns.")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise Refused("A value is not a number above 0, and its logarithm is needed.")


def _merged(groups: Array) -> Array:
    """Returns the groups with the small ones as one."""
    names, counts = np.unique(groups.astype(str), return_counts=True)
    small = set(names[counts < _LEAST_OF_GROUP])
    return np.array([SMALL_GROUPS if name in small else name for name in groups.astype(str)])


def _weights(groups: Array) -> Array:
    names, counts = np.unique(groups, return_counts=True)
    by_name = dict(zip(names, np.minimum(1.0, _MOST_OF_GROUP / counts), strict=True))
    return np.array([by_name[name] for name in groups])


def _chosen(rows: StandardRows, logs: Array, groups: Array, weights: Array) -> ProcessShape:
    """Returns the shape by which left-out groups are predicted best, groups counting alike."""

    def error(shape: ProcessShape) -> float:
        out = GroupedProcess(rows, logs, groups, weights, shape).left_out()
        return float(np.average(np.abs(logs - out.mean), weights=weights))

    return min(SHAPES, key=error)


def _quantile(scores: Array, groups: Array, level: float) -> float:
    """Returns the quantile of scores in which groups count alike, small ones by their size."""
    order = np.argsort(scores, kind="stable")
    names, counts = np.unique(groups, return_counts=True)
    of_group = np.minimum(1.0, counts / _WHOLE_GROUP) / counts
    weights = of_group[np.searchsorted(names, groups)][order]
    reached = np.cumsum(weights) / weights.sum()
    place = min(int(np.searchsorted(reached, level - 1e-12)), len(order) - 1)
    return float(scores[order][place])


def _level(scores: Array, groups: Array, confidence: float) -> float:
    """Returns the level of the quantile by which a left-out group is covered as often as wanted in
    the mean over groups, each held against the scores of the others."""
    levels = np.linspace(confidence, 1.0, _LEVELS, endpoint=False)

    def is_enough(level: float) -> bool:
        shares = [
            float(np.mean(scores[own] <= _quantile(scores[~own], groups[~own], level)))
            for own in (groups == name for name in np.unique(groups))
        ]
        return bool(np.mean(shares) >= confidence)

    # A higher level covers no less.
    return float(levels[min(bisect_left(levels, True, key=is_enough), _LEVELS - 1)])


def _checks(
    logs: Array, out: Predicted, scores: Array, groups: Array, level: float
) -> list[GroupCheck]:
    """Returns each group as the others predict it, with the quantile of the others' scores."""
    checks = []
    for name in np.unique(groups):
        own = groups == name
        limit = _quantile(scores[~own], groups[~own], level)
        checks.append(
            GroupCheck(
                str(name),
                int(own.sum()),
                float(np.mean(scores[own] <= limit)),
                float(np.median(np.abs(np.expm1(out.mean[own] - logs[own])))),
                float(np.median(np.expm1(limit * out.deviation[own] ** _WIDENING))),
            )
        )
    return checks


def errors_without(
    features: Array,
    values: Array,
    groups: Sequence[str],
    blocks: Mapping[str, Sequence[int]],
    shape: ProcessShape,
) -> dict[str, float]:
    """Returns the mean error of left-out groups without each block of columns, relative to that
    with all of them: how much a prediction owes to the block.

    blocks: name -> places of its columns. shape: that of the forecast. Arguments else as of
    `forecast`.
    """
    logs = np.log(values)
    named = _merged(np.asarray(groups, dtype=object))
    weights = _weights(named)

    def error(columns: Sequence[int]) -> float:
        rows = StandardRows(features[:, columns])
        process = GroupedProcess(rows, logs, named, weights, shape)
        return float(np.average(np.abs(logs - process.left_out().mean), weights=weights))

    every = range(features.shape[1])
    whole = error([*every])
    return {
        name: error([place for place in every if place not in set(own)]) / whole
        for name, own in blocks.items()
        if len(own) < features.shape[1]
    }
