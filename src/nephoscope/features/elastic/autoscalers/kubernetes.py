"""Kubernetes' HorizontalPodAutoscaler, followed by the API: what it sees, decides, and starts.

A decision is a change of the scale target's replicas, with the reason of the HPA's conditions. It
is held to the documented formula over the metrics and pods that the same API shows. Steps of a pod:
created, booted (all containers run), ready, in rotation (an endpoint of a service), served (it
answers a request through the API's proxy), out of rotation, removed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nephoscope.autoscalers import log
from nephoscope.autoscalers.hpa import HpaSettings, HpaSync, PodView, wanted_of
from nephoscope.autoscalers.hpa_replay import HpaReplay
from nephoscope.core.errors import UsageError
from nephoscope.features.elastic.autoscalers import kubernetes_objects as objects
from nephoscope.features.elastic.autoscalers.kubernetes_feed import ClusterFeed, Report
from nephoscope.measure.targets.exec.kubeconfig import connect

Emit = Callable[..., None]

_TARGETS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "ReplicaSet": "replicasets"}
_HPAS = "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers"
_STATUS_S = 2.0
"""Time that the HPA's status may follow the change of the replicas."""
_REMEMBERED = 4000
"""Values of the metrics that are remembered: more than a stabilisation window of an hour has."""


@dataclass(slots=True)
class _Pod:
    """steps: those that were printed. present, in_rotation: whether it counts there."""

    steps: set[str] = field(default_factory=set)
    is_present: bool = True
    is_in_rotation: bool = False


@dataclass(frozen=True, slots=True)
class _ReplicaChange:
    """A change of the replicas that waits for its reason and for its explanation."""

    at_s: float
    before: int
    after: int


