"""The document of `nephoscope size`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nephoscope.core.model import Estimate


@dataclass(frozen=True, slots=True)
class SizingInput:
    """A quantity on which the answer depends. id: that `inputs` of deployments and measurements
    name. origin: stated, measured, imported, predicted or promised. source: file with line and
    column, run, import or model."""

    id: int
    name: str
    estimate: Estimate
    origin: str
    source: str


@dataclass(frozen=True, slots=True)
class SizedDeployment:
    """Instances of a type in regions. counts: instances by region, the spare ones included. spare:
    those of them that may fail at one time, by region. cost_per_month: 730 hours; its interval is
    that of the prices, null where they are exact. miss_probability: of missing the objective, over
    what the inputs leave open and over the instances that the user gets, with its Monte-Carlo
    interval. served_from: site of users -> region. inputs: ids. survived_failures: regions that may
    fail at one time with the objective kept by the others. egress_per_month: part of the cost, for
    data to users; null where the file states none."""

    type: str
    purchase: str
    counts: Mapping[str, int]
    spare: Mapping[str, int]
    cost_per_month: Estimate
    miss_probability: Estimate
    served_from: Mapping[str, str]
    inputs: tuple[int, ...]
    survived_failures: int = 0
    egress_per_month: float | None = None


@dataclass(frozen=True, slots=True)
class UnknownDeployment:
    """A deployment that cannot be sized. reason: sentence. missing: quantity that is not known.

    least_cost_per_month: with the values of the inputs as if they were exact; null where a value
    is missing too. inputs: ids."""

    type: str
    purchase: str
    reason: str
    missing: str
    least_cost_per_month: float | None
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MeasurementValue:
    """What it is worth to know a quantity exactly. name: of the quantity. cost: of measuring it, as
    stated or of the instance hours it takes. change_probability: of another best deployment; null
    where a value is missing, so that nothing is known. saving_per_month: expected one; where a
    value is missing, the largest possible. inputs: ids."""

    name: str
    cost: float
    change_probability: float | None
    saving_per_month: float
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SizeAnalysis:
    """Deployments that keep the objective, the cheapest first. sentence: the verdict. is_answered:
    a deployment is recommended. unknown: deployments that may be cheaper, and what they lack.
    measurements: what to measure, the most valuable first. recommended_measurement: the first one
    in a sentence; empty where none is worth its cost. draws: of the Monte-Carlo simulation."""

    application: str
    sentence: str
    is_answered: bool
    objective: str
    risk: float
    availability: float | None
    currency: str
    deployments: tuple[SizedDeployment, ...]
    deployments_in_all: int
    unknown: tuple[UnknownDeployment, ...]
    measurements: tuple[MeasurementValue, ...]
    recommended_measurement: str
    inputs: tuple[SizingInput, ...]
    draws: int
    notes: tuple[str, ...] = ()
