"""The documented formula of the Kubernetes HorizontalPodAutoscaler.

Pure: from what the autoscaler saw to the number of replicas that its documentation states. Sources:
Kubernetes documentation, "Horizontal Pod Autoscaling" (algorithm details; configurable scaling
behavior; default behavior), and, where it names no number, the controller of release 1.34
(pkg/controller/podautoscaler). CPU and other quantities are thousandths, times are seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

UTILISATION, AVERAGE, EXTERNAL, EXTERNAL_AVERAGE = (
    "utilisation",
    "average",
    "external",
    "external_average",
)
"""Utilisation: percent of what pods request. Average: mean of the pods. External: one value, as it
is and per replica."""
PODS, PERCENT = "Pods", "Percent"
_RESERVED_PERCENT = 100


@dataclass(frozen=True, slots=True)
class HpaMetric:
    """A metric and its target: percent of utilisation, thousandths of all else. is_cpu: usage of
    pods that start does not count."""

    kind: str
    target: int
    is_cpu: bool = False


@dataclass(frozen=True, slots=True)
class HpaPolicy:
    """At most so many pods, or percent of the pods, in a period."""

    kind: str
    value: int
    period_s: float


@dataclass(frozen=True, slots=True)
class HpaDirection:
    """Behaviour in one direction. select: Max, Min or Disabled. No policies: the rule of an HPA
    without `behavior`."""

    window_s: float
    policies: tuple[HpaPolicy, ...] = ()
    select: str = "Max"
    tolerance_ratio: float = 0.1


@dataclass(frozen=True, slots=True)
class HpaSettings:
    """An HPA, with the flags of its controller: cpu_initialisation_s (5 min by default) and
    readiness_delay_s (30 s)."""

    minimum: int
    maximum: int
    metrics: tuple[HpaMetric, ...]
    out: HpaDirection
    back: HpaDirection
    cpu_initialisation_s: float = 300.0
    readiness_delay_s: float = 30.0


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod that the scale target selects. request: of the resource. started_s, since_s: when it
    started, and when its readiness last changed; None where it has no such status yet."""

    name: str
    request: int
    phase: str = "Running"
    is_leaving: bool = False
    is_ready: bool = True
    started_s: float | None = 0.0
    since_s: float | None = 0.0


@dataclass(frozen=True, slots=True)
class PodUsage:
    """Usage of a pod, with the end and the length of the window that it is of."""

    value: int
    at_s: float
    window_s: float = 0.0


@dataclass(frozen=True, slots=True)
class HpaSync:
    """What the autoscaler saw when it decided.

    values: of each metric in order: usage by pod, the value of an external one, None where the
    metric was missing. replicas: of the scale target's status.
    """

    at_s: float
    current: int
    pods: Sequence[PodView]
    values: Sequence[Mapping[str, PodUsage] | int | None]
    replicas: int | None = None


def wanted_of(settings: HpaSettings, sync: HpaSync) -> int | None:
    """Returns the largest number that a metric wants; None if too many of them are missing.

    Where only some metrics are missing, nothing is scaled in.
    """
    numbers = [
        _proposal(settings, metric, sync, value)
        for metric, value in zip(settings.metrics, sync.values, strict=True)
    ]
    present = [number for number in numbers if number is not None]
    if not present or (len(present) < len(numbers) and max(present) < sync.current):
        return None
    return max(present)


def _is_within(settings: HpaSettings, ratio: float) -> bool:
    return 1 - settings.back.tolerance_ratio <= ratio <= 1 + settings.out.tolerance_ratio


def _proposal(
    settings: HpaSettings,
    metric: HpaMetric,
    sync: HpaSync,
    value: Mapping[str, PodUsage] | int | None,
) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int):
        return _of_pods(settings, metric, sync, value)
    if metric.kind == EXTERNAL_AVERAGE:
        replicas = sync.current if sync.replicas is None else sync.replicas
        if replicas and _is_within(settings, value / (metric.target * replicas)):
            return replicas
        return math.ceil(value / metric.target)
    ratio = value / metric.target
    if not sync.current:
        return math.ceil(ratio)
    if _is_within(settings, ratio):
        return sync.current
    ready = sum(pod.phase == "Running" and pod.is_ready for pod in sync.pods)
    return math.ceil(ratio * ready)


def _of_pods(
    settings: HpaSettings, metric: HpaMetric, sync: HpaSync, usages: Mapping[str, PodUsage]
) -> int | None:
    """Returns ceil(ready pods * ratio), which pods without readiness or metric dampen."""
    if metric.kind == UTILISATION and any(pod.request <= 0 for pod in sync.pods):
        return None
    starting, missing, measured = _grouped(settings, metric, sync, usages)
    requests = {pod.name: pod.request for pod in sync.pods}
    counted = {pod.name: usages[pod.name].value for pod in measured}
    ratio = _ratio(metric, counted, requests)
    if ratio is None:
        return None
    is_damped = bool(starting) and ratio > 1
    if not is_damped and not missing:
        return sync.current if _is_within(settings, ratio) else math.ceil(ratio * len(measured))
    if ratio != 1:
        counted |= {pod.name: 0 if ratio > 1 else _assumed(metric, pod) for pod in missing}
    if is_damped:
        counted |= {pod.name: 0 for pod in starting}
    damped = _ratio(metric, counted, requests)
    if damped is None or _is_within(settings, damped) or (damped - 1) * (ratio - 1) < 0:
        return sync.current
    number = math.ceil(damped * len(counted))
    against = number > sync.current if damped < 1 else number < sync.current
    return sync.current if against else number


def _grouped(
    settings: HpaSettings, metric: HpaMetric, sync: HpaSync, usages: Mapping[str, PodUsage]
) -> tuple[list[PodView], list[PodView], list[PodView]]:
    """Returns the pods that start, those without a metric, and those that count."""
    starting, missing, measured = [], [], []
    for pod in sync.pods:
        if pod.is_leaving or pod.phase == "Failed":
            continue
        if pod.phase == "Pending":
            starting.append(pod)
        elif pod.name not in usages:
            missing.append(pod)
        elif metric.is_cpu and _is_starting(settings, pod, usages[pod.name], sync.at_s):
            starting.append(pod)
        else:
            measured.append(pod)
    return starting, missing, measured


def _is_starting(settings: HpaSettings, pod: PodView, usage: PodUsage, now_s: float) -> bool:
    if pod.started_s is None or pod.since_s is None:
        return True
    if pod.started_s + settings.cpu_initialisation_s > now_s:
        return not pod.is_ready or usage.at_s < pod.since_s + usage.window_s
    return not pod.is_ready and pod.started_s + settings.readiness_delay_s > pod.since_s


def _assumed(metric: HpaMetric, pod: PodView) -> int:
    """Usage of a pod without a metric, where the others want fewer replicas."""
    if metric.kind == UTILISATION:
        return pod.request * max(_RESERVED_PERCENT, metric.target) // _RESERVED_PERCENT
    return metric.target


def _ratio(
    metric: HpaMetric, values: Mapping[str, int], requests: Mapping[str, int]
) -> float | None:
    """The controller calculates in whole percent, and in whole thousandths."""
    if not values:
        return None
    total = sum(values.values())
    if metric.kind == AVERAGE:
        return total // len(values) / metric.target
    requested = sum(requests[name] for name in values)
    return total * 100 // requested / metric.target if requested else None
