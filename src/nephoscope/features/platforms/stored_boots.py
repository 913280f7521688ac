"""Boots that a run recorded: the trials of `host.boot`, which nested designs and launches make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nephoscope.catalog import HOST_BOOT
from nephoscope.core.model import MetricResult, factors_key
from nephoscope.core.naming import common_factors
from nephoscope.features.platforms.boot_figures import figures
from nephoscope.features.platforms.records import (
    LAUNCH_MARKS,
    MARKS,
    Boot,
    BootFigures,
    StoredBoots,
)
from nephoscope.report import wording
from nephoscope.results.run_data import RunData

_SEGMENTS = {"boot_request_ns": "kernel", "boot_kernel_ns": "userland"}
"""Metric -> mark at its end; each begins where the one before it ends."""
_MARKS = {"boot_answer_ns": "answer", "boot_running_ns": "running"}
"""Metric -> mark since the request; of a rented machine."""
_WHOLE = "boot_reachable_ns"


def analyse(data: RunData) -> StoredBoots | None:
    """Returns the boots of each target and level, and the launches of rented machines by type and
    zone, and by image where those vary; None where a run has none."""
    groups: dict[tuple[str, str], dict[str, MetricResult]] = {}
    for line in data.metrics:
        if line.benchmark == HOST_BOOT:
            at = groups.setdefault((line.target, factors_key(line.factors)), {})
            at[line.metric] = line
    wholes = [lines for lines in groups.values() if _WHOLE in lines]
    common = common_factors([lines[_WHOLE].factors for lines in wholes])
    kinds = launched_kinds(data.manifest.rented)
    booted = [lines for lines in wholes if lines[_WHOLE].target not in kinds]
    boots = [
        _figures(lines, len({target for target, _ in groups}), common, data.confidence)
        for lines in booted
    ]
    launches = (
        (kinds[target], boot_of(target, number, _segments_of(lines, number)))
        for lines in wholes
        if (target := lines[_WHOLE].target) in kinds
        for number in lines[_WHOLE].by_round
    )
    boots += launch_figures(launches, confidence=data.confidence)
    return StoredBoots(tuple(boots)) if boots else None


def launched_kinds(rented: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Returns the type and zone of each rented target as the name of its launches, with the image
    where several were rented.

    rented: of a manifest.
    """
    images = {machine.get("image", "") for machine in rented.values()}
    return {
        target: f"{machine.get('type', '')} in {machine.get('zone') or machine.get('region', '')}"
        + (f", {machine.get('image', '')}" if len(images) > 1 else "")
        for target, machine in rented.items()
    }


def launch_figures(
    launches: Iterable[tuple[str, Boot]], *, confidence: float = 0.95
) -> list[BootFigures]:
    """Returns the figures of launches by the name of their kind, each launch a repetition."""
    by_kind: dict[str, list[Boot]] = {}
    for kind, boot in launches:
        by_kind.setdefault(kind, []).append(boot)
    reasons = {"memory": "a rented machine does not show it"}
    return [
        figures(kind, boots, reasons, expected=LAUNCH_MARKS, confidence=confidence)
        for kind, boots in sorted(by_kind.items())
    ]


def _segments_of(lines: Mapping[str, MetricResult], number: int) -> dict[str, float]:
    return {
        metric: line.by_round[number] for metric, line in lines.items() if number in line.by_round
    }


def boot_of(target: str, number: int, values: Mapping[str, float]) -> Boot:
    """Returns a boot from its metrics in ns; a segment without the one before it has no mark."""
    marks = {mark: round(values[metric]) for metric, mark in _MARKS.items() if metric in values}
    at = 0.0
    for metric, mark in _SEGMENTS.items():
        if metric in values and (metric != "boot_kernel_ns" or "kernel" in marks):
            at += values[metric]
            marks[mark] = round(at)
    marks[MARKS[-1]] = round(values[_WHOLE])
    return Boot(target, number, marks, None, 0)


def _figures(
    lines: Mapping[str, MetricResult], targets: int, common: Mapping[str, Any], confidence: float
) -> BootFigures:
    whole = lines[_WHOLE]
    boots = [
        boot_of(whole.target, number, _segments_of(lines, number)) for number in whole.by_round
    ]
    name = wording.setting_text(whole, targets, leave_out=common) or whole.target
    reasons = {"memory": "runs do not record it", MARKS[0]: "runs do not record it"}
    return figures(name, boots, reasons, confidence=confidence)
