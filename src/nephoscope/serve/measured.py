"""Which metrics the stored runs of a target have, for the choice of a history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from nephoscope.core.errors import StoreError
from nephoscope.core.model import factors_key, stated
from nephoscope.core.naming import line_name
from nephoscope.core.records import dataclass
from nephoscope.httpd.responses import RenderedResponse
from nephoscope.serve.answers import document, result_changed_ns, stored_result
from nephoscope.store import Store, StoredRun

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

    @stated
    def label(self) -> str:
        """Returns the line's name in a sentence."""
        return line_name(self.benchmark, self.metric, json.loads(self.factors))


@dataclass(frozen=True, slots=True)
class Lines:
    """The metrics of some runs, headlines first."""

    lines: tuple[LineOfTarget, ...]


def lines(store: Store, runs: Sequence[str]) -> RenderedResponse:
    """Returns the metrics of these runs, headlines first."""
    rows: dict[tuple[str, ...], LineOfTarget] = {}
    for run_id in runs:
        run = store.open(run_id)
        for name, row in _lines(run.path, result_changed_ns(run)).items():
            rows.setdefault(name, row)
    ordered = sorted(rows.values(), key=lambda row: not row.headline)
    return document({"lines": ordered})


@lru_cache(maxsize=10 * MAX_RUNS)
def _lines(path: Path, changed_ns: int | None) -> Mapping[tuple[str, ...], LineOfTarget]:
    """Returns the lines of a run's stored result; its time of change only tells versions apart."""
    text = stored_result(StoredRun(path))
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
            f"{path.name}: its result is of another version.", f"Run `nephoscope show {path.name}`."
        ) from error
    return lines
