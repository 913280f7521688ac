"""What `nephoscope simulate elastic` is to simulate: of a trace, or of a stored run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.scaling import grid, recorded_runs, settings, traces
from nephoscope.features.scaling.grid import RuleCandidate
from nephoscope.features.scaling.traces import Trace
from nephoscope.stats.instance_demand import ScaledService
from nephoscope.stats.queueing import ResponseObjective


@dataclass(frozen=True, slots=True)
class Stated:
    """Options of the command; a stored run states what is None or empty."""

    trace: Path | None
    run: str | None
    objective: str | None
    service_s: float | None
    rules: Sequence[str]


@dataclass(frozen=True, slots=True)
class ScalingRequest:
    """Trace, service, objective and candidates of a simulation."""

    trace: Trace
    service: ScaledService
    objective: LatencyObjective
    candidates: Sequence[RuleCandidate]


def made(stated: Stated, values: Mapping[str, str], store: Path | None) -> ScalingRequest:
    """Returns the request. Raises UsageError for what is missing, twice or wrong."""
    if (stated.trace is None) == (stated.run is None):
        raise UsageError(
            "`simulate elastic` needs a trace or a stored run.", "Use TRACE.csv or --run RUN."
        )
    if stated.run is not None:
        return _of_run(stated, stated.run, values, store)
    assert stated.trace is not None
    if stated.objective is None or stated.service_s is None:
        missing = "--objective" if stated.objective is None else "--service-time"
        raise UsageError(
            f"A trace needs {missing}.",
            "Use, for example, --objective 'p95 < 200ms' --service-time 20ms.",
        )
    objective = LatencyObjective.of(stated.objective)
    service = ScaledService(services_per_s=1 / stated.service_s, objective=_limit(objective))
    rules = stated.rules or grid.defaults(service.services_per_s, service.objective.limit_s)
    return ScalingRequest(
        traces.read(stated.trace),
        settings.with_settings(service, values),
        objective,
        grid.candidates(rules),
    )


def _limit(objective: LatencyObjective) -> ResponseObjective:
    return ResponseObjective(objective.limit_ns / 1e9, objective.share_ratio)


def _of_run(
    stated: Stated, name: str, values: Mapping[str, str], store: Path | None
) -> ScalingRequest:
    run = recorded_runs.read(name, store)
    service, objective = run.service, run.objective
    if stated.objective is not None:
        objective = LatencyObjective.of(stated.objective)
        service = replace(service, objective=_limit(objective))
    if stated.service_s is not None:
        service = replace(service, services_per_s=1 / stated.service_s)
    candidates = grid.candidates(stated.rules) if stated.rules else run.rules
    return ScalingRequest(run.trace, settings.with_settings(service, values), objective, candidates)
