"""Trials of stored runs that were not measured, for benchmarks of large stores."""

from __future__ import annotations

from typing import Any

from nephoscope.core.model import Setting, TrialKey, TrialRecord, TrialStatus


def valid_trial(
    setting: Setting, round_number: int, position: int, started_at: float, **beside: Any
) -> TrialRecord:
    """Returns a valid trial of a setting on `local`. beside: counters of the machine."""
    return TrialRecord(
        key=TrialKey(round_number, setting.index, "local"),
        benchmark=setting.benchmark,
        params=setting.params,
        factors=setting.factors,
        status=TrialStatus.VALID,
        reasons=(),
        position=position,
        started_at=started_at,
        elapsed_ns=10,
        counters=beside,
    )
