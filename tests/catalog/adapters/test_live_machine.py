"""The tools that measure the machine itself, live: each states its version and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from live import measured, values
from tests.tools import needs

from nephoscope.catalog.adapters import ADAPTERS

SECOND = {"duration_ns": 1_000_000_000}
SHORT: dict[str, dict[str, Any]] = {
    "7zip": {"dictionary_bits": 18},
    "blogbench": {"iterations": 2, "interval_ns": 1_000_000_000, "readers": 5},
    "c-ray": {"width": 200, "height": 100},
    "cachebench": {"memory_bits": 11},
    "crafty": {"depth": 6},
    "cyclictest": SECOND,
    "hackbench": {"groups": 1, "loops": 20},
    "john": {"format": "descrypt", **SECOND},
    **{
        name: {"interval_ns": 1_000_000, "repetitions": 1}
        for name in ADAPTERS
        if name.startswith("lmbench.")
    },
    "likwid-bench": {"working_set_bytes": 1_000_000},
    "mbw": {"array_bytes": 1 << 20},
    "openssl": SECOND,
    "perf.memcpy": {"array_bytes": 1 << 20},
    "perf.messaging": {"groups": 1, "loops": 20},
    "perf.pipe": {"loops": 2_000},
    "perf.syscall": {"loops": 100_000},
    "ramspeed": {"pass_bytes": 1 << 30},
    "stress-ng.cache": SECOND,
    "stress-ng.cpu": SECOND,
    "stress-ng.stream": SECOND,
    "stress-ng.vm": {"bytes": 1 << 22, **SECOND},
    "unixbench": {"test": "syscall", "iterations": 1},
    "xz": {"corpus_bytes": 1 << 16},
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs(ADAPTERS[name].spec.tool)) for name in SHORT]
)
def test_a_tool_measures_this_machine(probe: Path, name: str) -> None:
    adapter = ADAPTERS[name]
    trial, _ = measured(name, SHORT[name])
    assert trial.documents["tool"]["version"]
    figures = values(trial)
    headlines = {metric.id for metric in adapter.spec.metrics if metric.headline}
    assert headlines <= figures.keys()
    # No blog is read to its end where a busy disk still writes the first ones.
    assert all(figures[headline] > 0 for headline in headlines - {"read_score"})
