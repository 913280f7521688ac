"""Writes a recording of a stored run; see `measure.targets.recording` for what is in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.format_versions import RECORDING
from nephoscope.core.model import TrialRecord, TrialStatus
from nephoscope.measure.targets.recording import line_of
from nephoscope.store.files import writing_atomically
from nephoscope.store.run import StoredRun


def lines_of(run: StoredRun) -> Iterator[bytes]:
    """Yields the lines of a recording of a run. UsageError for one that has nothing to record."""
    manifest = run.manifest
    if manifest.recorded_targets:
        raise UsageError(
            f"Run {run.id} answered from a recording and measured nothing to record.",
            "Export the run that was recorded.",
        )
    if manifest.imported is not None:
        raise UsageError(
            f"Run {run.id} was imported, and no probe answered in it.",
            "Export a run that was measured here.",
        )
    head = {
        RECORDING.id: RECORDING.version,
        "run": run.id,
        "measured_at": run.started_s,
        "nephoscope": manifest.nephoscope,
        "protocol": manifest.protocol,
    }
    yield line_of(head)
    for name in manifest.target_names:
        fingerprint = dict(manifest.fingerprints.get(name, {}))
        yield line_of({"target": name, "fingerprint": fingerprint})
    for record, table in run.tables():
        if record.failure_name and record.status is not TrialStatus.FAILED:
            continue  # what ran beside it failed, which is no answer of this probe
        yield line_of(_trial(run, record, table))


def _trial(run: StoredRun, record: TrialRecord, table: Any) -> dict[str, Any]:
    spec = run.spec(record.benchmark)
    params = {param.id: record.params.get(param.id, param.default) for param in spec.params}
    start = record.timeline.get("start", (0, 0))
    return {
        "target": record.key.target,
        "trial": record.key.name,
        "benchmark": record.benchmark,
        "params": params,
        "ready_s": round((start[1] - start[0]) / 1e9, 6),
        "elapsed_s": round(record.elapsed_ns / 1e9, 9),
        "answer": [*_answer(record, table)],
    }


def _answer(record: TrialRecord, table: Any) -> Iterator[dict[str, Any]]:
    from nephoscope.store.trialfile import column_lists, is_auxiliary

    if record.status is TrialStatus.FAILED:
        message = record.reasons[0] if record.reasons else "It failed."
        name = record.failure_name or "failed"
        yield {"error": {"name": name, "message": message, "hint": ""}}
        return
    names = ("metric", "value", "count", "at_ns", "factors")
    printed = 0
    for metric, value, count, at_ns, text in zip(*column_lists(table, names), strict=True):
        if is_auxiliary(text):
            continue
        levels = json.loads(text)
        own = {name: level for name, level in levels.items() if name not in record.factors}
        printed += 1
        yield {"metric": metric, "value": value, "count": count, "at_ns": at_ns, "factors": own}
    for metric, document in record.documents.items():
        if "/" in metric:
            continue  # of a load or a hook
        printed += 1
        yield {"metric": metric, "document": document}
    yield {
        "done": {
            "elapsed_ns": record.elapsed_ns,
            "samples": printed,
            "counters": dict(record.counters),
            "notes": list(record.notes),
            "started_wall_ns": round(record.started_at * 1e9),
        }
    }


def write(run: StoredRun, path: Path) -> None:
    """Writes a recording of a run: whole, or not at all. Raises UsageError and StoreError."""
    with writing_atomically(path) as stream:
        size = 0
        for line in lines_of(run):
            size += len(line)
            if size > limits.RECORDING_BYTES:
                raise StoreError(
                    f"The recording of run {run.id} is larger than "
                    f"{limits.RECORDING_BYTES >> 20} MiB.",
                    "Record a run of fewer trials or smaller answers.",
                )
            stream.write(line)
