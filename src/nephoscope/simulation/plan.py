"""The plan of `simulate`: one simulation, as many rounds as replications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope import catalog
from nephoscope.plans.context import nowhere
from nephoscope.plans.files.load import from_values
from nephoscope.plans.model import Plan

ANY_WIDTH = 0.99
"""No interval is called too wide: how many replications there are was said."""

TARGET = "model"
"""Name of the simulated target in results."""


def simulation(
    name: str,
    benchmark: str,
    params: Mapping[str, Any],
    *,
    replications: int,
    seed: int | None = None,
    timeout_s: float = 600.0,
    known: catalog.Catalog | None = None,
) -> Plan:
    """A round is a replication: its chance follows from the plan's seed and the round's number.

    There is no warm-up round, and no round is repeated until an interval is narrow: how many
    replications there are is the user's to say.
    """
    values: dict[str, Any] = {
        "name": name,
        "targets": [{"name": TARGET, "kind": "sim"}],
        "benchmarks": [{"benchmark": benchmark, "params": dict(params), "timeout": timeout_s}],
        "repeat": {
            "min": replications,
            "max": replications,
            "relative_half_width": ANY_WIDTH,
        },
        "warmup": 0,
        "observe": {"gap_meter": False},
    }
    if seed is not None:
        values["seed"] = seed
    return from_values(values, known or catalog.load(), nowhere)