class HpaFollower:
    """Turns reports into the lines of the log. emit: takes a name, `at_ns`, and the values."""

    def __init__(self, settings: HpaSettings, resource: str, interval_s: float, emit: Emit) -> None:
        self._settings, self._resource, self._emit = settings, resource, emit
        self._interval_s = interval_s
        self._pods: dict[str, _Pod] = {}
        self._views: dict[str, PodView] = {}
        self._slices: dict[str, Mapping[str, Any]] = {}
        self._hpa: Mapping[str, Any] = {}
        self._replicas: int | None = None
        self._observed: int | None = None
        self._polls: deque[HpaSync] = deque(maxlen=_REMEMBERED)
        self._last_metric: tuple[float, int] | None = None
        self._undecided: list[_ReplicaChange] = []
        self._unexplained: list[_ReplicaChange] = []
        self._changes: list[tuple[float, int]] = []
        self._has_begun = False
        self.entered: list[tuple[str, int]] = []
        """Pods that came into rotation, with their port, since this list was last emptied."""

    def begin(self, at_ns: int) -> None:
        """Prints the beginning; what was reported before was there already."""
        self._has_begun = True
        self.entered.clear()
        self._emit("begins", at_ns=at_ns, **self._counts())

    def take(self, report: Report) -> None:
        """Takes one report, in the order of their times."""
        name = str((report.document.get("metadata") or {}).get("name") or "")
        if report.kind == "pod":
            self._take_pod(name, report)
        elif report.kind == "slice":
            if report.is_there:
                self._slices[name] = report.document
            else:
                self._slices.pop(name, None)
            self._rotate(report.at_ns)
        elif report.kind == "target" and report.is_there:
            self._take_target(report)
        elif report.kind == "hpa" and report.is_there:
            self._hpa = report.document
            self._take_status(report)
        elif report.kind == "metrics":
            self._take_metrics(report)
        elif report.kind == "served":
            self._step(str(report.document["name"]), "served", report.at_ns)

    def settle(self, at_ns: int) -> None:
        """Prints decisions whose reason the HPA did not state in time."""
        late = [each for each in self._undecided if at_ns / 1e9 > each.at_s + _STATUS_S]
        for change in late:
            self._decide(change)

    def _counts(self) -> dict[str, int]:
        present = sum(pod.is_present for pod in self._pods.values())
        rotating = sum(pod.is_in_rotation for pod in self._pods.values())
        return {"present": present, "in_rotation": rotating, "billed": len(self._pods)}

    def _step(self, name: str, step: str, at_ns: int) -> None:
        pod = self._pods.get(name)
        if pod is None or step in pod.steps:
            return
        pod.steps.add(step)
        if self._has_begun:
            self._emit(step, at_ns=at_ns, instance=name, **self._counts())

    def _take_pod(self, name: str, report: Report) -> None:
        if not report.is_there:
            pod = self._pods.get(name)
            self._views.pop(name, None)
            if pod is not None:
                pod.is_present = False
                self._leave(name, pod, report.at_ns)
                del self._pods[name]
                if self._has_begun:
                    self._emit("removed", at_ns=report.at_ns, instance=name, **self._counts())
            return
        view = objects.pod_of(report.document, self._resource)
        self._views[name] = view
        pod = self._pods.setdefault(name, _Pod())
        pod.is_present = not view.is_leaving and view.phase not in ("Failed", "Succeeded")
        self._step(name, "created", report.at_ns)
        if objects.has_booted(report.document):
            self._step(name, "booted", report.at_ns)
        if view.is_ready and view.phase == "Running":
            self._step(name, "ready", report.at_ns)
        # The program of a pod that is removed may end with the code of its signal: also "Failed".
        if view.phase == "Failed" and not view.is_leaving:
            self._step(name, "died", report.at_ns)
        if not pod.is_present:
            self._leave(name, pod, report.at_ns)
        self._rotate(report.at_ns)

    def _leave(self, name: str, pod: _Pod, at_ns: int) -> None:
        if pod.is_in_rotation:
            pod.is_in_rotation = False
            self._step(name, "out_of_rotation", at_ns)

    def _rotate(self, at_ns: int) -> None:
        """Takes pods into and out of rotation as the services have them."""
        endpoints = objects.endpoints_of(self._slices.values())
        for name, pod in self._pods.items():
            rotates = name in endpoints and pod.is_present
            if rotates and not pod.is_in_rotation:
                pod.is_in_rotation = True
                pod.steps.discard("out_of_rotation")
                if "in_rotation" not in pod.steps:
                    self.entered.append((name, endpoints[name]))
                self._step(name, "in_rotation", at_ns)
            elif not rotates:
                self._leave(name, pod, at_ns)

    def _take_target(self, report: Report) -> None:
        spec, status = report.document.get("spec") or {}, report.document.get("status") or {}
        replicas, before = int(spec.get("replicas", 1)), self._replicas
        self._replicas = replicas
        self._observed = int(status.get("replicas", 0))
        if before is not None and replicas != before and self._has_begun:
            self._undecided.append(_ReplicaChange(report.at_ns / 1e9, before, replicas))

    def _take_status(self, report: Report) -> None:
        """Prints a decision: of the change that the status is about, or to change nothing."""
        desired = (report.document.get("status") or {}).get("desiredReplicas")
        own = next((each for each in self._undecided if each.after == desired), None)
        if own is not None:
            self._decide(own)
            return
        # A number that nothing bounds and that stays is no news.
        reason = objects.reason_of(report.document)
        if reason and self._has_begun and self._replicas is not None and desired == self._replicas:
            self._print_decision(report.at_ns, self._replicas, self._replicas, reason)

    def _decide(self, change: _ReplicaChange) -> None:
        self._undecided.remove(change)
        reason = objects.reason_of(self._hpa)
        self._print_decision(round(change.at_s * 1e9), change.before, change.after, reason)
        self._unexplained.append(change)

    def _print_decision(self, at_ns: int, before: int, after: int, reason: str) -> None:
        value, wanted = self._last_metric or (-1.0, after)
        self._emit(
            "decision",
            at_ns=at_ns,
            value=value,
            present=before,
            ready=sum(view.is_ready for view in self._views.values()),
            wanted=wanted if reason else after,
            desired=after,
            reason=reason,
        )

    def _take_metrics(self, report: Report) -> None:
        values = [
            None
            if document is None
            else objects.external_of(document)
            if "ExternalMetricValueList" in str(document.get("kind"))
            else objects.usages_of(document, self._resource)
            for document in report.document["documents"]
        ]
        if self._replicas is None:
            return
        views = tuple(self._views.values())
        sync = HpaSync(report.at_ns / 1e9, self._replicas, views, values, self._observed)
        self._polls.append(sync)
        self._explain(sync)
        wanted = wanted_of(self._settings, sync)
        if wanted is None or not self._has_begun:
            return
        first = values[0]
        value = 0.0
        if first is not None:
            value = (
                first if isinstance(first, int) else sum(u.value for u in first.values())
            ) / 1e3
        if (value, wanted) != self._last_metric:
            self._last_metric = value, wanted
            self._emit("metric", at_ns=report.at_ns, value=value, rate=0.0, wanted=wanted)

    def _explain(self, last: HpaSync) -> None:
        """Holds changes to the formula, once a value of the metric after them was seen."""
        for change in self._unexplained:
            allowed = self._allowed(change, last)
            self._changes.append((change.at_s, change.after - change.before))
            if change.after not in allowed:
                text = (
                    f"the HPA went from {change.before} to {change.after} replicas, where its "
                    f"formula leads to {' or '.join(map(str, sorted(allowed))) or 'nothing'}"
                )
                self._emit("deviation", at_ns=round(change.at_s * 1e9), text=text)
        self._unexplained = []

    def _allowed(self, change: _ReplicaChange, last: HpaSync) -> set[int]:
        """Returns the numbers that follow from what was visible around a change.

        Neither the time at which the HPA read the metric is visible, nor decisions that changed
        nothing: what it may have seen are the values of two intervals before, and the next one.
        """
        slack_s = max(1.0, 2 * self._interval_s)
        before = [each for each in self._polls if each.at_s <= change.at_s]
        recent = [each for each in before if each.at_s >= change.at_s - slack_s] or before[-1:]
        window_s = max(self._settings.out.window_s, self._settings.back.window_s)
        recommendations = [
            (each.at_s, wanted)
            for each in before
            if each.at_s > change.at_s - window_s - slack_s
            and (wanted := wanted_of(self._settings, each)) is not None
        ]
        allowed: set[int] = set()
        for pods in recent:
            for seen in (*recent, last):
                sync = replace(pods, at_s=change.at_s, current=change.before, values=seen.values)
                replay = HpaReplay(
                    self._settings,
                    slack_s,
                    [each for each in recommendations if each[0] < pods.at_s],
                    list(self._changes),
                )
                allowed |= replay.decide(sync).allowed
        return allowed


