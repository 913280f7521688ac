"""The built-in plan of `scheduler`: looks at the clock that tell schedulers apart."""

from __future__ import annotations

from importlib import resources
from typing import Any

from nephoscope import catalog
from nephoscope.plans.files.load import from_values
from nephoscope.plans.model import Plan
from nephoscope.reading import yamltext

NAME = "builtin/scheduler.yaml"


def scheduler(seed: int | None = None, *, known: catalog.Catalog | None = None) -> Plan:
    """One process busy alone, one on every CPU, two on one CPU, one that sleeps: under 10 s."""
    text = resources.files("nephoscope.plans").joinpath(NAME).read_text(encoding="utf-8")
    values: dict[str, Any] = yamltext.parse(text, NAME)
    if seed is not None:
        values["seed"] = seed
    return from_values(values, known or catalog.load(), lambda _: f"{NAME}: ")
