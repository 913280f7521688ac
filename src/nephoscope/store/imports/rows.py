"""Figures of another tool, and the finished run that is made of them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nephoscope import limits
from nephoscope.catalog import BenchmarkSpec, MetricSpec
from nephoscope.documents import to_json
from nephoscope.errors import StoreError, UsageError
from nephoscope.model import (
    Sample,
    Setting,
    Shape,
    TrialKey,
    TrialRecord,
    TrialStatus,
    factors_key,
)
from nephoscope.reading import textfile
from nephoscope.store.imports.units import Unit
from nephoscope.store.manifest import FINISHED, is_moment
from nephoscope.store.run import StoredRun
from nephoscope.store.store import Store, spec_json

TARGET = "imported"

_NOT_CHECKED = (
    "The imported figures have no system counters, so that no trial was checked for interference "
    "by other programs or by the hypervisor."
)
_SINGLE = (
    "Each figure was measured once: there are no intervals. Import the files of several runs "
    "together."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of another tool.

    place: where it stands, for sentences. value: in the tool's unit. headline: whether it is a main
    figure of its test. at_s: seconds since 1970; None where the file does not state a time. run: id
    of the run that measured it; '' where there is none.
    """

    place: str
    test: str
    metric: str
    value: float
    unit: Unit
    factors: Mapping[str, str] = field(default_factory=dict)
    headline: bool = False
    at_s: float | None = None
    run: str = ""

    @property
    def figure(self) -> float:
        """Its value in our unit."""
        return self.value * self.unit.factor

    @property
    def group(self) -> tuple[str, str, str, str]:
        """What its repetitions have in common."""
        return (self.test, self.metric, self.unit.unit, factors_key(self.factors))


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of a file. tool: its name. missing: sentences on what the file does not tell."""

    tool: str
    rows: Sequence[Row]
    missing: tuple[str, ...] = ()


_LARGEST = 1e100
"""Of a figure, so that squares of it stay finite."""
_FROM_ZERO = frozenset({"ns", "bytes", "per_s", "bytes_per_s", "bits_per_s", "count"})
DATABASE = b"SQLite format 3\0"
"""The first bytes of a database, of which nothing else is read at once."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import: its path, its content (of a database DATABASE), time of its last change."""

    path: Path
    content: bytes
    changed_at_s: float

    @classmethod
    def read(cls, path: Path) -> Source:
        """Reads a regular file. StoreError if that is impossible, UsageError if it is too large."""
        try:
            with textfile.open_regular(path) as stream:
                status = os.fstat(stream.fileno())
                if stream.read(len(DATABASE)) == DATABASE:
                    return cls(path, DATABASE, status.st_mtime)
                stream.seek(0)
                if status.st_size > limits.IMPORT_BYTES:
                    raise UsageError(f"{path} is larger than 256 MiB.", "Import it in parts.")
                return cls(path, stream.read(limits.IMPORT_BYTES), status.st_mtime)
        except OSError as error:
            reason = error.strerror or error
            raise StoreError(
                f"{path} cannot be read: {reason}.", "Check the path and its permissions."
            ) from error

    @property
    def text(self) -> str:
        """Its content; UsageError where it is no UTF-8."""
        try:
            return self.content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.refused("it is no UTF-8 text") from error

    def refused(self, reason: str) -> UsageError:
        """Returns the error for a file that is not imported."""
        return UsageError(f"{self.path}: {reason}.", "Nothing was imported.")


def meets(row: Row, conditions: Mapping[str, str]) -> bool:
    """States whether a row has these values; keys are `test`, `metric` and its factors."""
    values = {"test": row.test, "metric": row.metric, **row.factors}
    return all(values.get(key) == value for key, value in conditions.items())


def problem_of(row: Row, *, from_zero: bool) -> str:
    """Returns what makes a row no figure that can be stored; '' for nothing.

    from_zero: whether its quantities of `_FROM_ZERO` cannot be negative.
    """
    if row.at_s is not None and not is_moment(row.at_s):
        return "its time is no time of the calendar since 1970"
    if not abs(row.figure) < _LARGEST:
        return f"{row.metric} is no number below {_LARGEST:g}: {row.value:g}"
    if from_zero and row.figure < 0 and row.unit.unit in _FROM_ZERO:
        return f"{row.metric} is below 0: {row.value:g}"
    return ""


def number(value: Any, what: str) -> float:
    """Returns a finite number. ValueError with a few words for anything else."""
    if value is None:
        raise ValueError(f"'{what}' is missing; a missing value is not a zero")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"'{what}' is no number: {value!r:.40}")
    try:
        figure = float(value)
    except OverflowError:
        figure = math.inf
    if not math.isfinite(figure):
        raise ValueError(f"'{what}' is no number: {value!r:.40}")
    return figure


