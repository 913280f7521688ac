"""Traces of load as CSV: time_s and rate, with or without the decisions of an autoscaler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from nephoscope.autoscalers.rules import ScalingObservation
from nephoscope.core.errors import UsageError
from nephoscope.core.reading import textfile
from nephoscope.stats.elasticity import StepFunction

_RATES = ("rate", "rate_per_s")
"""Names of the column of the rate: the second one is that of `nephoscope elastic --trace`."""
DECISION = ("present", "ready", "value", "desired")
"""Columns of a recorded decision: instances that existed and that served, the metric of the rule
(empty: missing), the number requested from then on."""
_COLUMNS = ("time_s", *_RATES, *DECISION)
_DAY_S = 86_400.0
_LONGEST_DAYS = 400
_LARGEST_RATE = 1e9
_LARGEST_COUNT = 1e6


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """One decision of a recorded run: what was observed and the number requested from then on."""

    observation: ScalingObservation
    desired: int


@dataclass(frozen=True, slots=True)
class ScalerRecording:
    """The decisions of an autoscaler in one trial, and the instances that served.

    resolution_s: by how much the time of a decision may differ from the one that its cooldowns saw.
    first_decision_s, first_value_s: of the decisions and the metric, since the begin of the load.
    slow_ratio: share of the requests beyond the objective. cost_h: billed instance-hours. None:
    they are not recorded.
    """

    decisions: tuple[RecordedDecision, ...]
    supply: StepFunction
    resolution_s: float = 0.0
    first_decision_s: float | None = None
    first_value_s: float | None = None
    slow_ratio: float | None = None
    cost_h: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """Load over time: requests per second from each time to the next, up to end_s.

    Times begin within the first day, so that schedules meet their time of day. recordings: trials
    of an autoscaler under this load. demand: instances that the load needs as the recorded run
    judges them; None where that is computed.
    """

    name: str
    rate: StepFunction
    end_s: float
    recordings: tuple[ScalerRecording, ...] = ()
    demand: StepFunction | None = None

    @property
    def start_s(self) -> float:
        """Time of the first rate."""
        return self.rate.times_s[0]


def read(path: Path) -> Trace:
    """Returns the trace of a CSV file; the last rate lasts as long as the median one.

    Raises UsageError for anything else, naming the line.
    """
    text = textfile.read(path, "trace", UsageError)
    rows: list[tuple[str, dict[str, str]]] = list(
        textfile.csv_records(text, str(path), _COLUMNS, ("time_s",))
    )
    if len(rows) < 2:
        raise UsageError(
            f"{path}: a trace needs two rows or more; it has {len(rows)}.",
            "Add a row with time_s and rate for each change of the load.",
        )
    columns = [name for name in _RATES if name in rows[0][1]]
    if len(columns) != 1:
        raise UsageError(
            f"{path}: a trace has the column 'rate' or the column 'rate_per_s', and not both.",
            "Name the column of the requests per second so.",
        )
    times = [_number(where, row, "time_s", math.inf, low=-math.inf) for where, row in rows]
    for (where, _), (before, after) in zip(rows[1:], pairwise(times), strict=True):
        if after <= before:
            raise UsageError(
                f"{where}: time_s {after:g} is not after {before:g}.", "Sort the rows by time_s."
            )
    if times[-1] - times[0] > _LONGEST_DAYS * _DAY_S:
        raise UsageError(
            f"{path}: the trace is longer than {_LONGEST_DAYS} days.",
            "time_s is in seconds. Use a part of the trace.",
        )
    offset = math.floor(times[0] / _DAY_S) * _DAY_S
    times = [time_s - offset for time_s in times]
    rates = tuple(_number(where, row, columns[0], _LARGEST_RATE) for where, row in rows)
    length_s = median(after - before for before, after in pairwise(times))
    decisions = tuple(_decisions(rows, times, rates))
    recordings = (ScalerRecording(decisions, _supply(decisions)),) if decisions else ()
    return Trace(path.name, StepFunction(tuple(times), rates), times[-1] + length_s, recordings)


def _supply(decisions: tuple[RecordedDecision, ...]) -> StepFunction:
    """Instances that served, as they were observed at each decision."""
    return StepFunction(
        tuple(each.observation.at_s for each in decisions),
        tuple(float(each.observation.ready) for each in decisions),
    )


def _decisions(
    rows: list[tuple[str, dict[str, str]]], times: list[float], rates: tuple[float, ...]
) -> list[RecordedDecision]:
    present = [name for name in DECISION if name in rows[0][1]]
    if not present:
        return []
    if len(present) < len(DECISION):
        missing = next(name for name in DECISION if name not in present)
        raise UsageError(
            f"{rows[0][0].rpartition(':')[0]}: the column '{missing}' is missing.",
            f"A recorded run has all of {', '.join(DECISION)}, a plain trace none of them.",
        )
    decisions = []
    for place, (where, row) in enumerate(rows):
        if row["desired"]:
            value = _number(where, row, "value", math.inf) if row["value"] else None
            count = {
                name: int(_number(where, row, name, _LARGEST_COUNT))
                for name in ("present", "ready", "desired")
            }
            rates_so_far = tuple(zip(times[: place + 1], rates[: place + 1], strict=True))
            seen = ScalingObservation(
                times[place], count["present"], count["ready"], value, rates_so_far
            )
            decisions.append(RecordedDecision(seen, count["desired"]))
    return decisions


def _number(
    where: str, row: Mapping[str, str], name: str, largest: float, low: float = 0.0
) -> float:
    try:
        value = float(row[name])
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not low <= value <= largest:
        raise UsageError(
            f"{where}: {name} '{row[name][:30]}' is no number in range.",
            "Use a number of seconds, requests per second or instances, 0 or more.",
        )
    return value
