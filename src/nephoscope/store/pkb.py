"""PerfKit Benchmarker's newline-delimited JSON (its `--json_path` file) into a run.

Format: one JSON object a line with the fields metric, value, unit, timestamp (seconds since the
epoch), test, run_uri, sample_uri, owner, product_uri, official and labels, a text
`|key:value|,|key:value|`. Lines that lack what a sample needs are refused with their number: that
tool turns a missing value into a zero, we do not.

Each line becomes one trial. Lines of one test, metric and set of labels (labels that only name the
run left out) are repetitions of one another, in order of their time: rounds 1, 2, …
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nephoscope import limits
from nephoscope.catalog import BenchmarkSpec, MetricSpec
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
from nephoscope.reading import jsontext, textfile
from nephoscope.store.foreign_units import Unit, unit_of
from nephoscope.store.manifest import FINISHED, is_moment
from nephoscope.store.run import StoredRun
from nephoscope.store.store import Store, spec_json

PLAN_NAME = "import-pkb"
TARGET = "imported"

_LABEL = re.compile(r"\|([^:|]+):(.*?)\|(?=,\||$)", re.DOTALL)
_OF_THE_RUN = re.compile(
    r"(run_uri|run_number|sample_uri|run_timestamp|perfkitbenchmarker_version|owner|hostname|"
    r"start_time|end_time|date|.*uuid|.*_ip|.*_ip_address|.*instance_id|boot_id|uptime.*|"
    r"vm_name|.*_log_path|.*_output_file)"
)
"""Labels that say which run it was and not what was varied."""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    test: str
    metric: str
    value: float
    unit: Unit
    at_s: float
    factors: Mapping[str, str]
    run_uri: str

    @property
    def group(self) -> tuple[str, str, str, str]:
        return (self.test, self.metric, self.unit.unit, factors_key(self.factors))


def import_file(path: Path, store: Store) -> StoredRun:
    """Reads a file into a new finished run. UsageError names the line that is wrong."""
    try:
        with textfile.open_regular(path) as stream:
            if os.fstat(stream.fileno()).st_size > limits.IMPORT_BYTES:
                raise UsageError(f"{path} is larger than 256 MiB.", "Import it in parts.")
            lines = list(_lines(stream.readlines(), str(path)))
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(
            f"{path} cannot be read: {reason}.", "Check the path and its permissions."
        ) from error
    if not lines:
        raise UsageError(f"{path} holds no samples.", "Give the file that --json_path wrote.")
    groups: dict[tuple[str, ...], list[_Line]] = {}
    for line in sorted(lines, key=lambda line: (line.at_s, line.number)):
        groups.setdefault(line.group, []).append(line)
    specs = _specs(lines)
    settings = [
        Setting(index, f"pkb.{rows[0].test}", {}, rows[0].factors, 0.0)
        for index, rows in enumerate(groups.values())
    ]
    with store.new(PLAN_NAME, _manifest(path, lines, settings, specs)) as run:
        position = 0
        for setting, rows in zip(settings, groups.values(), strict=True):
            for round_number, line in enumerate(rows, start=1):
                record = _record(setting, round_number, line, position)
                sample = Sample(line.metric, line.value * line.unit.factor)
                run.append(record, [sample], specs[setting.benchmark])
                position += 1
        run.event({"event": "imported", "file": str(path), "lines": len(lines)})
        run.finish(FINISHED)
    return run


def _manifest(
    path: Path,
    lines: Sequence[_Line],
    settings: Sequence[Setting],
    specs: Mapping[str, BenchmarkSpec],
) -> dict[str, Any]:
    return {
        "plan": {
            "version": 1,
            "name": PLAN_NAME,
            "targets": [{"name": TARGET, "kind": "local"}],
            "benchmarks": [{"benchmark": name} for name in specs],
        },
        "plan_hash": "",
        "plan_name": PLAN_NAME,
        "question": f"Samples of PerfKit Benchmarker, read from {path.name}",
        "seed": 0,
        "probe": None,
        "protocol": None,
        "targets": [{"name": TARGET, "kind": "imported"}],
        "settings": [asdict(setting) for setting in settings],
        "specs": [spec_json(spec) for spec in specs.values()],
        "confidence": 0.95,
        "margin": 0.03,
        "budget_s": None,
        "state": FINISHED,
        "started_at": min(line.at_s for line in lines),
        "finished_at": max(line.at_s for line in lines),
        "imported_from": str(path),
        "run_uris": sorted({line.run_uri for line in lines}),
    }


def _record(setting: Setting, round_number: int, line: _Line, position: int) -> TrialRecord:
    return TrialRecord(
        key=TrialKey(round_number, setting.index, TARGET),
        benchmark=setting.benchmark,
        params={},
        factors=setting.factors,
        status=TrialStatus.VALID,
        reasons=(),
        position=position,
        started_at=line.at_s,
        elapsed_ns=0,
        beside={},
        notes=(f"Line {line.number} of the imported file, run {line.run_uri}.",),
    )


def _specs(lines: Sequence[_Line]) -> dict[str, BenchmarkSpec]:
    """A declaration for each test, made from its samples."""
    metrics: dict[str, dict[str, MetricSpec]] = {}
    for line in lines:
        of_test = metrics.setdefault(f"pkb.{line.test}", {})
        known = of_test.get(line.metric)
        if known is not None and known.unit != line.unit.unit:
            raise UsageError(
                f"Line {line.number}: {line.metric} is in {line.unit.unit}, and earlier in "
                f"{known.unit}.",
                "Split the file by unit.",
            )
        of_test[line.metric] = MetricSpec(
            id=line.metric,
            unit=line.unit.unit,
            better=line.unit.better,
            shape=Shape.SCALAR,
            headline=known.headline if known else not of_test,
            doc="As PerfKit Benchmarker reported it.",
        )
    return {
        name: BenchmarkSpec(
            id=name,
            summary=f"PerfKit Benchmarker: {name.removeprefix('pkb.')}",
            params=(),
            metrics=tuple(of_test.values()),
            overhead="",
            source="PerfKit Benchmarker",
            two_sided=False,
            page="",
        )
        for name, of_test in metrics.items()
    }


def _lines(raw: Sequence[bytes], name: str) -> Iterator[_Line]:
    for number, line in enumerate(raw, start=1):
        if line.strip():
            try:
                yield _line(line, number)
            except ValueError as error:
                raise UsageError(
                    f"{name}:{number}: {error}.",
                    "Nothing was imported; correct or remove the line.",
                ) from error


def _line(line: bytes, number: int) -> _Line:
    """One sample. ValueError says in a few words what is wrong."""
    if len(line) > limits.IMPORT_LINE_BYTES:
        raise ValueError("the line is longer than 1 MiB")
    try:
        values = jsontext.parse(line, finite=False)
    except ValueError:
        raise ValueError("this is no JSON") from None
    if not isinstance(values, dict):
        raise ValueError("this is no JSON object")
    labels = values.get("labels", "")
    return _Line(
        number=number,
        test=_text(values, "test"),
        metric=_text(values, "metric"),
        value=_number(values, "value"),
        unit=unit_of(str(values.get("unit") or "")),
        at_s=_timestamp(values),
        factors=_factors(labels),
        run_uri=str(values.get("run_uri", "")),
    )


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"'{key}' is missing or no text")
    return value.strip()


def _number(values: Mapping[str, Any], key: str) -> float:
    value = values.get(key)
    if value is None:
        raise ValueError(f"'{key}' is missing; a missing value is not a zero")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"'{key}' is no number: {value!r:.40}")
    return float(value)


def _timestamp(values: Mapping[str, Any]) -> float:
    at_s = _number(values, "timestamp")
    if not is_moment(at_s):
        raise ValueError(f"'timestamp' is no time in seconds since 1970: {at_s!r:.40}")
    return at_s


def _factors(labels: Any) -> dict[str, str]:
    """The labels that tell settings apart; `|key:value|,|key:value|`, or an object."""
    if isinstance(labels, dict):
        factors = {str(key): str(value) for key, value in labels.items()}
    elif isinstance(labels, str):
        factors = {key.strip(): value for key, value in _LABEL.findall(labels)}
        if labels.strip() and not factors:
            raise ValueError("'labels' is not of the form |key:value|,|key:value|")
    else:
        raise ValueError("'labels' is no text")
    return {key: factors[key] for key in sorted(factors) if not _OF_THE_RUN.fullmatch(key.lower())}
