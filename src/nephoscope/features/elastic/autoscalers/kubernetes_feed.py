"""What a cluster's API reports while it happens: objects as they change, and the metrics."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nephoscope.measure.targets.exec.kubeconfig import Connection
from nephoscope.measure.targets.exec.rest import words_of_failure

_PAUSE_S = 0.2
_SILENT_S = 300
"""Time after which the API ends a watch, which is then begun again."""
_REORDER_S = 0.05
"""Reports of several watches come in another order than what they report within this time."""
_PROBE_PAUSE_S, _PROBE_S = 0.05, 60.0


@dataclass(frozen=True, slots=True)
class Report:
    """One report. kind: hpa, target, pod, slice, metrics, served, failure. version: the API's
    number of the change, of which a higher one is later; 0 for none. is_there: the object was not
    deleted."""

    at_ns: int
    kind: str
    document: Mapping[str, Any]
    version: int = 0
    is_there: bool = True


class ClusterFeed:
    """Watches and polls of a cluster, as one queue of reports."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection.server
        self._reports: queue.Queue[Report] = queue.Queue()

    def get(self, path: str) -> Mapping[str, Any]:
        """Returns a document. Raises SystemExit with a sentence where it is refused."""
        try:
            answer = self._server.request("GET", path)
        except OSError as error:
            raise SystemExit(f"Kubernetes gave no answer: {words_of_failure(error)}.") from None
        if not answer.good:
            words = str(answer.document.get("message") or f"status {answer.status}")[:200]
            raise SystemExit(f"Kubernetes: {words}.")
        return answer.document

    def watch(self, kind: str, path: str, **query: str) -> None:
        """Reports each object of a path, and from then on each change."""
        self._start(self._watch, kind, path, query)

    def poll(self, paths: list[str], interval_s: float) -> None:
        """Reports the documents of the metrics APIs, None for each that is refused."""
        self._start(self._poll, paths, interval_s)

    def await_response(self, namespace: str, pod: str, port: int, path: str) -> None:
        """Reports when a pod first answers a request through the API's proxy."""
        self._start(self._await_response, namespace, pod, port, path)

    def read(self, limit_s: float) -> list[Report]:
        """Returns what was reported in some time, in the order in which it happened."""
        reports = []
        with contextlib.suppress(queue.Empty):
            reports.append(self._reports.get(timeout=limit_s))
            until_s = time.monotonic() + _REORDER_S
            while (left_s := until_s - time.monotonic()) > 0:
                reports.append(self._reports.get(timeout=left_s))
        return in_order(reports)

    def _start(self, task: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=task, args=arguments, daemon=True).start()

    def _put(self, kind: str, document: Mapping[str, Any], is_there: bool = True) -> None:
        text = str((document.get("metadata") or {}).get("resourceVersion") or "")
        version = int(text) if text.isdecimal() else 0
        self._reports.put(Report(time.time_ns(), kind, document, version, is_there))

    def _watch(self, kind: str, path: str, query: Mapping[str, str]) -> None:
        names: set[str] = set()
        while True:
            try:
                self._watch_once(kind, path, query, names)
            except (OSError, ValueError, KeyError) as error:
                words = words_of_failure(error) if isinstance(error, OSError) else repr(error)
                self._put("failure", {"text": f"the watch of {path} failed: {words}"})
            time.sleep(_PAUSE_S)

    def _watch_once(self, kind: str, path: str, query: Mapping[str, str], names: set[str]) -> None:
        answer = self._server.request("GET", f"{path}?{urllib.parse.urlencode(query)}")
        if not answer.good:
            raise ConnectionError(str(answer.document.get("message") or answer.status)[:200])
        items = answer.document.get("items") or ()
        present = {str(entry["metadata"]["name"]) for entry in items}
        for entry in items:
            self._put(kind, entry)
        for name in names - present:
            self._put(kind, {"metadata": {"name": name}}, is_there=False)
        names.clear()
        names.update(present)
        self._put("listed", {"kind": kind})
        further = {
            **query,
            "watch": "1",
            "resourceVersion": str(answer.document["metadata"]["resourceVersion"]),
            "timeoutSeconds": str(_SILENT_S),
        }
        address = f"{path}?{urllib.parse.urlencode(further)}"
        for line in self._server.lines(address, read_s=_SILENT_S + 30.0):
            change = json.loads(line)
            if change["type"] == "ERROR":
                return  # what it began from is too old
            entry = change["object"]
            is_there = change["type"] != "DELETED"
            (names.add if is_there else names.discard)(str(entry["metadata"]["name"]))
            self._put(kind, entry, is_there)

    def _poll(self, paths: list[str], interval_s: float) -> None:
        while True:
            began_s = time.monotonic()
            documents: list[Mapping[str, Any] | None] = []
            for path in paths:
                try:
                    answer = self._server.request("GET", path)
                except OSError:
                    documents.append(None)
                    continue
                documents.append(answer.document if answer.good else None)
            self._reports.put(Report(time.time_ns(), "metrics", {"documents": documents}))
            time.sleep(max(0.0, interval_s - (time.monotonic() - began_s)))

    def _await_response(self, namespace: str, pod: str, port: int, path: str) -> None:
        name = f"{pod}:{port}" if port else pod
        address = f"/api/v1/namespaces/{namespace}/pods/{name}/proxy{path}"
        until_s = time.monotonic() + _PROBE_S
        while time.monotonic() < until_s:
            with contextlib.suppress(OSError):
                answer = self._server.request("GET", address, read_s=5.0)
                if answer.document.get("kind") == "Status" and answer.status in (401, 403):
                    return
                if answer.status < 500 and answer.document.get("kind") != "Status":
                    self._put("served", {"name": pod})
                    return
            time.sleep(_PROBE_PAUSE_S)


def in_order(reports: list[Report]) -> list[Report]:
    """Returns reports by the API's number of their change, with times that ascend as these do.

    A change was made no later than a later one was reported. Reports without number stay where
    they are among the others.
    """
    numbered = sorted(
        (report for report in reports if report.version), key=lambda report: report.version
    )
    latest_ns = 1 << 62
    results: list[Report] = []
    for report in reversed(numbered):
        latest_ns = min(latest_ns, report.at_ns)
        results.append(replace(report, at_ns=latest_ns))
    results += [report for report in reports if not report.version]
    return sorted(results, key=lambda report: (report.at_ns, report.version))
