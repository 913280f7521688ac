"""Selects runs of a store by label, target, benchmark, state and date."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime

from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass
from nephoscope.store.run import StoredRun

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,62}")
_MAX_VALUE = 200
_DAY_S = 86_400


def labels(texts: Sequence[str]) -> dict[str, str]:
    """Returns the labels of `--label KEY=VALUE`; the last one of a key holds. UsageError."""
    read = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not _KEY.fullmatch(key) or len(value) > _MAX_VALUE:
            raise UsageError(
                f"A label is KEY=VALUE, not '{text}'.",
                "KEY holds letters, digits, '_', '.', '/' and '-' (at most 63); VALUE at most "
                f"{_MAX_VALUE} characters.",
            )
        read[key] = value
    return read


def day_s(option: str, text: str | None) -> float | None:
    """Returns the first moment of a day (UTC) in seconds since the epoch; None without a text."""
    if text is None:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise UsageError(f"{option}: '{text}' is not a date.", "Use the form 2026-11-21.") from None


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions that all have to hold. since_s, until_s: beginnings of the first and last day."""

    labels: Mapping[str, str] = field(default_factory=dict)
    targets: frozenset[str] = frozenset()
    benchmarks: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    since_s: float | None = None
    until_s: float | None = None

    def matches(self, run: StoredRun) -> bool:
        """Returns whether a run meets every condition; the state is looked up last."""
        manifest = run.manifest
        return self.matches_values(
            labels=run.labels,
            targets=manifest.target_names,
            benchmarks=manifest.benchmarks,
            started_s=run.started_s,
            status=lambda: run.status,
        )

    def matches_values(
        self,
        *,
        labels: Mapping[str, str],
        targets: Sequence[str],
        benchmarks: Sequence[str],
        started_s: float,
        status: Callable[[], str],
    ) -> bool:
        """Returns whether a run with these values meets every condition."""
        return (
            all(labels.get(key) == value for key, value in self.labels.items())
            and (not self.targets or not self.targets.isdisjoint(targets))
            and (not self.benchmarks or not self.benchmarks.isdisjoint(benchmarks))
            and (self.since_s is None or self.since_s <= started_s)
            and (self.until_s is None or started_s < self.until_s + _DAY_S)
            and (not self.states or status() in self.states)
        )
