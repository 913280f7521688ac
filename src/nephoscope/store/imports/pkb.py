"""PerfKit Benchmarker's samples: newline-delimited JSON (its `--json_path` file), or an array.

Each sample is a JSON object with the fields metric, value, unit, timestamp (seconds since the
epoch), test, run_uri, sample_uri, owner, product_uri, official and labels, a text
`|key:value|,|key:value|`. Samples that lack what they need are left out with their line: that tool
turns a missing value into a zero, we do not.

Samples of one test, metric and set of labels (labels that only name the run left out) are
repetitions of one another. PerfKit Benchmarker appends to its file, so that a sample may come
several times; one with the same sample_uri counts once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from nephoscope.core import limits
from nephoscope.core.reading import jsonstream
from nephoscope.store.imports.rows import ImportedFigures, ImportedRow, number
from nephoscope.store.imports.source import Source
from nephoscope.store.imports.units import unit_of
from nephoscope.store.manifest import is_moment

_FIELDS = frozenset({"metric", "value", "unit", "timestamp", "test", "run_uri", "labels"})
_LABEL = re.compile(r"\|([^:|]+):(.*?)\|(?=,\||$)", re.DOTALL)
_OF_THE_RUN = re.compile(
    r"(run_uri|run_number|sample_uri|run_timestamp|perfkitbenchmarker_version|owner|hostname|"
    r"start_time|end_time|date|.*uuid|.*_ip|.*_ip_address|.*instance_id|boot_id|uptime.*|"
    r"vm_name|.*_log_path|.*_output_file)"
)
"""Labels that say which run it was and not what was varied."""


def is_sample(value: Any) -> bool:
    """States whether a JSON value is a sample, also one that lacks some fields."""
    return isinstance(value, dict) and len(_FIELDS & value.keys()) >= 3 and "metric" in value


def read(source: Source) -> ImportedFigures:
    """Returns the samples of a file; what is none is left out with its line."""
    figures = ImportedFigures("PerfKit Benchmarker")
    content = source.documents
    figures.left_out += [f"Line {line}: {reason}" for line, reason in content.problems]
    if content.other_lines:
        figures.left_out.append(f"{content.other_lines} lines: this is no JSON")
    if content.cut_off_at is not None:
        figures.left_out.append(f"Line {content.cut_off_at}: the JSON ends in the middle")
    for line, value in content.values:
        samples = list(jsonstream.objects(value))
        if not samples:
            figures.left_out.append(f"Line {line}: this is no JSON object")
        for position, sample in enumerate(samples, start=1):
            place = f"Sample {position}" if isinstance(value, list) else f"Line {line}"
            try:
                figures.rows.append(_row(sample, place))
            except ValueError as error:
                figures.left_out.append(f"{place}: {error}")
    return figures


def _row(values: Mapping[str, Any], place: str) -> ImportedRow:
    size = sum(len(value) for value in values.values() if isinstance(value, str))
    if size > limits.IMPORT_LINE_BYTES:
        raise ValueError("the sample is longer than 1 MiB")
    return ImportedRow(
        place=place,
        test=_text(values, "test"),
        metric=_text(values, "metric"),
        value=number(values.get("value"), "value"),
        unit=unit_of(str(values.get("unit") or "")),
        at_s=_timestamp(values),
        factors=_factors(values.get("labels", "")),
        run=str(values.get("run_uri", "")),
        identity=_identity(values),
    )


def _identity(values: Mapping[str, Any]) -> str:
    """Returns what copies of a sample have in common."""
    uri = values.get("sample_uri")
    if isinstance(uri, str) and uri:
        keys = ("run_uri", "test", "metric", "timestamp")
        return f"{uri} {[str(values.get(key)) for key in keys]}"
    return json.dumps(values, sort_keys=True, default=str)


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"'{key}' is missing or no text")
    return value.strip()


def _timestamp(values: Mapping[str, Any]) -> float:
    at_s = number(values.get("timestamp"), "timestamp")
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
