"""The speed of machines in one benchmark: those of stored runs, and those of a run just made."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping

from nephoscope.core.model import Better
from nephoscope.core.records import dataclass
from nephoscope.features.census import observations
from nephoscope.features.cloud.picking import SpeedMix
from nephoscope.store import StoredRun


@dataclass(frozen=True, slots=True)
class SpeedLine:
    """What is compared: a headline metric with its factors and parameters, as canonical texts."""

    benchmark: str
    metric: str
    factors: str
    params: str
    better: Better

    def seconds(self, value: float) -> float:
        """Returns what is proportional to the time of a unit of work."""
        return 1 / value if self.better is Better.HIGHER else value


Values = dict[SpeedLine, dict[str, list[float]]]
"""SpeedLine -> machine or target -> trial values."""


def of_target(run: StoredRun, benchmark: str) -> Values:
    """Returns the trial values of each target of a run."""
    return _values([run], benchmark, by_target=True)


def of_type(runs: Iterable[StoredRun], benchmark: str, type_name: str) -> Values:
    """Returns the medians of the runs of each machine of a type."""
    return _values(runs, benchmark, by_target=False, type_name=type_name)


def _values(
    runs: Iterable[StoredRun], benchmark: str, *, by_target: bool, type_name: str = ""
) -> Values:
    used, observed, _ = observations.observed(
        runs, frozenset(), False, Counter(), benchmark=benchmark
    )
    made: Values = {}
    for machine, speed in observations.speeds_of(used, observed):
        if type_name and machine.instance_type.split()[-1] != type_name:
            continue
        key, trials = speed.key, speed.trials
        line = SpeedLine(key.benchmark, key.metric, key.factors, speed.params, trials.better)
        name = machine.target if by_target else machine.machine
        values = [value for value in trials.values if value > 0]
        if values:
            own = values if by_target else [statistics.median(values)]
            made.setdefault(line, {}).setdefault(name, []).extend(own)
    return made


def chosen_line(values: Mapping[SpeedLine, object]) -> SpeedLine | None:
    """Returns the line that a machine is judged by: with the most threads, where those vary; None
    without any."""
    return max(values, key=_threads, default=None)


def _threads(line: SpeedLine) -> tuple[float, str]:
    factors = json.loads(line.factors)
    return float(factors.get("threads", 0)), line.factors


def mix_of(values: Values, type_name: str) -> tuple[SpeedLine, SpeedMix] | None:
    """Returns the line with the most machines, of several the one with the most threads, and their
    mix; None where nothing is stored."""
    most = max(map(len, values.values()), default=0)
    line = chosen_line({line: own for line, own in values.items() if len(own) == most})
    if line is None:
        return None
    seconds = tuple(line.seconds(statistics.median(own)) for own in values[line].values())
    return line, SpeedMix(seconds, f"{len(seconds)} stored machines of {type_name}")
