"""The advice on an application: its record, and how it is put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.features.advise import classes, recommendations, service_levels
from nephoscope.features.advise.answers import Application
from nephoscope.features.advise.classes import ATTACHED, ClassScore
from nephoscope.features.advise.forecast import Forecast
from nephoscope.features.advise.prediction import BackTest
from nephoscope.features.advise.recommendations import RecommendedBenchmark
from nephoscope.features.advise.service_levels import ServiceLevel
from nephoscope.features.advise.telemetry import Telemetry
from nephoscope.features.market.prediction_records import TypePrediction


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on one application.

    answers: those that are known. primary: class with the highest score. resource: the dominant
    one; null where it is not known. facts, notes: sentences. telemetry, forecast, back_test,
    published: null where no process was observed, and where the store or the imported server types
    were not asked.
    """

    name: str
    answers: Mapping[str, Any]
    classes: tuple[ClassScore, ...]
    primary: str
    resource: str | None
    levels: tuple[ServiceLevel, ...]
    benchmarks: tuple[RecommendedBenchmark, ...]
    facts: tuple[str, ...]
    notes: tuple[str, ...] = ()
    telemetry: Telemetry | None = None
    forecast: Forecast | None = None
    back_test: BackTest | None = None
    published: TypePrediction | None = None


def advise(application: Application, telemetry: Telemetry | None = None) -> Advice:
    """Returns the advice on an application by its answers and an observed process."""
    io_share = None if telemetry is None else telemetry.share("disk")
    scores = classes.classify(application, io_share)
    resource = resource_of(application, telemetry)
    return Advice(
        application.name,
        application.model_dump(exclude={"name"}, exclude_none=True),
        scores,
        classes.primary(scores),
        resource,
        service_levels.to_ask_for(application),
        recommendations.benchmarks(application, scores, resource),
        recommendations.facts(application, scores),
        tuple(_disagreements(application, telemetry)),
        telemetry,
    )


def resource_of(application: Application, telemetry: Telemetry | None) -> str | None:
    """Returns the dominant resource: the declared one, else that of the observed process."""
    if application.resource is not None or telemetry is None:
        return application.resource
    return telemetry.dominant if telemetry.dominant in recommendations.RESOURCES else None


def _disagreements(application: Application, telemetry: Telemetry | None) -> Iterator[str]:
    """Yields a sentence for each answer that the observed process contradicts."""
    if telemetry is None:
        return
    declared = application.resource
    if declared is not None and declared != telemetry.dominant:
        yield (
            f"Your answer is {declared}, the observed process shows {telemetry.dominant}: "
            f"{telemetry.sentence} The answer is used."
        )
    by_answers = classes.classify(application)[0].score
    waited = telemetry.share("disk").value
    if by_answers is not None and by_answers < ATTACHED <= waited:
        yield (
            f"By your answers the upload is short (score {by_answers:.2f}), yet the observed "
            f"process waits for storage {100 * waited:.0f} % of the time: it counts as "
            "data-intensive."
        )
