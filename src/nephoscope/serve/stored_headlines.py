"""Findings and headline results in the stored results of runs, each read once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from nephoscope.core.errors import StoreError
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Finding, Severity, gravest_first
from nephoscope.report import summary
from nephoscope.serve.answers import result_changed_ns, stored_result
from nephoscope.serve.run_metrics import NamedEstimate, headlines_of, read_metrics
from nephoscope.store import Store, StoredRun

MAX_FINDINGS = 3
MAX_HEADLINES = 6
"""Headline results of a target."""
MAX_RESULTS = 1000
"""Runs whose results are remembered."""

Headlines = Mapping[str, tuple[NamedEstimate, ...]]
"""Target -> its headline results."""


def stored_findings(path: Path, changed_ns: int | None) -> tuple[Finding, ...]:
    """Returns the most severe findings of a run; empty where it has no intact result.

    changed_ns: time of change of its result, which only tells versions apart.
    """
    return _read(path, changed_ns)[0]


def stored_headlines(store: Store, runs: Iterable[str], target: str) -> list[NamedEstimate]:
    """Returns the headline results of a target from several runs, the newest of each metric.

    runs: newest first. Those that benchmarks declare for a summary stand first.
    """
    newest: dict[tuple[str, str], list[NamedEstimate]] = {}
    for name in runs:
        path = store.runs_path / name
        own = _read(path, result_changed_ns(StoredRun(path)))[1].get(target, ())
        for key, lines in group_by(own, lambda line: (line.benchmark, line.metric)).items():
            newest.setdefault(key, lines)
    places = {(choice.benchmark, choice.metric): at for at, choice in enumerate(summary.choices())}
    ordered = sorted(newest.items(), key=lambda item: places.get(item[0], len(places)))
    return [line for _, lines in ordered for line in lines][:MAX_HEADLINES]


@lru_cache(maxsize=MAX_RESULTS)
def _read(path: Path, changed_ns: int | None) -> tuple[tuple[Finding, ...], Headlines]:
    text = stored_result(StoredRun(path))
    if text is None:
        return (), {}
    try:
        result: dict[str, Any] = json.loads(text)
        findings = [
            Finding(**{**value, "severity": Severity(value["severity"])})
            for value in result["findings"]
        ]
        lines = read_metrics(path.name, result)
    except (ValueError, LookupError, TypeError, StoreError):
        return (), {}
    targets = dict.fromkeys(line.target for line in lines)
    headlines = {target: tuple(headlines_of(path.name, lines, target)) for target in targets}
    return tuple(gravest_first(findings)[:MAX_FINDINGS]), headlines
