"""Percentiles of a machine among the published ones of its class."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection

BENCHMARKS = frozenset({"openssl", "stress-ng.cpu", "lmbench.memory", "cpu.hash"})
"""Benchmarks of which `features/market/run_rates.py` has relations to published ones."""

KNOWN_MACHINES = Feature(
    "known_machines",
    needs=("market",),
    record=".features.known_machines.records:KnownMachines",
    analyse=".features.known_machines.analysis:analyse",
    applies=lambda data: not BENCHMARKS.isdisjoint(data.benchmarks),
    answer=".features.known_machines.section:answers",
    sections=(
        ReportSection("known_machines", ".features.known_machines.section:build", Region.RESULTS),
    ),
)
