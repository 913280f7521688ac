"""What neighbours take: every victim beside every load, from the trials of a stored run.

A run has such a part when its plan varies the factor `resource`: each loaded trial is held against
the quiet ones right before and after it (or, where a plan does not go around its quiet, against
its round's baseline trials). Intervals are plain; verdicts are corrected over all cells (Holm).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean, median

from nephoscope.core.naming import as_number
from nephoscope.features.experiments.records import SUSPICIOUS
from nephoscope.features.isolation import cells as isolation_cells
from nephoscope.features.isolation import doses, money, recovery, resource_names, trial_pairs
from nephoscope.features.isolation.records import (
    BaselineDrift,
    Cell,
    DoseResponse,
    IdleControl,
    Isolation,
)
from nephoscope.features.isolation.trial_pairs import AnalysedTrials, WatchedLine
from nephoscope.measure.plans import resources
from nephoscope.results.run_data import RunData
from nephoscope.stats import compare
from nephoscope.stats.statistics import proportions


def analyse(data: RunData) -> Isolation:
    """Returns the losses of every victim beside every load of a run with the factor `resource`."""
    confidence = data.confidence
    run = AnalysedTrials(
        records={record.key.name: record for record in data.records if record.key.round > 0},
        distributions=data.distributions,
        achieved=trial_pairs.achieved(data.values),
        shares=trial_pairs.shares(data.values),
        margin=float(data.manifest.margin or compare.MARGIN),
        confidence=confidence,
    )
    lines = trial_pairs.watched(data.metrics, data.values, data.distributions, run.records)
    cells: list[Cell] = []
    responses: list[DoseResponse] = []
    notes: list[str] = []
    pairs = [(line, isolation_cells.pairs_by_load(line, run)) for line in lines]
    prior = isolation_cells.pool_dependence(pairs)
    for line, by_load in pairs:
        line_cells = isolation_cells.cells(line, by_load, run, prior, notes)
        cells += line_cells
        responses += doses.responses(line, line_cells, run, notes)
    cells = isolation_cells.corrected(cells, confidence)
    prices = {
        str(target["name"]): as_number(target.get("per_hour")) for target in data.manifest.targets
    }
    cells = [_with_loss(cell, prices.get(cell.victim.target)) for cell in cells]
    if not cells:
        notes.append(
            "No slowdown can be computed: no loaded trial has a baseline trial in its round."
        )
    return Isolation(
        cells=tuple(cells),
        responses=tuple(responses),
        indices=tuple(doses.indices(cells, run)),
        idle=_idle(cells, confidence),
        drifts=tuple(_drifts(lines, run)),
        named=resource_names.named(cells, run.records),
        notes=tuple(dict.fromkeys(notes)),
    )


def _with_loss(cell: Cell, price_per_h: float | None) -> Cell:
    return replace(cell, lost=money.lost_of(cell.factor, price_per_h) if cell.factor else None)


def _idle(cells: Sequence[Cell], confidence: float) -> IdleControl | None:
    """Returns how often an idle neighbour seems to take something."""
    from scipy.special import bdtrc

    idle = [cell for cell in cells if cell.resource == resources.IDLE]
    if not idle:
        return None
    decided = [cell for cell in idle if cell.has_interval]
    outside = sum(cell.excludes_one for cell in decided)
    if not decided:
        text = (
            "A/A control: no comparison with an idle neighbour has enough rounds for an interval."
        )
        return IdleControl(0, 0, None, text)
    share = proportions.wilson(outside, len(decided), confidence=confidence)
    text = (
        f"A/A control: with an idle neighbour, {outside} of {len(decided)} intervals "
        f"exclude 1; {(1 - confidence) * len(decided):.1f} are expected by chance."
    )
    if outside and bdtrc(outside - 1, len(decided), 1 - confidence) < SUSPICIOUS:
        text += " That is too many; do not rely on small factors of this run."
    return IdleControl(len(decided), outside, share, text)


def _drifts(lines: Sequence[WatchedLine], run: AnalysedTrials) -> Iterable[BaselineDrift]:
    """One value a round: baseline trials of one round share its luck and would feign a trend."""
    for line in lines:
        rounds = trial_pairs.baseline_by_round(line, run.records).values()
        drift = recovery.drift(
            [fmean(run.records[name].started_at for name in own) for own in rounds],
            [median(line.values[name] for name in own) for own in rounds],
            better=line.victim.better,
            confidence=run.confidence,
        )
        yield BaselineDrift(line.victim, drift)
