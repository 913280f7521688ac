"""PerfKit Benchmarker's newline-delimited JSON (its `--json_path` file).

Format: one JSON object a line with the fields metric, value, unit, timestamp (seconds since the
epoch), test, run_uri, sample_uri, owner, product_uri, official and labels, a text
`|key:value|,|key:value|`. Lines that lack what a sample needs are refused with their number: that
tool turns a missing value into a zero, we do not.

Lines of one test, metric and set of labels (labels that only name the run left out) are repetitions
of one another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nephoscope import limits
from nephoscope.errors import UsageError
from nephoscope.reading import jsontext
from nephoscope.store.imports.rows import Figures, Row, Source, number
from nephoscope.store.imports.units import unit_of
from nephoscope.store.manifest import is_moment

_LABEL = re.compile(r"\|([^:|]+):(.*?)\|(?=,\||$)", re.DOTALL)
_OF_THE_RUN = re.compile(
    r"(run_uri|run_number|sample_uri|run_timestamp|perfkitbenchmarker_version|owner|hostname|"
    r"start_time|end_time|date|.*uuid|.*_ip|.*_ip_address|.*instance_id|boot_id|uptime.*|"
    r"vm_name|.*_log_path|.*_output_file)"
)
"""Labels that say which run it was and not what was varied."""


def read(source: Source) -> Figures:
    """Returns the samples of a file. UsageError names the line that is wrong."""
    rows: list[Row] = []
    for line_number, line in enumerate(source.content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            rows.append(_row(_values(line), line_number))
        except ValueError as error:
            raise UsageError(
                f"{source.path}:{line_number}: {error}.",
                "Nothing was imported; correct or remove the line.",
            ) from error
    if not rows:
        raise UsageError(
            f"{source.path} holds no samples.", "Give the file that --json_path wrote."
        )
    return Figures("PerfKit Benchmarker", rows)


def _values(line: bytes) -> dict[str, Any]:
    """The fields of a sample. ValueError says in a few words what is wrong."""
    if len(line) > limits.IMPORT_LINE_BYTES:
        raise ValueError("the line is longer than 1 MiB")
    try:
        values = jsontext.parse(line, finite=False)
    except ValueError:
        raise ValueError("this is no JSON") from None
    if not isinstance(values, dict):
        raise ValueError("this is no JSON object")
    return values


def _row(values: Mapping[str, Any], line_number: int) -> Row:
    return Row(
        place=f"Line {line_number}",
        test=_text(values, "test"),
        metric=_text(values, "metric"),
        value=number(values.get("value"), "value"),
        unit=unit_of(str(values.get("unit") or "")),
        at_s=_timestamp(values),
        factors=_factors(values.get("labels", "")),
        run=str(values.get("run_uri", "")),
    )


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
