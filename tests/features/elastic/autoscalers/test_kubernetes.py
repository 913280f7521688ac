"""What a cluster reports becomes the log of its autoscaler: planted changes, in a planted order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nephoscope.autoscalers.hpa import HpaDirection, HpaPolicy
from nephoscope.core.errors import UsageError
from nephoscope.features.elastic.autoscalers import kubernetes_objects as objects
from nephoscope.features.elastic.autoscalers import names
from nephoscope.features.elastic.autoscalers.kubernetes import HpaFollower
from nephoscope.features.elastic.autoscalers.kubernetes_feed import Report, in_order

S = 1_000_000_000
HPA: dict[str, Any] = {
    "metadata": {"name": "web"},
    "spec": {
        "minReplicas": 1,
        "maxReplicas": 5,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"averageUtilization": 50}},
            }
        ],
        "behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
            },
            "scaleDown": {
                "stabilizationWindowSeconds": 5,
                "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
            },
        },
    },
}


def hpa(desired: int, **conditions: str) -> dict[str, Any]:
    """conditions: type -> reason; ScalingActive is false, all others are true."""
    listed = [
        {"type": kind, "status": "False" if kind == "ScalingActive" else "True", "reason": reason}
        for kind, reason in conditions.items()
    ]
    return {**HPA, "status": {"desiredReplicas": desired, "conditions": listed}}


def pod(name: str, *, phase: str = "Running", ready: bool = True, leaving: bool = False) -> Any:
    running = {"running": {}} if phase == "Running" else {"waiting": {}}
    return {
        "metadata": {"name": name, **({"deletionTimestamp": "x"} if leaving else {})},
        "spec": {"containers": [{"resources": {"requests": {"cpu": "100m"}}}]},
        "status": {
            "phase": phase,
            "startTime": "1970-01-01T00:00:00Z",
            "containerStatuses": [{"state": running}],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "lastTransitionTime": "1970-01-01T00:00:00Z",
                }
            ],
        },
    }


def target(replicas: int) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"replicas": replicas}, "status": {}}


def slice_of(*pods: str) -> dict[str, Any]:
    ends = [
        {"targetRef": {"kind": "Pod", "name": name}, "conditions": {"ready": True}} for name in pods
    ]
    return {"metadata": {"name": "web-x"}, "endpoints": ends, "ports": [{"port": 8080}]}


def usage(**milli: int) -> dict[str, Any]:
    items = [
        {
            "metadata": {"name": name},
            "timestamp": "2001-01-01T00:00:00Z",
            "window": "1s",
            "containers": [{"usage": {"cpu": f"{value}m"}}],
        }
        for name, value in milli.items()
    ]
    return {"documents": [{"kind": "PodMetricsList", "items": items}]}


class Log:
    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        rules = objects.settings_of(HPA, {})
        self.follower = HpaFollower(rules, "cpu", 1.0, self.emit)
        for kind, document in (("target", target(1)), ("pod", pod("a")), ("slice", slice_of("a"))):
            self.follower.take(Report(0, kind, document))
        self.follower.begin(0)

    def emit(self, name: str, **values: Any) -> None:
        self.lines.append({"event": name, **values})

    def take(
        self, at_s: float, kind: str, document: Mapping[str, Any], *, there: bool = True
    ) -> None:
        self.follower.take(Report(round(at_s * S), kind, document, is_there=there))

    def of(self, event: str) -> list[tuple[float, Any]]:
        keys = {"decision": ("present", "desired", "reason"), "deviation": ("text",)}
        return [
            (line["at_ns"] / S, *(line[key] for key in keys.get(event, ("instance",))))
            for line in self.lines
            if line["event"] == event
        ]


def test_a_scale_out_is_a_decision_and_the_steps_of_its_pod() -> None:
    log = Log()
    assert log.lines[0] == {
        "event": "begins", "at_ns": 0, "present": 1, "in_rotation": 1, "billed": 1
    }  # fmt: skip
    log.take(1, "metrics", usage(a=50))
    log.take(2, "metrics", usage(a=90))
    log.take(2.4, "target", target(2))
    log.take(2.5, "pod", pod("b", phase="Pending", ready=False))
    log.take(2.6, "hpa", hpa(2, AbleToScale="SucceededRescale"))
    log.take(3, "metrics", usage(a=90))
    log.take(4, "pod", pod("b", ready=False))
    log.take(5, "pod", pod("b"))
    log.take(5.5, "slice", slice_of("a", "b"))
    assert log.follower.entered == [("b", 8080)]
    log.take(6, "served", {"name": "b"})
    assert log.of("decision") == [(2.4, 1, 2, "")]
    steps = ("created", "booted", "ready", "in_rotation", "served")
    assert [log.of(step) for step in steps] == [
        [(2.5, "b")], [(4, "b")], [(5, "b")], [(5.5, "b")], [(6, "b")]
    ]  # fmt: skip
    metrics = [(e["at_ns"] / S, e["value"], e["wanted"]) for e in log.lines if "wanted" in e]
    assert [each for each in metrics if each[1] == 0.09] == [(2, 0.09, 2), (2.4, 0.09, 2)]
    assert log.of("deviation") == []
    counts = [line for line in log.lines if line["event"] == "in_rotation"][-1]
    assert (counts["present"], counts["in_rotation"], counts["billed"]) == (2, 2, 2)


def test_a_scale_in_takes_a_pod_out_of_rotation_before_it_is_removed() -> None:
    log = Log()
    log.take(1, "pod", pod("b"))
    log.take(1, "slice", slice_of("a", "b"))
    log.take(1, "target", target(2))
    log.take(20, "metrics", usage(a=5, b=5))
    log.take(21, "target", target(1))
    log.take(21, "hpa", hpa(1))
    log.take(21.2, "pod", pod("b", leaving=True))
    log.take(22, "metrics", usage(a=5))
    log.take(24, "pod", pod("b"), there=False)
    assert log.of("out_of_rotation") == [(21.2, "b")]
    assert log.of("removed") == [(24, "b")]
    assert log.lines[-1]["billed"] == 1


def test_only_a_pod_that_nobody_removes_dies() -> None:
    log = Log()
    for name in ("b", "c"):
        log.take(1, "pod", pod(name))
    log.take(2, "pod", pod("b", leaving=True))
    for name, leaving in (("b", True), ("c", False)):
        log.take(3, "pod", pod(name, phase="Failed", ready=False, leaving=leaving))
    assert log.of("died") == [(3, "c")]


def test_a_decision_that_no_visible_value_explains_is_named() -> None:
    log = Log()
    log.take(1, "metrics", usage(a=50))
    log.take(2.4, "target", target(4))
    log.take(2.6, "hpa", hpa(4))
    log.take(3, "metrics", usage(a=50))
    assert log.of("deviation") == [
        (2.4, "the HPA went from 1 to 4 replicas, where its formula leads to 1")
    ]


def test_what_bounds_a_decision_is_in_its_reason_and_a_late_status_hides_no_decision() -> None:
    log = Log()
    log.take(1, "metrics", usage(a=900))
    log.take(2, "target", target(5))
    log.take(2.1, "hpa", hpa(5, ScalingLimited="TooManyReplicas"))
    log.take(9, "hpa", hpa(5, ScalingActive="FailedGetResourceMetric"))
    log.take(10, "target", target(4))
    log.follower.settle(11 * S)
    assert log.of("decision")[-1][:2] == (9, 5)
    log.follower.settle(13 * S)
    reasons = [(at_s, after, reason) for at_s, _, after, reason in log.of("decision")]  # type: ignore[misc]
    assert reasons == [(2, 5, "maximum"), (9, 5, "no metric"), (10, 4, "no metric")]
    wanted = [line["wanted"] for line in log.lines if line["event"] == "decision"]
    assert wanted[0] == 18


def test_reports_are_ordered_by_the_version_of_their_change() -> None:
    """A pod that is reported before the change that led to it was still made after it."""
    made = [Report(10, "pod", {}, 8), Report(11, "metrics", {}), Report(12, "target", {}, 7)]
    ordered = [(report.kind, report.at_ns) for report in in_order(made)]
    assert ordered == [("target", 10), ("pod", 10), ("metrics", 11)]


def test_quantities_and_settings_of_objects() -> None:
    cases = {"500m": 500, "1": 1000, "2.5": 2500, "250000001n": 251, "1Ki": 1_024_000, "1e3": 10**6}
    for text, value in cases.items():
        assert objects.thousandths(text) == value
    for text in ("", "x", "1Q", "-1"):
        with pytest.raises(UsageError, match="no quantity"):
            objects.thousandths(text)
    rules = objects.settings_of(HPA, {"cpu_initialisation_s": 1.0})
    assert rules.out == HpaDirection(0.0, (HpaPolicy("Pods", 4, 15.0),))
    assert (rules.back.window_s, rules.maximum, rules.cpu_initialisation_s) == (5.0, 5, 1.0)
    plain = objects.settings_of({"spec": {**HPA["spec"], "behavior": None}}, {})
    assert (plain.out.policies, plain.back.window_s) == ((), 300.0)
    other = {"spec": {**HPA["spec"], "metrics": [{"type": "Object"}]}}
    with pytest.raises(UsageError, match="type Object"):
        objects.settings_of(other, {})


def test_paths_of_the_metrics() -> None:
    selector = objects.selector_text(
        {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}
    )
    (path,) = objects.metric_paths(HPA, "shop", selector)
    assert path == ("/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb%2Cx")
    queue = {"metric": {"name": "queue"}, "target": {"averageValue": "10"}}
    external = {"spec": {"metrics": [{"type": "External", "external": queue}]}}
    (path,) = objects.metric_paths(external, "shop", selector)
    assert path.startswith("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue?")


def test_names_of_autoscalers() -> None:
    assert names.parse("hpa:shop/web") == names.AutoscalerName("hpa", "web", "shop")
    assert names.parse("hpa:shop/web@prod").context == "prod"
    for text in ("", "shop/web", "hpa:web", "hpa:", "gce:web@x"):
        with pytest.raises(UsageError, match="names no autoscaler"):
            names.parse(text)
