"""Boots that a run recorded: the trials of `host.boot`, which nested designs make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.catalog import HOST_BOOT
from nephoscope.core.model import MetricResult, factors_key
from nephoscope.core.naming import common_factors
from nephoscope.features.platforms.boot_figures import figures
from nephoscope.features.platforms.records import MARKS, Boot, BootFigures, StoredBoots
from nephoscope.report import wording
from nephoscope.results.run_data import RunData

_SEGMENTS = {"boot_request_ns": "kernel", "boot_kernel_ns": "userland"}
"""Metric -> mark at its end; each begins where the one before it ends."""
_WHOLE = "boot_reachable_ns"


def analyse(data: RunData) -> StoredBoots | None:
    """Returns the boots of each target and level; None where a run has none."""
    groups: dict[tuple[str, str], dict[str, MetricResult]] = {}
    for line in data.metrics:
        if line.benchmark == HOST_BOOT:
            at = groups.setdefault((line.target, factors_key(line.factors)), {})
            at[line.metric] = line
    wholes = [lines for lines in groups.values() if _WHOLE in lines]
    common = common_factors([lines[_WHOLE].factors for lines in wholes])
    boots = [
        _figures(lines, len({target for target, _ in groups}), common, data.confidence)
        for lines in wholes
    ]
    return StoredBoots(tuple(boots)) if boots else None


def _figures(
    lines: Mapping[str, MetricResult], targets: int, common: Mapping[str, Any], confidence: float
) -> BootFigures:
    whole = lines[_WHOLE]
    boots = []
    for number, reachable_ns in whole.by_round.items():
        marks, at = {}, 0.0
        for metric, mark in _SEGMENTS.items():
            segment = lines[metric].by_round.get(number) if metric in lines else None
            if segment is None:
                break
            at += segment
            marks[mark] = round(at)
        marks[MARKS[-1]] = round(reachable_ns)
        boots.append(Boot(whole.target, number, marks, None, 0))
    name = wording.setting_text(whole, targets, leave_out=common) or whole.target
    reasons = {"memory": "runs do not record it", MARKS[0]: "runs do not record it"}
    return figures(name, boots, reasons, confidence=confidence)
