"""Objects of Kubernetes as the rules of its autoscaler take them."""

from __future__ import annotations

import math
import re
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from nephoscope.autoscalers.hpa import (
    AVERAGE,
    EXTERNAL,
    EXTERNAL_AVERAGE,
    UTILISATION,
    HpaDirection,
    HpaMetric,
    HpaPolicy,
    HpaSettings,
    PodUsage,
    PodView,
)
from nephoscope.core.errors import UsageError

Object = Mapping[str, Any]

_SUFFIXES = {
    **{letter: Fraction(1000) ** power for power, letter in enumerate("numkMGTPE", -3)},
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
_SUFFIXES |= {"": Fraction(1)}
_REASONS = {
    "TooManyReplicas": "maximum",
    "TooFewReplicas": "minimum",
    "ScaleUpLimit": "policy",
    "ScaleDownLimit": "policy",
    "ScaleUpStabilized": "stabilisation",
    "ScaleDownStabilized": "stabilisation",
}
_DEFAULT_WINDOW_S = 300.0


def thousandths(quantity: object) -> int:
    """Returns a quantity ('500m', '1Gi') in thousandths, rounded up. Raises UsageError."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?)(?:[eE]([0-9]{1,2}))?([A-Za-z]*)", str(quantity))
    if match is None or match[3] not in _SUFFIXES:
        raise UsageError(f"'{quantity}' is no quantity of Kubernetes.")
    factor = Fraction(10) ** int(match[2] or 0) * _SUFFIXES[match[3]]
    return math.ceil(Fraction(match[1]) * factor * 1000)


def seconds(text: object) -> float | None:
    """Returns a time in seconds since 1970; None for what is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


def window_s(text: object) -> float:
    """Returns a duration of a metric ('15s', '1m0s') in seconds; 0 for what is none."""
    parts = re.findall(r"([0-9.]+)(ms|us|ns|h|m|s)", str(text))
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    return sum(float(number) * units[unit] for number, unit in parts)


def settings_of(hpa: Object, flags: Mapping[str, float]) -> HpaSettings:
    """Returns the rules of a HorizontalPodAutoscaler (autoscaling/v2).

    flags: of its controller, which the API does not show. Raises UsageError for a type of metric
    that is not followed.
    """
    spec = hpa["spec"]
    metrics = tuple(_metric(entry) for entry in spec.get("metrics") or ())
    if not metrics:
        raise UsageError("The HPA has no metric.", "Give it one in `spec.metrics`.")
    behaviour = spec.get("behavior")
    window = float(flags.get("downscale_stabilisation_s", _DEFAULT_WINDOW_S))
    tolerance = float(flags.get("tolerance_ratio", 0.1))
    return HpaSettings(
        minimum=int(spec.get("minReplicas", 1)),
        maximum=int(spec["maxReplicas"]),
        metrics=metrics,
        out=_direction(behaviour and behaviour.get("scaleUp"), 0.0, tolerance),
        back=_direction(behaviour and behaviour.get("scaleDown"), window, tolerance),
        cpu_initialisation_s=float(flags.get("cpu_initialisation_s", 300.0)),
        readiness_delay_s=float(flags.get("readiness_delay_s", 30.0)),
    )


def _direction(rules: Object | None, window: float, tolerance: float) -> HpaDirection:
    if not rules:
        return HpaDirection(window, tolerance_ratio=tolerance)
    policies = tuple(
        HpaPolicy(str(entry["type"]), int(entry["value"]), float(entry["periodSeconds"]))
        for entry in rules.get("policies") or ()
    )
    own = rules.get("tolerance")
    return HpaDirection(
        float(rules.get("stabilizationWindowSeconds", window)),
        policies,
        str(rules.get("selectPolicy") or "Max"),
        tolerance if own is None else thousandths(own) / 1000,
    )


def _metric(entry: Object) -> HpaMetric:
    kind = str(entry.get("type"))
    if kind == "Resource":
        own = entry["resource"]
        target, is_cpu = own["target"], own["name"] == "cpu"
        if "averageUtilization" in target:
            return HpaMetric(UTILISATION, int(target["averageUtilization"]), is_cpu)
        return HpaMetric(AVERAGE, thousandths(target["averageValue"]), is_cpu)
    if kind == "External":
        target = entry["external"]["target"]
        if "averageValue" in target:
            return HpaMetric(EXTERNAL_AVERAGE, thousandths(target["averageValue"]))
        return HpaMetric(EXTERNAL, thousandths(target["value"]))
    raise UsageError(
        f"The HPA has a metric of type {kind}, whose values are not followed.",
        "Followed are Resource and External; any autoscaler is observed by --observe.",
    )


def resource_of(hpa: Object) -> str:
    """Returns the resource that pods are measured by; cpu where none is."""
    entries = hpa["spec"].get("metrics") or ()
    return next((str(e["resource"]["name"]) for e in entries if "resource" in e), "cpu")


def selector_text(selector: Object) -> str:
    """Returns a label selector as a query takes it."""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for entry in selector.get("matchExpressions") or ():
        key, operator = str(entry["key"]), str(entry["operator"])
        values = ",".join(entry.get("values") or ())
        parts.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[operator]
        )
    return ",".join(parts)


