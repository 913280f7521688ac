"""Sends metrics by OTLP over HTTP, in its JSON encoding.

Source: OpenTelemetry protocol specification 1.x, "OTLP/HTTP" and "JSON Protobuf Encoding": field
names in lowerCamelCase, 64-bit integers as decimal strings, enumerations as numbers. Counters and
histograms are cumulative, so that an export that fails is made up for by the next one.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import stat
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nephoscope import __version__
from nephoscope.core.errors import NephoscopeError, UsageError
from nephoscope.core.reading import regular
from nephoscope.features.watch.metrics import Family, HistogramPoint, Labels, MetricPoint

HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
"""Environment variable of the OpenTelemetry specification: name=value,…, values URL-encoded."""
TIMEOUT_S = 10.0
"""Silence of the receiver after which an export has failed."""
DEADLINE_S = 30.0
"""Time of an export, also to a receiver that sends a byte now and then."""
MAX_ANSWER_BYTES = 1 << 16
_CUMULATIVE = 2
_PATH = "/v1/metrics"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class ExportFailed(NephoscopeError):
    """Metrics were not taken by the receiver."""


class Exporter:
    """Sends families to one receiver. start_s: since when the counters count, epoch s."""

    def __init__(self, url: str, headers: Mapping[str, str], watch: str, start_s: float) -> None:
        self._url = _checked_url(url)
        self._headers = headers
        self._resource = {
            "service.name": "nephoscope",
            "service.version": __version__,
            "service.instance.id": watch,
        }
        self._start_s = start_s
        self._export: threading.Thread | None = None

    def send(self, families: Sequence[Family], at_s: float) -> None:
        """Sends the families. Raises ExportFailed with the receiver's status, never with headers.

        A redirection is not followed: it would send the headers to another server.
        """
        content = json.dumps(document(families, self._resource, self._start_s, at_s)).encode()
        headers = {**self._headers, "Content-Type": "application/json"}
        request = urllib.request.Request(self._url, content, headers, method="POST")
        answer = self._answer(request)
        if isinstance(answer, urllib.error.HTTPError):
            answer.close()
            raise self._failure(f"status {answer.code}")
        if isinstance(answer, Exception):
            reason = getattr(answer, "reason", None) or answer
            raise self._failure(type(reason).__name__)
        refused = _refused(answer)
        if refused:
            raise self._failure(f"{refused} data points were rejected")

    def _answer(self, request: urllib.request.Request) -> bytes | Exception:
        """Returns the answer to a request, or why there is none. Raises ExportFailed.

        The request has a thread, because the library's time limit begins anew with each byte.
        """
        if self._export is not None and self._export.is_alive():
            raise self._failure("the export before has no answer yet")
        answers: list[bytes | Exception] = []
        self._export = threading.Thread(target=_ask, args=(request, answers), daemon=True)
        self._export.start()
        self._export.join(DEADLINE_S)
        if not answers:
            raise self._failure(f"no answer within {DEADLINE_S:g} s")
        return answers[0]

    def _failure(self, reason: str) -> ExportFailed:
        host = urllib.parse.urlsplit(self._url).hostname
        return ExportFailed(
            f"The OTLP receiver {host} did not take the metrics: {reason}.",
            "Counters are cumulative: nothing is missing once it does.",
        )


def _ask(request: urllib.request.Request, answers: list[bytes | Exception]) -> None:
    try:
        with _OPENER.open(request, timeout=TIMEOUT_S) as answer:
            answers.append(answer.read(MAX_ANSWER_BYTES))
    except (OSError, ValueError, http.client.HTTPException) as error:
        answers.append(error)


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirection)


def headers_of(file: Path | None) -> dict[str, str]:
    """Returns the headers of a file (`Name: value` lines), else of the environment variable.

    Raises UsageError for a file that others can read, and for what is no header.
    """
    if file is None:
        pairs = [part.partition("=") for part in os.environ.get(HEADERS_VARIABLE, "").split(",")]
        headers = [(n.strip(), urllib.parse.unquote(v.strip())) for n, _, v in pairs if n.strip()]
        source = f"${HEADERS_VARIABLE}"
    else:
        source = str(file)
        try:
            with regular.open_regular(file, pipe=True) as stream:
                mode = os.fstat(stream.fileno()).st_mode
                text = stream.read(1 << 16).decode("utf-8")
                lines = [line.partition(":") for line in text.splitlines() if line]
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise UsageError(
                f"--otlp-headers: {file} cannot be read: {reason}.", "Name a file of headers."
            ) from error
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(f"{file} can be read by other users.", f"Run `chmod 600 {file}`.")
        headers = [(name.strip(), value.strip()) for name, _, value in lines]
    for name, value in headers:
        if not _HEADER_NAME.fullmatch(name) or not value.isprintable() or not value.isascii():
            raise UsageError(f"{source} has a line that is no header.", "Use `Name: value`.")
    return dict(headers)


def _checked_url(url: str) -> str:
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        usable = False
    if not usable or parts.username or parts.query or parts.fragment:
        raise UsageError(
            "--otlp takes the address of a receiver, without user, query and fragment.",
            "Use, for example, http://127.0.0.1:4318.",
        )
    path = parts.path.rstrip("/")
    return urllib.parse.urlunsplit(
        parts._replace(path=path if path.endswith(_PATH) else path + _PATH)
    )


def document(
    families: Sequence[Family], resource: Labels, start_s: float, at_s: float
) -> dict[str, Any]:
    """Returns an ExportMetricsServiceRequest."""
    times = {"startTimeUnixNano": _nanoseconds(start_s), "timeUnixNano": _nanoseconds(at_s)}
    return {
        "resourceMetrics": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeMetrics": [
                    {
                        "scope": {"name": "nephoscope.features.watch", "version": __version__},
                        "metrics": [_metric(family, times) for family in families],
                    }
                ],
            }
        ]
    }


def _metric(family: Family, times: Mapping[str, str]) -> dict[str, Any]:
    points = [_point(point, family.kind, times) for point in family.points]
    data: dict[str, Any] = {"dataPoints": points}
    if family.kind != "gauge":
        data["aggregationTemporality"] = _CUMULATIVE
    if family.kind == "counter":
        data["isMonotonic"] = True
    kind = "sum" if family.kind == "counter" else family.kind
    return {"name": family.name, "description": family.help, kind: data}


def _point(
    point: MetricPoint | HistogramPoint, kind: str, times: Mapping[str, str]
) -> dict[str, Any]:
    head: dict[str, Any] = {"attributes": _attributes(point.labels), **times}
    if isinstance(point, HistogramPoint):
        return {
            **head,
            "count": str(sum(point.counts)),
            "sum": _double(point.total),
            "bucketCounts": [str(count) for count in point.counts],
            "explicitBounds": list(point.bounds),
        }
    if kind == "counter":
        return {**head, "asInt": str(int(point.value))}
    head.pop("startTimeUnixNano")
    return {**head, "asDouble": _double(point.value)}


def _attributes(labels: Labels) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in labels.items()]


def _nanoseconds(at_s: float) -> str:
    return str(round(at_s * 1e9))


def _double(value: float) -> float | str:
    """Returns a number, or the text that the encoding has for one that JSON has not."""
    return value if math.isfinite(value) else json.dumps(value)


def _refused(text: bytes) -> int:
    """Returns the number of data points that the receiver says it rejected."""
    try:
        success = json.loads(text or b"{}").get("partialSuccess") or {}
        return int(success.get("rejectedDataPoints", 0))
    except (ValueError, AttributeError, TypeError):
        return 0
