"""Which metrics the stored runs of a target have, for the choice of a history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nephoscope.errors import StoreError
from nephoscope.model import factors_key
from nephoscope.serve.answers import Sources, document, result_changed_ns, stored_result
from nephoscope.serve.workers import Answer

MAX_RUNS = 20
"""Newest runs, each of another plan or target, whose metrics are listed."""


@dataclass(frozen=True, slots=True)
class LineOfTarget:
    """A metric that runs of a target measured. headline: whether its benchmark is judged by it."""

    benchmark: str
    metric: str
    target: str
    factors: str
    unit: str
    headline: bool


def lines(sources: Sources, runs: Sequence[str]) -> Answer:
    """Returns the metrics of these runs, headlines first."""
    rows: dict[tuple[str, ...], LineOfTarget] = {}
    for run_id in runs:
        changed_ns = result_changed_ns(sources.run(run_id))
        for name, row in _lines(sources, run_id, changed_ns).items():
            rows.setdefault(name, row)
    ordered = sorted(rows.values(), key=lambda row: not row.headline)
    return document({"lines": ordered})


@lru_cache(maxsize=10 * MAX_RUNS)
def _lines(
    sources: Sources, run_id: str, changed_ns: int | None
) -> Mapping[tuple[str, ...], LineOfTarget]:
    """Returns the lines of a run's stored result; its time of change only tells versions apart."""
    text = stored_result(sources.run(run_id))
    if text is None:
        return {}
    try:
        metrics: list[dict[str, Any]] = json.loads(text)["metrics"]
        lines: dict[tuple[str, ...], LineOfTarget] = {}
        for line in metrics:
            name = line["benchmark"], line["metric"], line["target"], factors_key(line["factors"])
            unit, headline = line["estimate"]["unit"], bool(line["headline"])
            lines[name] = LineOfTarget(*name, unit=unit, headline=headline)
    except (ValueError, LookupError, TypeError) as error:
        raise StoreError(
            f"{run_id}: its result is of another version.", f"Run `nephoscope show {run_id}`."
        ) from error
    return lines
