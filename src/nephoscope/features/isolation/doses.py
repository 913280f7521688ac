"""Of each resource: dose and response, how well it is kept apart, how fairly it is shared."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate
from nephoscope.features.isolation import dose_response, fairness, resource_names
from nephoscope.features.isolation.records import Cell, DosePoint, DoseResponse, Index
from nephoscope.features.isolation.trial_pairs import QUOTA, AnalysedTrials, WatchedLine, label
from nephoscope.measure.plans import resources
from nephoscope.stats import compare, interference
from nephoscope.stats.statistics.fairness import jain_of_rounds
from nephoscope.stats.statistics.values import Array, Refused

FULL = 0.999
"""Intensities from here on count as full."""


def responses(
    line: WatchedLine, cells: Sequence[Cell], run: AnalysedTrials, notes: list[str]
) -> Iterable[DoseResponse]:
    """One for each resource and number of neighbours with two intensities or more."""
    loaded = (cell for cell in cells if cell.resource != resources.IDLE)
    groups = group_by(loaded, lambda cell: (cell.resource, cell.neighbours))
    for (resource, neighbours), own in groups.items():
        if len(own) < 2:
            continue
        own.sort(key=lambda cell: cell.intensity)
        try:
            yield _response(line, resource, neighbours, own, run)
        except Refused as reason:
            notes.append(
                f"{label(line.victim)} with load on {resource}: no dose-response analysis. {reason}"
            )


def _response(
    line: WatchedLine, resource: str, neighbours: int, cells: Sequence[Cell], run: AnalysedTrials
) -> DoseResponse:
    by_round = [{triple.round: triple for triple in cell.rounds} for cell in cells]
    rounds = sorted(set.intersection(*(set(own) for own in by_round)))
    better = line.victim.better
    factors = np.array(
        [
            [1.0, *np.exp(interference.log_factors([own[r] for own in by_round], better))]
            for r in rounds
        ]
    ).reshape(len(rounds), len(cells) + 1)
    requested = [0.0, *(cell.intensity for cell in cells)]
    reached = _reached(cells, rounds, run)
    doses = np.tile(requested, (len(rounds), 1)) if reached is None else reached
    response = dose_response.respond(
        factors, doses, requested=requested, margin=run.margin, confidence=run.confidence
    )
    return DoseResponse(
        victim=line.victim,
        resource=resource,
        neighbours=neighbours,
        points=tuple(DosePoint(c.intensity, c.achieved, c.factor) for c in cells),
        response=response,
        by="requested" if reached is None else "achieved",
        i_qos=_i_qos(cells, run.confidence),
    )


def _reached(cells: Sequence[Cell], rounds: Sequence[int], run: AnalysedTrials) -> Array | None:
    """Returns what the load reached in each round, 0 in quiet first; None unless known
    everywhere."""
    columns = [np.zeros(len(rounds))]
    for cell in cells:
        means = {
            triple.round: statistics.fmean(run.achieved[trial])
            for triple, trial in zip(cell.rounds, cell.trials, strict=True)
            if run.achieved.get(trial)
        }
        if not means.keys() >= set(rounds):
            return None
        columns.append(np.array([means[number] for number in rounds]))
    return np.column_stack(columns)


def _i_qos(cells: Sequence[Cell], confidence: float) -> Estimate | None:
    """Krebs' metric from the lowest load to the highest, paired by round."""
    low, high = cells[0], cells[-1]
    loads = [cell.achieved.value if cell.achieved else cell.intensity for cell in (low, high)]
    better = low.victim.better
    a, b = ({triple.round: triple.loaded for triple in cell.rounds} for cell in (low, high))
    if not a.keys() & b.keys() or min(loads) <= 0:
        return None
    try:
        sides = compare.common_rounds(a, b)
        comparison = compare.paired(*sides, better=better, confidence=confidence)
        times = interference.turned(comparison.ratio, better)
        return fairness.krebs_of_ratio(times, loads[1] / loads[0]) if times else None
    except Refused:
        return None


def indices(cells: Sequence[Cell], run: AnalysedTrials) -> list[Index]:
    """The index of every victim beside every resource at full intensity; one chosen for each."""
    result = []
    for cell in cells:
        if cell.resource in (resources.IDLE, QUOTA) or cell.intensity < FULL or not cell.factor:
            continue
        try:
            value = fairness.isolation_index(cell.factor, cell.neighbours)
        except Refused:
            continue
        result.append(
            Index(
                cell.victim,
                cell.resource,
                cell.neighbours,
                value,
                _jain(cell, run),
                own=resource_names.canary_of(cell, run.records) == cell.resource,
                chosen=False,
            )
        )
    best: dict[tuple[str, str, int], int] = {}
    for index in sorted(result, key=lambda index: (not index.own, index.index.value)):
        best.setdefault((index.victim.target, index.resource, index.neighbours), id(index))
    return [replace(index, chosen=id(index) in best.values()) for index in result]


def _jain(cell: Cell, run: AnalysedTrials) -> Estimate | None:
    """Fairness between the victim and its neighbours, by what each gets of what it gets alone."""
    rows = []
    for triple, trial in zip(cell.rounds, cell.trials, strict=True):
        neighbours = run.achieved.get(trial, ())
        if len(neighbours) == cell.neighbours:
            part = float(np.exp(-interference.log_factors([triple], cell.victim.better)[0]))
            rows.append([part, *neighbours])
    if not rows:
        return None
    try:
        return jain_of_rounds(rows, confidence=run.confidence)
    except Refused:
        return None
