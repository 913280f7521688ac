"""Runs in a store, made without measuring."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nephoscope import catalog
from nephoscope.core.model import Sample, Setting, TrialKey, TrialRecord, TrialStatus
from nephoscope.measure import plans
from nephoscope.store import Store, StoredRun
from nephoscope.store.export import export

CATALOG = catalog.load()
SPEC = CATALOG.benchmark("null")


def new_run(path: Path, *, levels: str = "[1,2]", **plan: Any) -> tuple[StoredRun, list[Setting]]:
    made = plans.single("null", {"value": levels}, budget_s=None, **plan)
    settings = plans.expand(made, CATALOG)
    return Store(path).create(made, 7, catalog=CATALOG, settings=settings), settings


def trial_record(
    round_number: int, target: str = "local", *, setting: int = 0, **more: Any
) -> TrialRecord:
    """A valid trial of `null` without samples. more: other fields, or other values of them."""
    fields: dict[str, Any] = {
        "key": TrialKey(round_number, setting, target),
        "benchmark": "null",
        "params": {},
        "factors": {},
        "status": TrialStatus.VALID,
        "reasons": (),
        "position": round_number,
        "started_at": float(round_number),
        "elapsed_ns": 10,
        "counters": {},
    }
    return TrialRecord(**{**fields, **more})


def record(
    setting: Setting, round_number: int, position: int, target: str = "local", **more: Any
) -> TrialRecord:
    """A valid trial of a setting."""
    fields: dict[str, Any] = {
        "benchmark": setting.benchmark,
        "params": setting.params,
        "factors": setting.factors,
        "position": position,
        "started_at": 1.5,
        "counters": {"steal_ratio": None, "load_1m": 0.25},
    }
    return trial_record(round_number, target, setting=setting.index, **{**fields, **more})


def samples(value: float) -> list[Sample]:
    return [
        Sample("null_ns", value),
        Sample("null_ns", value + 2),
        Sample("null_ns", value * 10, factors={"op": "read"}),
        Sample("null_per_s", 1 / value),
        Sample("null_latency_ns", value, 5, 100),
        Sample("null_latency_ns", value + 1, 7, 100),
        Sample("null_latency_ns", value, 1, 200),
    ]


def filled(path: Path, rounds: int = 3) -> tuple[StoredRun, list[Setting]]:
    """Warm-up round 0 and so many rounds of two settings."""
    run, settings = new_run(path)
    position = 0
    for number in range(rounds + 1):
        for setting in settings:
            run.append(record(setting, number, position), samples(100.0 + number), SPEC)
            position += 1
    return run, settings


def exported(runs: Sequence[StoredRun], format: str) -> bytes:
    """The content of an export."""
    stream = io.BytesIO()
    export(runs, format, stream)
    return stream.getvalue()
