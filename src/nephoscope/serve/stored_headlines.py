"""Findings and headline results in the stored result of a run, read once while it stays the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from nephoscope.core.errors import StoreError
from nephoscope.core.model import Finding, Severity, gravest_first
from nephoscope.serve.answers import stored_result
from nephoscope.serve.run_metrics import NamedEstimate, headlines_of, read_metrics
from nephoscope.store import StoredRun

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


def stored_headlines(path: Path, changed_ns: int | None) -> Headlines:
    """Returns the headline results of a run; empty where it has no intact result.

    changed_ns: as for `stored_findings`.
    """
    return _read(path, changed_ns)[1]


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
    headlines = {target: tuple(headlines_of(lines, target)[:MAX_HEADLINES]) for target in targets}
    return tuple(gravest_first(findings)[:MAX_FINDINGS]), headlines
