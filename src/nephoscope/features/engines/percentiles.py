"""Percentiles of all trials of a series, over runs and day files, as a question for an engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nephoscope.core.errors import StoreError
from nephoscope.core.model import Shape
from nephoscope.core.records import dataclass
from nephoscope.features.compaction import question as summaries
from nephoscope.features.compaction.question import ROWS, RunPart
from nephoscope.results import names
from nephoscope.stats.statistics import histograms
from nephoscope.stats.statistics.values import Refused
from nephoscope.store import StoredRun, day_files
from nephoscope.store.engines.question import Question, Scan

SERIES = ("benchmark", "line", "target", "factors", "unit")
ORDER = ("run", *summaries.ORDER)
ANSWERS = pa.schema(
    [
        *((name, pa.string()) for name in SERIES),
        *((name, pa.float64()) for name in ("quantile", "value", "low", "high")),
        *((name, pa.int64()) for name in ("trials", "observations")),
        ("method", pa.string()),
    ]
)
"""Percentile of a series. low, high: of its interval. method: of the interval, or why there is no
percentile."""


@dataclass(frozen=True, slots=True)
class DayPart:
    """A day file."""

    path: str


def percentiles_of(
    runs: Iterable[StoredRun],
    days: Sequence[day_files.DayFile] = (),
    quantiles: Sequence[float] = (0.5, 0.99),
    confidence: float = 0.95,
) -> Question:
    """Returns the question for percentiles of the histograms in runs and day files."""
    of_runs = summaries.question_of(runs).scan
    parts = [*of_runs.parts, *(DayPart(str(file.path)) for file in days)]
    total = of_runs.size_bytes + sum(file.size_bytes for file in days)
    scan = Scan(parts, histogram_rows, ROWS, SERIES, ORDER, total)
    return Question(scan, partial(percentiles, tuple(quantiles), confidence), ANSWERS)


def histogram_rows(part: RunPart | DayPart) -> Iterator[pa.Table]:
    """Yields a row for each histogram of a trial. Raises StoreError where a part is damaged."""
    if isinstance(part, RunPart):
        yield summaries.trial_rows(StoredRun(Path(part.path)), part.share, Shape.HISTOGRAM)
        return
    problems: list[str] = []
    for run in day_files.read(Path(part.path), problems):
        columns: dict[str, list[Any]] = {name: [] for name in ROWS.names}
        for metric in run.metrics:
            if metric.shape is not Shape.HISTOGRAM:
                continue
            for number, (values, counts) in enumerate(metric.histograms()):
                row = dict.fromkeys(ROWS.names, "") | {
                    **{name: getattr(metric, name) for name in ("benchmark", "metric", "target")},
                    **{name: getattr(metric, name) for name in ("factors", "unit", "params")},
                    "run": run.run,
                    "line": metric.metric,
                    "better": metric.better.value,
                    "trial": str(number),
                    "round": number,
                    "position": number,
                    "share": int(metric.share),
                    "shape": metric.shape.value,
                    "values": values.tobytes(),
                    "counts": counts.tobytes(),
                }
                for name, value in row.items():
                    columns[name].append(value)
        yield pa.table(columns, schema=ROWS)
    if problems:
        raise StoreError(problems[0], "Remove the file, or restore it from a copy.")


def percentiles(quantiles: Sequence[float], confidence: float, rows: pa.Table) -> pa.Table:
    """Returns the percentiles of one series from the histograms of its trials."""
    key = {name: rows[name][0].as_py() for name in SERIES}
    trials = [
        (np.frombuffer(values), np.frombuffer(counts, dtype=np.int64))
        for values, counts in zip(
            rows["values"].to_pylist(), rows["counts"].to_pylist(), strict=True
        )
    ]
    observations = sum(int(counts.sum()) for _, counts in trials)
    answers = []
    for quantile in quantiles:
        name = names.percentile_metric(key["line"], key["unit"], quantile)
        seed = names.seed_of(*(key[part] for part in SERIES[:4]), name)
        answer = {**key, "quantile": quantile, "trials": len(trials), "observations": observations}
        try:
            estimate = histograms.quantile_of_trials(
                trials, quantile, unit=key["unit"], confidence=confidence, seed=seed
            )
        except Refused as refusal:
            answer["method"] = str(refusal)
        else:
            answer |= {
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "method": estimate.method,
            }
        answers.append(answer)
    return pa.Table.from_pylist(answers, schema=ANSWERS)