def metric_paths(hpa: Object, namespace: str, selector: str) -> list[str]:
    """Returns the path of each metric in the metrics APIs, in the order of the HPA."""
    paths = []
    for entry in hpa["spec"].get("metrics") or ():
        if entry["type"] == "Resource":
            query = urllib.parse.urlencode({"labelSelector": selector})
            paths.append(f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods?{query}")
            continue
        metric = entry["external"]["metric"]
        query = urllib.parse.urlencode(
            {"labelSelector": selector_text(metric.get("selector") or {})}
        )
        name = urllib.parse.quote(str(metric["name"]), safe="")
        paths.append(f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{name}?{query}")
    return paths


def usages_of(document: Object, resource: str) -> dict[str, PodUsage]:
    """Returns the usage of each pod of a PodMetricsList."""
    usages = {}
    for entry in document.get("items") or ():
        parts = [each["usage"].get(resource) for each in entry.get("containers") or ()]
        if not parts or None in parts:
            continue
        name = str(entry["metadata"]["name"])
        value = sum(map(thousandths, parts))
        usages[name] = PodUsage(
            value, seconds(entry.get("timestamp")) or 0.0, window_s(entry.get("window"))
        )
    return usages


def external_of(document: Object) -> int | None:
    """Returns the sum of an ExternalMetricValueList in thousandths; None where it is empty."""
    items = document.get("items") or ()
    return sum(thousandths(entry["value"]) for entry in items) if items else None


def pod_of(pod: Object, resource: str) -> PodView:
    """Returns a pod as the rules see it."""
    status = pod.get("status") or {}
    ready = next((e for e in status.get("conditions") or () if e["type"] == "Ready"), None)
    requests = [
        ((each.get("resources") or {}).get("requests") or {}).get(resource)
        for each in pod["spec"].get("containers") or ()
    ]
    return PodView(
        str(pod["metadata"]["name"]),
        0 if not requests or None in requests else sum(map(thousandths, requests)),
        str(status.get("phase", "Pending")),
        bool(pod["metadata"].get("deletionTimestamp")),
        ready is not None and ready["status"] != "False",
        seconds(status.get("startTime")),
        None if ready is None else seconds(ready.get("lastTransitionTime")),
    )


def has_booted(pod: Object) -> bool:
    """Returns whether every container of a pod has started."""
    states = (pod.get("status") or {}).get("containerStatuses") or ()
    return bool(states) and all("running" in (each.get("state") or {}) for each in states)


def endpoints_of(slices: Iterable[Object]) -> dict[str, int]:
    """Returns the pods that services send requests to, each with the port of the first."""
    pods: dict[str, int] = {}
    for entry in slices:
        ports: Sequence[Object] = entry.get("ports") or ()
        port = int(ports[0].get("port") or 0) if ports else 0
        for endpoint in entry.get("endpoints") or ():
            reference = endpoint.get("targetRef") or {}
            if reference.get("kind") == "Pod" and (endpoint.get("conditions") or {}).get("ready"):
                pods.setdefault(str(reference["name"]), port)
    return pods


def reason_of(hpa: Object) -> str:
    """Returns what changed the number that the metrics want, by the HPA's own conditions."""
    conditions = {e["type"]: e for e in (hpa.get("status") or {}).get("conditions") or ()}
    active = conditions.get("ScalingActive")
    if active and active["status"] == "False":
        return "no metric"
    limited = conditions.get("ScalingLimited")
    if limited and limited["status"] == "True":
        return _REASONS.get(str(limited.get("reason")), "policy")
    able = conditions.get("AbleToScale") or {}
    return _REASONS.get(str(able.get("reason")), "")
