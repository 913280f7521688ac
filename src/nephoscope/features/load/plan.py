"""The plan of `load`: one setting of http.load, in trials of equal length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import instruments
from nephoscope.core.reading import yamltext
from nephoscope.core.shared_load import GENERATORS
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds.record import TargetRecord

BENCHMARK = instruments.HTTP_LOAD
MIN_TRIAL_S = 0.5
_SPARE_S = 20.0  # to start, to connect and to answer


def plan_of(
    params: Mapping[str, Any],
    targets: Sequence[TargetRecord],
    *,
    trials: int,
    trial_s: float,
    name: str = "load",
    rates_per_s: list[float] | None = None,
    seed: int | None = None,
) -> Plan:
    """Returns the plan that puts this load on a server, so many trials of so many seconds.

    targets: hosts of the generators; several of them share the load, and start together.
    rates_per_s: rates that are compared, interleaved in every round; else `params` has the load.
    Raises PlanError for a parameter that does not exist or is out of bounds.
    """
    limit_s = trial_s + params["timeout_ns"] / 1e9 + _SPARE_S
    entry: dict[str, Any] = {
        "benchmark": BENCHMARK,
        "params": {**params, "duration_ns": round(trial_s * 1e9)},
        "timeout": limit_s,
    }
    if rates_per_s is not None:
        entry["factors"] = {"rate_per_s": rates_per_s}
    if len(targets) > 1:
        entry["together"] = True
        entry["on"] = [target.name for target in targets]
        entry["params"][GENERATORS] = len(targets)
    values: dict[str, Any] = {
        "name": name,
        "question": f"How does {params['url']} answer?",
        "targets": list(targets),
        "benchmarks": [entry],
        "repeat": {"min": trials, "max": trials},
        "warmup": 0,  # each trial has its own
        "accept": ["throttled"],
    }
    if seed is not None:
        values["seed"] = seed
    return from_values(values, catalog.load(), _place)


def _place(loc: yamltext.Loc) -> str:
    """The parameter that a refusal is about."""
    return f"{loc[3]}: " if len(loc) > 3 else ""