def _target_path(hpa: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    reference = hpa["spec"]["scaleTargetRef"]
    plural = _TARGETS.get(str(reference["kind"]))
    if plural is None:
        raise SystemExit(
            f"The HPA scales a {reference['kind']}; followed are {', '.join(_TARGETS)}."
        )
    return f"/apis/apps/v1/namespaces/{namespace}/{plural}", str(reference["name"])


def follow(settings: Mapping[str, Any]) -> None:
    """Follows until SIGTERM. settings: name, place, context, endpoint (a kubeconfig), interval_s,
    path (of the service), flags (of the controller), address, port."""
    namespace, name = str(settings["place"]), str(settings["name"])
    feed = ClusterFeed(connect(str(settings["endpoint"]), str(settings["context"])))
    hpa = feed.get(f"{_HPAS.format(namespace)}/{name}")
    targets, target = _target_path(hpa, namespace)
    own = feed.get(f"{targets}/{target}")
    selector = objects.selector_text(own["spec"]["selector"])
    resource = objects.resource_of(hpa)
    try:
        rules = objects.settings_of(hpa, settings["flags"])
    except UsageError as error:
        raise SystemExit(str(error)) from None
    interval_s = float(settings["interval_s"])
    follower = HpaFollower(rules, resource, interval_s, log.event)
    feed.watch("hpa", _HPAS.format(namespace), fieldSelector=f"metadata.name={name}")
    feed.watch("target", targets, fieldSelector=f"metadata.name={target}")
    feed.watch("pod", f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
    feed.watch("slice", f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices")
    feed.poll(objects.metric_paths(hpa, namespace, selector), interval_s)
    waiting = {"hpa", "target", "pod", "slice"}
    while not log.ended.is_set():
        reports: Sequence[Report] = feed.read(0.1)
        for report in reports:
            if report.kind == "failure":
                log.event("unobserved", failure=report.document["text"])
            elif report.kind == "listed" and waiting:
                waiting.discard(str(report.document["kind"]))
                if not waiting:
                    follower.begin(report.at_ns)
                    answer = lambda *_: (200, "")  # noqa: E731
                    log.serve(str(settings["address"]), int(settings["port"]), answer)
            else:
                follower.take(report)
        for pod, port in follower.entered:
            feed.await_response(namespace, pod, port, str(settings["path"]))
        follower.entered.clear()
        follower.settle(time.time_ns())
    log.event("ended")
