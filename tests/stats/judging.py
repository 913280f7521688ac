"""A machine without any oddity, and the judge of variations of it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from nephoscope.core.model import (
    Better,
    Consistency,
    Estimate,
    Finding,
    MetricResult,
)
from nephoscope.results import findings
from nephoscope.results.machine_figures import MachineFigures
from nephoscope.stats.target_evidence import TargetTrials

GOOD: dict[str, Any] = {
    "schema": 1,
    "cpu": {
        "model": "A CPU",
        "agree": True,
        "disagreements": [],
        "microcode": "0x2b000590",
        "by_cpuinfo": {"distinct_models": 1},
    },
    "caches": {
        "by_sysfs": [
            {"level": 1, "kind": "data", "size_bytes": 32768},
            {"level": 1, "kind": "instruction", "size_bytes": 65536},
            {"level": 3, "kind": "unified", "size_bytes": 32 << 20},
        ],
        "by_cpuid": None,
    },
    "topology": {
        "cores": 2,
        "threads_per_core": 1.0,
        "online_cpus": [0, 1],
        "allowed_cpus": [0, 1],
        "smt": "off",
    },
    "hypervisor": {"name": "none", "present": False, "signatures": []},
    "clock": {"source": "tsc", "available_sources": ["tsc", "hpet"]},
    "kernel": {"release": "6.1.0", "boot_flags": {}},
    "mitigations": {"meltdown": "Not affected", "spectre_v2": "Mitigation: Enhanced IBRS"},
    "memory": {
        "total_bytes": 8 << 30,
        "swap_total_bytes": 1 << 30,
        "swap_free_bytes": 1 << 30,
        "transparent_hugepage": "madvise",
    },
    "nics": {
        "ports": [
            {
                "name": "eth0",
                "virtual": False,
                "driver": "e1000e",
                "state": "up",
                "speed_bits_per_s": 1_000_000_000,
                "duplex": "full",
            },
            {"name": "docker0", "virtual": True, "speed_bits_per_s": 10_000_000},
        ]
    },
    "limits": {"cpu_quota_cpus": None, "memory_limit_bytes": None},
    "counters": {"steal": True, "steal_since_boot_ratio": 0.0, "pressure_cpu": True},
    "abilities": {"io_uring": True},
    "missing": [{"fact": "limits.cpu_quota_cpus", "reason": "no limit"}],
}


def changed(**facts_by_path: Any) -> dict[str, Any]:
    """The good machine with some facts set: `cpu__agree=False`."""
    out = copy.deepcopy(GOOD)
    for path, value in facts_by_path.items():
        section, _, name = path.partition("__")
        if name:
            out[section][name] = value
        else:
            out[section] = value
    return out


def line(
    benchmark: str,
    metric: str,
    value: float,
    unit: str = "ns",
    *,
    half: float = 0.01,
    factors: Mapping[str, Any] | None = None,
    word: str = "steady",
    headline: bool = False,
    values: tuple[float, ...] = (),
    warnings: tuple[str, ...] = (),
) -> MetricResult:
    estimate = Estimate(value, value * (1 - half), value * (1 + half), 0.95, 12, unit, "median")
    return MetricResult(
        benchmark,
        metric,
        "local",
        dict(factors or {}),
        Better.LOWER,
        estimate,
        Consistency(0.2, None, None, None, None, word, certain=True),
        headline,
        warnings,
        values,
        tuple(range(1, len(values) + 1)),
    )


def judge(
    fingerprint: Any = None,
    metrics: tuple[MetricResult, ...] = (),
    trials: TargetTrials | None = None,
    **further: Any,
) -> dict[str, Finding]:
    """The findings of one target, by their id."""
    further.setdefault("parts", (MachineFigures(),))
    summary = {"local": trials or TargetTrials(valid=10)}
    prints = {} if fingerprint is None else {"local": fingerprint}
    return {one.id: one for one in findings.findings(prints, metrics, summary, **further)}
