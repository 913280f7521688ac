"""The built-in plan of `scheduler`: looks at the clock that tell schedulers apart."""

from __future__ import annotations

from importlib import resources
from typing import Any

from nephoscope import catalog
from nephoscope.core import units
from nephoscope.core.reading import yamltext
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan

NAME = "builtin/scheduler.yaml"


def scheduler(seed: int | None = None, *, duration_s: float | None = None) -> Plan:
    """One process busy alone, one on every CPU, two on one CPU, one that sleeps: under 10 s.

    duration_s: how long all of them take together; each keeps its part of it.
    """
    text = resources.files("nephoscope.measure.plans").joinpath(NAME).read_text(encoding="utf-8")
    values: dict[str, Any] = yamltext.parse(text, NAME)
    if seed is not None:
        values["seed"] = seed
    if duration_s is not None:
        entries = values["benchmarks"]
        lengths_ns = [units.parse_duration_ns(entry["params"]["duration_ns"]) for entry in entries]
        for entry, length_ns in zip(entries, lengths_ns, strict=True):
            stretched_ns = round(length_ns / sum(lengths_ns) * duration_s * 1e9)
            entry["params"]["duration_ns"] = stretched_ns
            entry["timeout"] = f"{20 + stretched_ns / 1e9:.0f}s"
    return from_values(values, catalog.load(), lambda _: f"{NAME}: ")
