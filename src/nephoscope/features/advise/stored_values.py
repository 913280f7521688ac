"""Speeds of each machine of a platform in stored CPU, memory and disk benchmarks."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from nephoscope.core.model import Better
from nephoscope.core.records import dataclass
from nephoscope.features.census import observations
from nephoscope.features.census.observations import Observation
from nephoscope.features.census.records import UNKNOWN_TYPE
from nephoscope.store import StoredRun

Grouping = Literal["type", "model", "machine"]
RESOURCES: Mapping[str, str] = {"cpu": "cpu", "mem": "memory", "disk": "disk"}
"""First part of a benchmark's name -> resource."""


@dataclass(frozen=True, slots=True, order=True)
class Metric:
    """A metric at one setting. params: JSON text of the parameters that the plan fixed."""

    benchmark: str
    metric: str
    factors: str
    params: str

    @property
    def resource(self) -> str:
        """The resource of which it is the speed."""
        return RESOURCES[self.benchmark.partition(".")[0]]

    @property
    def levels(self) -> dict[str, Any]:
        """The factors with their levels."""
        levels: dict[str, Any] = json.loads(self.factors)
        return levels


@dataclass(slots=True)
class PlatformValues:
    """Values of a metric on the machines of one platform.

    values: by machine and run; grouped by machine, each run counts as a machine of its own.
    first_at, last_at: start of the first and the last run, seconds since the epoch.
    """

    unit: str
    better: Better
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    first_at: float = float("inf")
    last_at: float = 0.0

    def add(self, machine: str, run: str, at: float, trials: Sequence[float]) -> None:
        """Takes in the trials of one run on one machine."""
        self.values.setdefault(machine, {}).setdefault(run, []).extend(trials)
        self.first_at, self.last_at = min(self.first_at, at), max(self.last_at, at)


@dataclass(frozen=True, slots=True)
class StoredValues:
    """Values by metric and platform.

    here: platform of this host, and here_machine its machine; '' where no run was made here.
    counted: what is one draw, machine or run.
    notes: what was left out, and why.
    """

    platforms: Mapping[Metric, Mapping[str, PlatformValues]]
    here: str = ""
    here_machine: str = ""
    notes: tuple[str, ...] = ()
    counted: str = "machine"


def read(runs: Sequence[StoredRun], grouping: Grouping) -> StoredValues:
    """Reads runs; of a metric that was measured with several sets of parameters the commonest."""
    reasons: Counter[str] = Counter()
    used, observed_machines, _ = observations.observed(runs, frozenset(), False, reasons)
    platforms: dict[Metric, dict[str, PlatformValues]] = {}
    for seen, speed in observations.speeds_of(used, observed_machines):
        key, trials = speed.key, speed.trials
        metric = Metric(key.benchmark, key.metric, key.factors, speed.params)
        entry = platforms.setdefault(metric, {}).setdefault(
            _platform(seen, grouping), PlatformValues(trials.unit, trials.better)
        )
        machine = seen.machine if grouping != "machine" else f"run {seen.run}"
        entry.add(machine, seen.run, seen.at, trials.values)
    here = _here([run.run for run in used], observed_machines)
    return StoredValues(
        _commonest(platforms),
        _platform(here, grouping) if here else "",
        here.machine if here else "",
        observations.left_out(reasons),
        "run" if grouping == "machine" else "machine",
    )


def _platform(seen: Observation, grouping: Grouping) -> str:
    if grouping == "machine":
        return f"{seen.model}, {seen.machine[:16]}"
    if grouping == "type" and seen.instance_type != UNKNOWN_TYPE:
        return seen.instance_type
    return seen.model


def _here(runs: Sequence[StoredRun], observed: Sequence[Observation]) -> Observation | None:
    """The machine of the newest run that measured this host, by the host's name."""
    for run in sorted(runs, key=lambda run: -run.started_s):
        local = [
            str(target["name"]) for target in run.manifest.targets if target.get("kind") == "local"
        ]
        names = {event.get("machine") for event in run.events() if "machine" in event}
        if local and platform.node() in names:
            place = (run.id, local[0])
            return next(
                (
                    observation
                    for observation in observed
                    if (observation.run, observation.target) == place
                ),
                None,
            )
    return None


def _commonest(
    platforms: Mapping[Metric, dict[str, PlatformValues]],
) -> dict[Metric, dict[str, PlatformValues]]:
    """Of each benchmark, metric and setting the parameters with which most machines were seen."""
    chosen: dict[tuple[str, str, str], Metric] = {}
    machines = {
        metric: sum(len(entry.values) for entry in by_platform.values())
        for metric, by_platform in platforms.items()
    }
    for metric in sorted(platforms, key=lambda metric: (-machines[metric], metric.params)):
        chosen.setdefault((metric.benchmark, metric.metric, metric.factors), metric)
    return {metric: platforms[metric] for metric in sorted(chosen.values())}
