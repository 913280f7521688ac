"""The plan of `elastic --url` without an observer: ramps of an open loop, one after another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import instruments
from nephoscope.core.errors import UsageError
from nephoscope.core.shared_load import GENERATORS
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds.record import TargetRecord

NAME = "growth"
OBJECTIVE = "objective"
"""Label of the run with the objective, by which its ramps are judged."""
ROUNDS = 20
LEAD_STEPS = 2
"""Steps at the lowest rate before each ramp: what the one before it left in the service drains."""
_FEWEST_STEPS = 8
_MOST_STEPS = 200
_INTERVAL_S = (0.01, 60.0)
"""Lengths of a step that the generator reports as one interval."""
_SPARE_S = 60.0
_OVERLOAD_SHARE = 0.5
"""Of the ratio of two adjacent rates: an overload by so much has to reach the objective's limit
within one step, so that a ramp misses the knee by half a step at most."""


@dataclass(frozen=True, slots=True)
class GrowthRequest:
    """Request for an experiment: ramps from a low to a high rate, each of ramp_s seconds.

    hosts: of the generators; of several, one and all of them take turns in every round.
    """

    url: str
    low_per_s: float
    high_per_s: float
    ramp_s: float
    objective: LatencyObjective
    objective_text: str
    hosts: tuple[TargetRecord, ...]
    rounds: int = ROUNDS
    connections: int = 200
    poisson: bool = False
    authorised_hosts: tuple[str, ...] = ()
    seed: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


def labels_of(request: GrowthRequest) -> dict[str, str]:
    """Returns the labels with which the run is stored."""
    return {OBJECTIVE: str(request.objective)}


def ramp_rates(request: GrowthRequest) -> list[int]:
    """Returns the rates of a ramp's equal parts: the lead, then equal ratios.

    Raises UsageError where the time has no room for steps that show an overload.
    """
    low, high = request.low_per_s, request.high_per_s
    if not 1 <= low < high <= 1e6:
        raise UsageError(
            f"The rates {low:g}/s and {high:g}/s make no ramp.",
            "Use a low rate from 1/s, and a high rate above it up to 1,000,000/s.",
        )
    share, limit_s = request.objective.share_ratio, request.objective.limit_ns / 1e9
    span = math.log(high / low)
    # A step of T / n is longer than the time in which half of its ratio queues up to the limit.
    by_overload = math.sqrt(_OVERLOAD_SHARE * request.ramp_s * span / limit_s)
    by_requests = request.ramp_s * math.sqrt(low * high) * (1 - share)
    by_length = request.ramp_s / _INTERVAL_S[0]
    steps = math.floor(min(by_overload, by_requests, by_length, _MOST_STEPS))
    if steps < _FEWEST_STEPS or request.ramp_s / (steps + LEAD_STEPS) > _INTERVAL_S[1]:
        needed_s = request.ramp_s * max(
            (_FEWEST_STEPS / by_overload) ** 2, _FEWEST_STEPS / by_requests
        )
        raise UsageError(
            f"A ramp of {request.ramp_s:g} s from {low:g}/s to {high:g}/s has no "
            f"{_FEWEST_STEPS} steps that each show whether {request.objective} holds.",
            f"Use --duration {math.ceil(max(needed_s, request.ramp_s))}s or more, higher rates, or "
            "rates farther apart.",
        )
    ratio = math.exp(span / (steps - 1))
    rates = [round(low * ratio**place) for place in range(steps)]
    return [rates[0]] * LEAD_STEPS + rates


def plan_growth(request: GrowthRequest) -> Plan:
    """Returns the plan; UsageError for what makes no sense, PlanError for a wrong parameter."""
    if request.objective.share_ratio not in (0.5, 0.99):
        raise UsageError(
            f"'{request.objective_text}' cannot be judged interval by interval.", "Use p50 or p99."
        )
    rates = ramp_rates(request)
    duration_ns = round(request.ramp_s * 1e9)
    params = {
        "url": request.url,
        "arrivals": "poisson" if request.poisson else "constant",
        "step_rates_per_s": rates,
        "duration_ns": duration_ns,
        "warmup_ns": 0,
        "interval_ns": duration_ns // len(rates),
        "connections": request.connections,
        "timeout_ns": max(1_000_000_000, 10 * request.objective.limit_ns),
        "authorised_hosts": list(request.authorised_hosts),
        **request.params,
    }
    names = [host.name for host in request.hosts]
    entry = {"benchmark": instruments.HTTP_LOAD, "timeout": request.ramp_s + _SPARE_S}
    entries: list[dict[str, Any]] = [{**entry, "on": names[:1], "params": params}]
    if len(names) > 1:
        shared = {**params, GENERATORS: len(names)}
        entries.append({**entry, "on": names, "together": True, "params": shared})
    values: dict[str, Any] = {
        "name": NAME,
        "question": f"Up to which rate does {request.url} keep {request.objective}, over time?",
        "targets": list(request.hosts),
        "benchmarks": entries,
        "repeat": {"min": request.rounds, "max": request.rounds},
        "warmup": 0,
        # The result judges by the objective how late a generator may be.
        "accept": ["throttled", "late_sends"],
    }
    if request.seed is not None:
        values["seed"] = request.seed
    return from_values(values, catalog.load(), lambda _: "")
