"""Estimates as cells of the tables that the experiments on clouds print."""

from __future__ import annotations

from nephoscope.core import units
from nephoscope.core.model import Estimate

SEGMENTS = {
    "boot_answer_ns": "call to answer",
    "boot_running_ns": "call to running",
    "boot_request_ns": "call to start of kernel",
    "boot_kernel_ns": "kernel to init",
    "boot_userland_ns": "init to first login",
    "boot_reachable_ns": "call to first login",
}
"""Metric of host.boot -> its segment in words, in order."""


def estimate_cells(estimate: Estimate | None) -> tuple[str, str, str]:
    """Returns value, interval and number of repetitions, as text."""
    if estimate is None:
        return "no value", "none", "0"
    value, low, high = estimate.value, estimate.low, estimate.high
    interval = "none"
    if low is not None and high is not None:
        ends = ", ".join(units.format_value(end, estimate.unit) for end in (low, high))
        interval = f"[{ends}]"
    return units.format_value(value, estimate.unit), interval, str(estimate.n)
