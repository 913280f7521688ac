"""Documents of predictions for server types that nobody measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nephoscope.core.model import Estimate


@dataclass(frozen=True, slots=True)
class PredictedType:
    """A server type with its predicted rate. predicted: None where `reason` says why there is none.
    measured: its own figure, which the prediction does not use; None without one."""

    provider: str
    type: str
    cpu_model: str
    predicted: Estimate | None
    measured: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HoldOutCheck:
    """How well the types of one provider, or with one CPU model, were predicted from all others.

    coverage: share of the types inside their intervals. error: median of the relative errors.
    half_width: median half width of the intervals, relative to the value.
    """

    group: str
    coverage: Estimate
    error: float
    half_width: float


@dataclass(frozen=True, slots=True)
class TypePrediction:
    """Predicted rates of a work, the highest first.

    checks: by what is left out (provider, CPU model). carried_by: source of figures -> factor by
    which the error grows without it. left_out: reason -> types that are not used. not_measured:
    benchmarks that would carry the prediction of a run's machine, which the run does not have.
    caveats: sentences on how that machine was measured.
    """

    title: str
    unit: str
    confidence: float
    types: tuple[PredictedType, ...]
    types_in_all: int
    trained_on: int
    checks: Mapping[str, tuple[HoldOutCheck, ...]]
    carried_by: Mapping[str, float]
    left_out: Mapping[str, int]
    lacks: str
    not_measured: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