def write_run(
    name: str, sources: Sequence[Source], figures: Figures, prefix: str, store: Store
) -> StoredRun:
    """Writes a finished run. Rows of one group are repetitions, in order of time: rounds 1, 2, …"""
    stated = [row.at_s for row in figures.rows if row.at_s is not None]
    started = min(stated or [source.changed_at_s for source in sources])
    groups: dict[tuple[str, ...], list[Row]] = {}
    # Sorting keeps the order of the files for rows of one time, or of none.
    for row in sorted(figures.rows, key=lambda row: row.at_s or started):
        groups.setdefault(row.group, []).append(row)
    specs = _specs(figures, prefix, sources)
    settings = [
        Setting(index, f"{prefix}.{rows[0].test}", {}, rows[0].factors, 0.0)
        for index, rows in enumerate(groups.values())
    ]
    missing = [_NOT_CHECKED, *figures.missing]
    if not stated:
        missing.append("The file states no time; the time of its last change stands instead.")
    if all(len(rows) == 1 for rows in groups.values()):
        missing.append(_SINGLE)
    files = ", ".join(source.path.name for source in sources)
    manifest = {
        "plan": {
            "version": 1,
            "name": name,
            "targets": [{"name": TARGET, "kind": "local"}],
            "benchmarks": [{"benchmark": benchmark} for benchmark in specs],
        },
        "plan_hash": "",
        "plan_name": name,
        "question": f"Results of {figures.tool}, read from {files}",
        "seed": 0,
        "probe": None,
        "protocol": None,
        "targets": [{"name": TARGET, "kind": "imported"}],
        "settings": to_json(settings),
        "specs": [spec_json(spec) for spec in specs.values()],
        "confidence": 0.95,
        "margin": 0.03,
        "budget_s": None,
        "state": FINISHED,
        "started_at": started,
        "finished_at": max(stated, default=started),
        "imported_from": ", ".join(str(source.path) for source in sources),
        "run_uris": sorted({row.run for row in figures.rows}),
        "refused": missing,
    }
    with store.new(name, manifest) as run:
        numbered = (
            (setting, number, row)
            for setting, rows in zip(settings, groups.values(), strict=True)
            for number, row in enumerate(rows, start=1)
        )
        run.store_all(
            [
                (
                    _record(setting, number, row, position, started),
                    [Sample(row.metric, row.figure)],
                    specs[setting.benchmark],
                    (),
                )
                for position, (setting, number, row) in enumerate(numbered)
            ]
        )
        run.event({"event": "imported", "file": files, "figures": len(figures.rows)})
        run.finish(FINISHED)
    return run


def _record(
    setting: Setting, round_number: int, row: Row, position: int, started: float
) -> TrialRecord:
    run = f", run {row.run}" if row.run else ""
    return TrialRecord(
        key=TrialKey(round_number, setting.index, TARGET),
        benchmark=setting.benchmark,
        params={},
        factors=setting.factors,
        status=TrialStatus.VALID,
        reasons=(),
        position=position,
        started_at=row.at_s or started,
        elapsed_ns=0,
        beside={},
        notes=(f"{row.place} of the imported file{run}.",),
    )


def _specs(figures: Figures, prefix: str, sources: Sequence[Source]) -> dict[str, BenchmarkSpec]:
    """A declaration for each test, made from its rows; its first metric is a headline for want."""
    metrics: dict[str, dict[str, MetricSpec]] = {}
    mains = {row.test for row in figures.rows if row.headline}
    for row in figures.rows:
        of_test = metrics.setdefault(f"{prefix}.{row.test}", {})
        known = of_test.get(row.metric)
        if known is not None and known.unit != row.unit.unit:
            where = f"{sources[0].path}: {row.place}" if len(sources) == 1 else row.place
            raise UsageError(
                f"{where}: {row.metric} is in {row.unit.unit}, and earlier in {known.unit}.",
                "Split the file by unit.",
            )
        if known is None:
            of_test[row.metric] = MetricSpec(
                id=row.metric,
                unit=row.unit.unit,
                better=row.unit.better,
                shape=Shape.SCALAR,
                headline=row.headline or (row.test not in mains and not of_test),
                doc=f"As {figures.tool} reported it.",
                share=row.unit.share,
            )
    return {
        name: BenchmarkSpec(
            id=name,
            summary=f"{figures.tool}: {name.removeprefix(f'{prefix}.')}",
            params=(),
            metrics=tuple(of_test.values()),
            overhead="",
            source=figures.tool,
            two_sided=False,
            page="",
        )
        for name, of_test in metrics.items()
    }
