"""Compares figures that a part measures with those that it simulates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.studies.comparison import measured, rules
from nephoscope.features.studies.comparison.rules import Range
from nephoscope.features.studies.comparison.side_by_side import part_failure
from nephoscope.features.studies.definition.layouts import PredictionLayout
from nephoscope.features.studies.definition.study import Part

PREDICTED, DIFFERS, UNDECIDED, ABSENT = "as simulated", "differs", "not decided", "not measured"


@dataclass(frozen=True, slots=True)
class PredictedValue:
    """A measured and a simulated figure. absent: why one of them is missing.

    ratio: measured over simulated, with the widest interval that both intervals allow.
    """

    name: str
    verdict: str
    measured: Estimate | None = None
    simulated: Estimate | None = None
    ratio: Estimate | None = None
    absent: str = ""


@dataclass(frozen=True, slots=True)
class ModelPrediction:
    """A metric that was measured and simulated under several conditions.

    obstacle: why nothing is decided, '' where the part's controls hold.
    """

    part: str
    title: str
    unit: str
    within: float
    within_why: str
    why: str
    values: tuple[PredictedValue, ...]
    obstacle: str = ""


def compare_predictions(part: Part, result: RunResult) -> list[ModelPrediction]:
    """Returns each metric of the part that a run of its plan measured and simulated.

    Where a control of the whole part does not hold, nothing is decided.
    """
    failure = part_failure(part, result) if part.predictions else None
    obstacle = failure.reason if failure else ""
    return [
        ModelPrediction(
            part.name,
            layout.title,
            layout.unit,
            layout.within,
            layout.within_why,
            layout.why,
            tuple(_value(layout, name, result, obstacle) for name in layout.lines),
            obstacle,
        )
        for layout in part.predictions
    ]


def summarise(prediction: ModelPrediction) -> str:
    """Returns a sentence with the count of each verdict, and why nothing is decided."""
    counts = Counter(value.verdict for value in prediction.values)
    remaining = [
        f"{counts[verdict]} {verdict}"
        for verdict in (DIFFERS, UNDECIDED, ABSENT)
        if counts[verdict]
    ]
    head = (
        f"{counts[PREDICTED]} of {len(prediction.values)} conditions are as simulated within "
        f"{100 * prediction.within:g} % ({prediction.within_why})"
    )
    reason = prediction.obstacle and f" {prediction.obstacle[0].upper()}{prediction.obstacle[1:]}."
    return "; ".join([head, *remaining]) + "." + reason


def _value(layout: PredictionLayout, name: str, result: RunResult, obstacle: str) -> PredictedValue:
    line = layout.lines[name]
    try:
        lab = measured.value(result, layout.measured, line.measured)
        model = measured.value(result, layout.simulated, line.simulated)
    except measured.Absent as error:
        return PredictedValue(name, ABSENT, absent=str(error))
    ratio = _ratio(lab, model)
    agrees = rules.lies_within(ratio, Range(1 / (1 + layout.within), 1 + layout.within))
    verdict = {True: PREDICTED, False: DIFFERS, None: UNDECIDED}[None if obstacle else agrees]
    return PredictedValue(name, verdict, lab, model, ratio)


def _ratio(lab: Estimate, model: Estimate) -> Estimate | None:
    if model.value <= 0:
        return None
    low = high = None
    if lab.low is not None and model.high:
        low = lab.low / model.high
    if lab.high is not None and model.low is not None and model.low > 0:
        high = lab.high / model.low
    return Estimate(
        lab.value / model.value,
        low,
        high,
        confidence=lab.confidence,
        n=min(lab.n, model.n),
        unit="times",
        method="ratio, with the widest interval that both intervals allow",
    )
