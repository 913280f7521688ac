"""The records of what neighbours take, and how each is told in the `--json` output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.analysis.attribution import Attribution
from nephoscope.analysis.compare import Comparison, estimate_json
from nephoscope.analysis.interference import Triple, Variation
from nephoscope.isolation.dose_response import Response
from nephoscope.isolation.recovery import Drift, Recovery
from nephoscope.model import Better, Estimate, Factors

BY_NEIGHBOUR = "adjacent baseline trials"
BY_ROUND = "baseline trials of the round"
PAIRINGS = (BY_NEIGHBOUR, BY_ROUND)


@dataclass(frozen=True, slots=True)
class Victim:
    """One line that is watched. factors: its own, without those of the load beside it."""

    benchmark: str
    metric: str
    target: str
    factors: Factors
    better: Better
    unit: str

    def to_json(self) -> dict[str, Any]:
        """What names it in the `--json` output."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "target": self.target,
            "factors": dict(self.factors),
        }


@dataclass(frozen=True, slots=True)
class Cell:
    """One victim beside one load: resource, intensity (0..1, asked) and number of neighbours.

    comparison: loaded against quiet, paired by round, its verdict corrected over all cells.
    factor: its ratio, above 1 is worse (the median's kind); factor_mean: of means (Fieller);
    factor_p99: of the 99th percentiles of merged histograms of `p99_metric`, None without any.
    achieved: what the load reached of what it reaches alone at intensity 1. rounds: the triples
    behind it; trials: their loaded trials' names. pairing: one of PAIRINGS. notes: what was not
    given, and why.
    """

    victim: Victim
    resource: str
    intensity: float
    neighbours: int
    comparison: Comparison
    factor: Estimate | None
    factor_mean: Estimate | None
    factor_p99: Estimate | None
    p99_metric: str
    variation: Variation
    recovery: Recovery
    achieved: Estimate | None
    attribution: Attribution | None
    rounds: tuple[Triple, ...]
    trials: tuple[str, ...]
    rounds_left_out: int
    pairing: str
    notes: tuple[str, ...] = ()

    @property
    def has_interval(self) -> bool:
        """Whether the factor has both sides of an interval."""
        return self.factor is not None and None not in (self.factor.low, self.factor.high)

    @property
    def excludes_one(self) -> bool:
        """Whether the plain interval of the factor leaves out 1."""
        if self.factor is None or self.factor.low is None or self.factor.high is None:
            return False
        return self.factor.low > 1 or self.factor.high < 1

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            **self.victim.to_json(),
            "resource": self.resource,
            "intensity": self.intensity,
            "neighbours": self.neighbours,
            "n": self.comparison.n_a,
            "pairing": self.pairing,
            "factor": _json(self.factor),
            "factor_mean": _json(self.factor_mean),
            "factor_p99": _json(self.factor_p99),
            "p99_metric": self.p99_metric,
            "variation_cv": _json(self.variation.cv),
            "variation_robust": _json(self.variation.robust),
            "recovery": {
                "word": self.recovery.word,
                "sentence": self.recovery.sentence,
                "ratio": _json(self.recovery.ratio),
            },
            "achieved_intensity": _json(self.achieved),
            "attribution": self.attribution.to_json() if self.attribution else None,
            "p": self.comparison.p,
            "p_holm": self.comparison.p_holm,
            "verdict": {
                "word": self.comparison.verdict.word,
                "sentence": self.comparison.verdict.sentence,
            },
            "rounds": [
                {
                    "round": one.round,
                    "quiet": one.quiet,
                    "before": one.before,
                    "during": one.loaded,
                    "after": one.after,
                }
                for one in self.rounds
            ],
            "rounds_left_out": self.rounds_left_out,
            "warnings": list(self.comparison.warnings),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class DosePoint:
    """One dose: what was asked and reached of full load (0..1), and the factor there."""

    asked: float
    achieved: Estimate | None
    factor: Estimate | None


@dataclass(frozen=True, slots=True)
class DoseResponse:
    """One victim over the intensities of one resource, the quiet (dose 0) among them.

    by: "achieved" or "asked", the dose that the slope is by. i_qos: Krebs' metric between the
    lowest load and the highest; None with fewer than two.
    """

    victim: Victim
    resource: str
    neighbours: int
    points: tuple[DosePoint, ...]
    response: Response
    by: str
    i_qos: Estimate | None

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        trend = self.response.trend
        return {
            **self.victim.to_json(),
            "resource": self.resource,
            "neighbours": self.neighbours,
            "word": self.response.word,
            "sentence": self.response.sentence,
            "slope": _json(self.response.slope),
            "slope_by": self.by,
            "p": trend.p if trend else None,
            "page_l": trend.statistic if trend else None,
            "i_qos": _json(self.i_qos),
            "points": [
                {
                    "asked": one.asked,
                    "achieved": _json(one.achieved),
                    "factor": _json(one.factor),
                }
                for one in self.points
            ],
        }


@dataclass(frozen=True, slots=True)
class Index:
    """How well one victim is kept apart from one resource's load at full intensity.

    index: 1 nothing is taken, 0 as much as fair sharing would take (analysis/fairness.py). jain:
    fairness between the victim and its neighbours, each by what it gets of what it gets alone.
    own: the victim is the resource's own; chosen: the one that stands for the resource.
    """

    victim: Victim
    resource: str
    neighbours: int
    index: Estimate
    jain: Estimate | None
    own: bool
    chosen: bool

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            **self.victim.to_json(),
            "resource": self.resource,
            "neighbours": self.neighbours,
            "index": _json(self.index),
            "jain": _json(self.jain),
            "own": self.own,
            "chosen": self.chosen,
        }


@dataclass(frozen=True, slots=True)
class IdleControl:
    """Cells of a neighbour that does nothing: how many intervals exclude 1 (chance gives 1 in 20).

    share: Wilson's interval; None without cells that have an interval.
    """

    cells: int
    outside: int
    share: Estimate | None
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "cells": self.cells,
            "outside": self.outside,
            "share": _json(self.share),
            "sentence": self.sentence,
        }


@dataclass(frozen=True, slots=True)
class QuietDrift:
    """Whether a victim's quiet trials moved over the run."""

    victim: Victim
    drift: Drift

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            **self.victim.to_json(),
            "word": self.drift.word,
            "ratio": _json(self.drift.ratio),
            "p": self.drift.p,
        }


@dataclass(frozen=True, slots=True)
class Isolation:
    """All that a run with loads beside its victims tells. notes: what was not given, and why.

    named: what beside named as the resource, by target (analysis/naming.py); empty where nothing
    was named.
    """

    cells: tuple[Cell, ...]
    responses: tuple[DoseResponse, ...]
    indices: tuple[Index, ...]
    idle: IdleControl | None
    drifts: tuple[QuietDrift, ...]
    named: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output (contracts/result.schema.json)."""
        return {
            "cells": [one.to_json() for one in self.cells],
            "dose_responses": [one.to_json() for one in self.responses],
            "indices": [one.to_json() for one in self.indices],
            "a_a": self.idle.to_json() if self.idle else None,
            "drifts": [one.to_json() for one in self.drifts],
            "named": [dict(one) for one in self.named],
            "notes": list(self.notes),
        }


def _json(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate_json(estimate)
