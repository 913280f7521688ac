"""The columns of the tables of `nephoscope.api`, and how records become their rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from nephoscope.core.model import factors_key
from nephoscope.store import StoredRun
from nephoscope.store.export import factor_columns

_TIME = pa.timestamp("us", "UTC")
_TEXTS = pa.list_(pa.string())


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


def _texts(*names: str) -> dict[str, pa.DataType]:
    return dict.fromkeys(names, pa.string())


_INTERVAL = {"low": pa.float64(), "high": pa.float64()}
RUNS = _schema(
    **_texts("id", "plan", "question", "state"),
    created_at=_TIME,
    finished_at=_TIME,
    targets=_TEXTS,
    benchmarks=_TEXTS,
)
TRIALS = _schema(
    trial=pa.string(),
    position=pa.int64(),
    round=pa.int64(),
    warmup=pa.bool_(),
    **_texts("target", "benchmark", "status"),
    reasons=_TEXTS,
    started_at=_TIME,
    elapsed_s=pa.float64(),
    attempt=pa.int64(),
    counters=pa.string(),
)
ESTIMATES = _schema(
    **_texts("benchmark", "metric", "target"),
    headline=pa.bool_(),
    better=pa.string(),
    value=pa.float64(),
    **_INTERVAL,
    unit=pa.string(),
    confidence=pa.float64(),
    n=pa.int64(),
    effective_n=pa.float64(),
    **_texts("method", "note", "consistency"),
    robust_cv=pa.float64(),
    warnings=_TEXTS,
)
FINDINGS = _schema(**_texts("id", "severity", "sentence"), evidence=_TEXTS, next_step=pa.string())
POINTS = _schema(
    **_texts("benchmark", "metric", "target", "run"),
    at=_TIME,
    value=pa.float64(),
    **_INTERVAL,
    unit=pa.string(),
    confidence=pa.float64(),
    n=pa.int64(),
)
CHANGES = _schema(
    **_texts("benchmark", "metric", "target", "run", "previous_run"),
    at=_TIME,
    **_texts("direction", "status"),
    shift=pa.float64(),
    **_INTERVAL,
    unit=pa.string(),
    confidence=pa.float64(),
    n=pa.int64(),
    sentence=pa.string(),
)
COMPARED = _schema(
    **_texts("benchmark", "metric", "title"),
    headline=pa.bool_(),
    **_texts("a", "b", "design", "verdict", "sentence"),
    ratio=pa.float64(),
    **_INTERVAL,
    confidence=pa.float64(),
    n_a=pa.int64(),
    n_b=pa.int64(),
    p=pa.float64(),
    warnings=_TEXTS,
)


def runs_table(runs: Iterable[StoredRun]) -> pa.Table:
    """Returns a row for each run, with a column `label_NAME` for each label that any has."""
    rows, labels = [], []
    for run in runs:
        rows.append(run_row(run))
        labels.append(run.labels)
    table = pa.Table.from_pylist(rows, schema=RUNS)
    for name in sorted({name for own in labels for name in own}):
        column = pa.array([own.get(name) for own in labels], pa.string())
        table = table.append_column(f"label_{name}", column)
    return table


def run_row(run: StoredRun) -> dict[str, Any]:
    """Returns the row of a run."""
    manifest = run.manifest
    finished = manifest.finished_at
    return {
        "id": run.id,
        "plan": str(manifest.plan_name or ""),
        "question": str(manifest.question or ""),
        "state": run.status,
        "created_at": round(float(manifest.created_at or 0) * 1e6),
        "finished_at": None if finished is None else round(float(finished) * 1e6),
        "targets": list(manifest.target_names),
        "benchmarks": sorted(manifest.benchmarks),
    }


ESTIMATE = ("value", "low", "high", "unit", "confidence", "n")


def values(record: object, *names: str) -> dict[str, Any]:
    """Returns the named attributes of a record."""
    return {name: getattr(record, name) for name in names}


def with_factors(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema, factors: Sequence[Mapping[str, Any]]
) -> pa.Table:
    """Returns the rows as a table with one column for each factor behind the others."""
    table = pa.Table.from_pylist(list(rows), schema=schema)
    for name, column in factor_columns(
        [json.loads(factors_key(factor)) for factor in factors]
    ).items():
        table = table.append_column(name, column)
    return table
