"""The plan of `fleet`: short benchmarks of CPU, memory, disk and network on many targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import instruments
from nephoscope.features.fleet.result import PLAN
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds.record import TargetRecord as Target

ROUNDS = 3
"""Rounds: the median of three is that of none that was disturbed once."""


def fleet_plan(targets: Sequence[Target], *, network: bool = True, seed: int | None = None) -> Plan:
    """Returns the plan. network: whether each target exchanges packets with the first one."""
    reference, *clients = (target.name for target in targets)
    entries: list[dict[str, Any]] = [
        {"benchmark": catalog.FINGERPRINT, "timeout": "10s", "repeat": {"min": 1, "max": 1}},
        {"benchmark": instruments.CPU_HASH, "params": {"threads": 1, "duration_ns": "300ms"}},
        {
            "benchmark": instruments.MEM_STREAM,
            "params": {
                "passes": 1,
                "laps": 1,
                "threads": 1,
                "types": ["double"],
                "kernels": ["triad"],
                "bytes_per_array": "16MiB",
            },
        },
        {"benchmark": instruments.DISK_SYNC, "params": {"operations": 20, "duration_ns": "200ms"}},
    ]
    if network:
        ends = {"on": clients, "peer": reference}
        entries += [
            {
                "benchmark": instruments.NET_RTT,
                **ends,
                "params": {"rate_per_s": 400, "duration_ns": "500ms", "wait_ns": "200ms"},
            },
            {
                "benchmark": instruments.NET_THROUGHPUT,
                **ends,
                "params": {"duration_ns": "300ms", "warmup_ns": "100ms"},
            },
        ]
    values: dict[str, Any] = {
        "name": PLAN,
        "question": "Which of these targets differ from the others?",
        "targets": list(targets),
        "benchmarks": [{"timeout": "30s", **entry} for entry in entries],
        "repeat": {"min": ROUNDS, "max": ROUNDS},
        "warmup": 0,
        "observe": {"gap_meter": False},
        # A quota is what the check may have to find, and late datagrams are lost as often.
        "accept": ["throttled", "late_sends"],
        "concurrent": True,
    }
    if seed is not None:
        values["seed"] = seed
    return from_values(values, catalog.load(), lambda _: "fleet: ")
