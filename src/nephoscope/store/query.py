"""The questions that analyses ask of a run, as ibis expressions.

The same expressions run on an embedded engine here and on a distributed one where data has
outgrown a machine. Only trials that count are seen: valid, and of no warm-up round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nephoscope.errors import StoreError
from nephoscope.model import Shape

if TYPE_CHECKING:
    import ibis

    from nephoscope.store.run import StoredRun


@dataclass(frozen=True, slots=True)
class TrialValue:
    """One value of a scalar metric for one trial: the median of the trial's samples.

    factors: canonical JSON text (model.factors_key).
    """

    benchmark: str
    metric: str
    target: str
    factors: str
    unit: str
    better: str
    trial: str
    round: int
    value: float


@dataclass(frozen=True, slots=True)
class TrialHistogram:
    """One histogram of one trial; values ascend, counts[i] belongs to values[i]."""

    benchmark: str
    metric: str
    target: str
    factors: str
    unit: str
    better: str
    trial: str
    round: int
    values: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One event or reading in time of one trial; at_ns since the trial began."""

    benchmark: str
    metric: str
    target: str
    factors: str
    unit: str
    better: str
    trial: str
    round: int
    at_ns: int
    value: float
    count: int


_GROUP = ["benchmark", "metric", "target", "factors", "unit", "better", "trial", "round"]
_ORDER = ["benchmark", "metric", "target", "factors", "round", "trial"]


def table_of(paths: Sequence[Path]) -> ibis.Table:
    """The samples of these trial files as one table on an in-memory DuckDB."""
    import ibis

    from nephoscope.store.trialfile import SCHEMA

    # Nothing is fetched at run time: an engine that lacks an extension has to say so.
    engine = ibis.duckdb.connect(
        autoinstall_known_extensions=False, autoload_known_extensions=False
    )
    if not paths:
        return engine.create_table("samples", schema=ibis.Schema.from_pyarrow(SCHEMA))
    return engine.read_parquet([str(path) for path in paths], table_name="samples")


def trial_medians(run: StoredRun) -> list[TrialValue]:
    """Every scalar metric of every trial that counts, ordered by metric, then round."""
    table = _of_shape(run, Shape.SCALAR)
    rows = table.group_by(_GROUP).agg(value=table["value"].median()).order_by(_ORDER)
    return [TrialValue(**row) for row in _rows(rows, [*_GROUP, "value"])]


def histograms(run: StoredRun) -> list[TrialHistogram]:
    """Every histogram of every trial that counts, ordered by metric, then round."""
    table = _of_shape(run, Shape.HISTOGRAM)
    keys = [*_GROUP, "value"]
    rows = table.group_by(keys).agg(seen=table["count"].sum()).order_by([*_ORDER, "value"])
    answer = _answer(rows, [*keys, "seen"])
    # One thread keeps the order of rows, inside a group and of groups.
    groups = answer.group_by(_GROUP, use_threads=False).aggregate(
        [("value", "list"), ("seen", "list")]
    )
    return [
        TrialHistogram(
            **{name: row[name] for name in _GROUP},
            values=tuple(row["value_list"]),
            counts=tuple(map(int, row["seen_list"])),
        )
        for row in groups.to_pylist()
    ]


def series(run: StoredRun) -> list[SeriesPoint]:
    """Every event of every trial that counts, ordered by metric, round and time."""
    table = _of_shape(run, Shape.SERIES)
    rows = table.order_by([*_ORDER, "at_ns", "value"])
    names = [*_GROUP, "at_ns", "value", "count"]
    return [SeriesPoint(**row) for row in _rows(rows.select(names), names)]


def _of_shape(run: StoredRun, shape: Shape) -> ibis.Table:
    table = run.samples()
    wanted = [f"{benchmark}/{metric}" for benchmark, metric in run.metrics_of_shape(shape)]
    if not wanted:
        return table.limit(0)
    return table.filter((table["benchmark"] + "/" + table["metric"]).isin(wanted))


def _rows(expression: ibis.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _answer(expression, names).to_pylist()
    return rows


def _answer(expression: ibis.Table, names: Sequence[str]) -> pa.Table:
    from ibis.common.exceptions import IbisError

    try:
        answer: pa.Table = expression.select(list(names)).to_pyarrow()
    except (IbisError, pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StoreError(f"The samples cannot be read: {reason}.", "Check the store.") from error
    return answer
