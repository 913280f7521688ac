"""Events from Prometheus: the JSON of a range query of a metric that is 1 or 0.

Such metrics are probe_success of the blackbox exporter and up. A series is a service (its label
`instance`, else all of its labels); further series of one instance are its observers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import foreign, jsontext, textfile

_HINT = (
    "Ask /api/v1/query_range for probe_success or up, or write CSV or Parquet with the columns "
    "time and ok."
)
_SERVICE = ("instance", "target", "service", "job")
"""Labels that name the service, the first that a series has."""

Labels = Mapping[str, str]


def batches(path: Path, wanted: Sequence[str]) -> Iterator[Any]:
    """Yields the points of a JSON file as batches of events. Raises UsageError."""
    import pyarrow as pa

    series = _series(path)
    names = _names([labels for labels, _ in series])
    for (labels, points), (service, observer) in zip(series, names, strict=True):
        where = f"{path}: series {_text(labels)}"
        values = [_point(point, where) for point in points]
        columns = {
            "time": pa.array([at for at, _ in values], pa.float64()),
            "service": pa.array([service] * len(values), pa.string()),
            "observer": pa.array([observer] * len(values), pa.string()),
            "ok": pa.array([ok for _, ok in values], pa.int64()),
        }
        yield pa.RecordBatch.from_pydict(columns)


def _series(path: Path) -> list[tuple[Labels, list[Any]]]:
    """Returns labels and points of each series of a response of Prometheus."""
    try:
        document = jsontext.parse(textfile.large_bytes(path, "Ask for a shorter time."))
    except ValueError as error:
        raise UsageError(f"{path}: this is no JSON: {error}.", _HINT) from None
    try:
        if document["status"] != "success":
            reason = str(document.get("error", document["status"]))[:200].rstrip(".")
            raise UsageError(f"{path}: Prometheus answered with an error: {reason}.", _HINT)
        kind, result = document["data"]["resultType"], document["data"]["result"]
        if kind != "matrix":
            raise UsageError(
                f"{path}: this is the response to an instant query ({kind!s:.20}), which has no "
                "history.",
                _HINT,
            )
        if any("histograms" in entry for entry in result):
            raise UsageError(f"{path}: a histogram is no success or failure.", _HINT)
        return [(_labels(entry["metric"]), list(entry["values"])) for entry in result]
    except (KeyError, TypeError, AttributeError):
        what = foreign.format_of(document) or "JSON"
        raise UsageError(
            f"{path}: this is {what}, not the response of a range query of Prometheus.", _HINT
        ) from None


def _labels(metric: Any) -> Labels:
    return {str(key): str(value) for key, value in dict(metric).items()}


def _names(every: Sequence[Labels]) -> list[tuple[str, str]]:
    """Returns service and observer of each series; one series of a service has no observer."""
    services = [
        next((labels[k] for k in _SERVICE if k in labels), _text(labels)) for labels in every
    ]
    members: dict[str, list[Labels]] = defaultdict(list)
    for service, labels in zip(services, every, strict=True):
        members[service].append(labels)
    return [
        (service, _difference(labels, members[service]))
        for service, labels in zip(services, every, strict=True)
    ]


def _difference(labels: Labels, series: Sequence[Labels]) -> str:
    """Returns the labels in which a series differs from others of its service."""
    keys = sorted({key for series in series for key in series})
    different = [key for key in keys if len({series.get(key) for series in series}) > 1]
    return ",".join(f"{key}={labels.get(key, '')}" for key in different)


def _text(labels: Labels) -> str:
    inner = ",".join(f'{k}="{v}"' for k, v in labels.items() if k != "__name__")
    return f"{labels.get('__name__', '')}{{{inner}}}"[:200]


def _point(point: Any, where: str) -> tuple[float, int | None]:
    """Returns time and outcome of a point; None where the value is not a number (stale)."""
    try:
        at, value = float(point[0]), float(point[1])
    except (TypeError, ValueError, LookupError):
        raise UsageError(f"{where}: {str(point)[:60]} is no point.", _HINT) from None
    if math.isnan(value):
        return at, None
    if value not in (0.0, 1.0):
        raise UsageError(
            f"{where}: the value {value:g} is neither 1 nor 0; this metric tells no success.", _HINT
        )
    return at, int(value)
