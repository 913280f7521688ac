"""The real HorizontalPodAutoscaler: explained step for step, followed under load, and its caps."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.clouds import kubernetes
from tests.clouds.kubernetes import balancer
from tests.clouds.kubernetes.metrics_service import MetricsService, Seen, serving
from tests.tools import find, needs

from nephoscope.autoscalers.hpa import HpaSync
from nephoscope.autoscalers.hpa_replay import deviations
from nephoscope.core.model import RunResult
from nephoscope.features.elastic import terminal
from nephoscope.features.elastic.autoscalers import kubernetes_objects as objects
from nephoscope.features.elastic.autoscalers import names
from nephoscope.features.elastic.plan import ElasticRequest, plan_elastic
from nephoscope.features.elastic.profiles import profile_of
from nephoscope.features.elastic.records import Elasticity
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.measure import runs
from nephoscope.measure.targets.exec.kubernetes import connect
from nephoscope.measure.targets.kinds import parse
from nephoscope.results import analyse_run
from nephoscope.store import Store

pytestmark = [pytest.mark.slow, needs("haproxy", *kubernetes.PROGRAMS)]

SYNC_S = 2
FLAGS = (
    f"--horizontal-pod-autoscaler-sync-period={SYNC_S}s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
)
NAME, TARGET_PERCENT, REQUEST_MILLI, MOST = "web", 50, 100, 4
WINDOW_S = 9
"""Of stabilisation: no multiple of the interval, so that no decision falls upon its end."""
SLACK_S = 0.7
"""The autoscaler reads the clock after it has asked for the metric, which takes so long at most on
a machine that does something else too."""
TRIAL_S, ROUNDS = 120, 3
LOOP = "i=0; while [ $i -lt 4000 ]; do i=$((i + 1)); done"
SERVICE = rf"""
mkdir -p /www/cgi-bin
cat >/www/cgi-bin/work <<'END'
#!/bin/sh
{LOOP}
printf 'Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n'
END
chmod +x /www/cgi-bin/work
exec httpd -f -p 8080 -h /www
"""


@dataclass(frozen=True)
class Lab:
    """A cluster with a service, its autoscaler, and a metrics API."""

    cluster: kubernetes.Cluster
    folder: Path
    metrics: MetricsService

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = connect(str(self.cluster.kubeconfig)).server.request(
            method, path, body, content_type="application/merge-patch+json" if method == "PATCH"
            else "application/json",
        )  # fmt: skip
        assert answer.good, answer.text
        return dict(answer.document)

    def replicas(self) -> int:
        path = f"/apis/apps/v1/namespaces/default/deployments/{NAME}"
        return int(self.ask("GET", path)["spec"]["replicas"])

    def hpa(self) -> dict[str, Any]:
        return self.ask(
            "GET", f"/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/{NAME}"
        )

    def await_replicas(self, count: int, limit_s: float = 180.0) -> float:
        """Returns the seconds until so many are wanted and ready."""
        began_s = time.monotonic()
        path = f"/apis/apps/v1/namespaces/default/deployments/{NAME}"

        def is_reached() -> bool:
            own = self.ask("GET", path)
            ready = own.get("status", {}).get("readyReplicas", 0)
            return bool(own["spec"]["replicas"] == count == ready)

        self.cluster.room.until(is_reached, limit_s)
        return time.monotonic() - began_s


def _objects() -> Iterator[tuple[str, dict[str, Any]]]:
    labels = {"app": NAME}
    container = {
        "name": "main",
        "image": kubernetes.IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-c", SERVICE],
        "resources": {"requests": {"cpu": f"{REQUEST_MILLI}m"}},
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    yield (
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "metadata": {"name": NAME},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [container],
                        "terminationGracePeriodSeconds": 1,
                        "automountServiceAccountToken": False,
                        "enableServiceLinks": False,
                    },
                },
            },
        },
    )
    yield (
        "/api/v1/namespaces/default/services",
        {
            "metadata": {"name": NAME},
            "spec": {"selector": labels, "ports": [{"port": 8080}]},
        },
    )
    target = {"type": "Utilization", "averageUtilization": TARGET_PERCENT}
    yield (
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        {
            "metadata": {"name": NAME},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
                "minReplicas": 1,
                "maxReplicas": MOST,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": WINDOW_S}},
            },
        },
    )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("autoscaler")
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(kubernetes.running(folder, *FLAGS))
        server = connect(str(cluster.kubeconfig)).server
        for path, body in _objects():
            answer = server.request("POST", path, body)
            assert answer.good, answer.text
        metrics = stack.enter_context(serving(cluster, folder, NAME))
        made = Lab(cluster, folder, metrics)
        made.await_replicas(1)
        yield made


def syncs_of(seen: Seen) -> list[HpaSync]:
    """What the autoscaler saw at a request: its pods were those of the moment, or of the next."""
    usages = objects.usages_of(seen.answer, "cpu")
    spec, status = seen.target["spec"], seen.target.get("status", {})
    return [
        HpaSync(
            seen.at_s,
            int(spec["replicas"]),
            [objects.pod_of(pod, "cpu") for pod in pods],
            [usages],
            int(status.get("replicas", 0)),
        )
        for pods in seen.pods
    ]


def test_each_decision_follows_from_the_documented_formula(lab: Lab) -> None:
    """A planted course of the metric: out, to the cap, within the tolerance, in, and missing."""
    lab.metrics.total_milli = 50  # 50 % of one pod's request: the target
    lab.await_replicas(1)
    lab.metrics.seen.clear()
    course = ((50, 1), (54, 1), (95, 2), (190, 4), (900, 4), (140, 3), (20, 1))
    for milli, replicas in course:
        lab.metrics.total_milli = milli
        time.sleep(3 * SYNC_S)
        lab.await_replicas(replicas)
    lab.metrics.is_down = True
    time.sleep(2 * SYNC_S)
    assert lab.replicas() == 1
    lab.metrics.is_down = False
    lab.metrics.total_milli = 50
    time.sleep(2 * SYNC_S)
    seen = sorted(lab.metrics.seen, key=lambda each: each.at_s)
    after = [int(each.target["spec"]["replicas"]) for each in seen[1:]]
    decisions = [(syncs_of(each), count) for each, count in zip(seen, after, strict=False)]
    sys.stdout.write(f"{len(decisions)} decisions of the autoscaler\n")
    assert len(decisions) > 20
    assert {count for _, count in decisions} == {1, 2, 3, 4}
    hpa = lab.hpa()
    rules = objects.settings_of(hpa, {"readiness_delay_s": 1.0})
    assert deviations(rules, decisions, SLACK_S) == []
    # The check can fail: with another target the same decisions do not follow.
    hpa["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] = 80
    other = objects.settings_of(hpa, {"readiness_delay_s": 1.0})
    assert len(deviations(other, decisions, SLACK_S)) >= 3


def cpu_s_of_a_request() -> float:
    """CPU time of the service's script, by the machine's own account."""
    busybox = find("busybox")
    assert busybox
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(20):
        subprocess.run([busybox, "sh", "-c", LOOP], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 20


def measured(lab: Lab, url: str, store: Path) -> tuple[RunResult, Elasticity]:
    """A step from 30 % to 130 % of the usage at which one pod is at its target, and back."""
    text = "p99 < 5s"
    capacity = REQUEST_MILLI * TARGET_PERCENT / 100 / 1000 / cpu_s_of_a_request()
    request = ElasticRequest(
        profile_of("step", 0.6 * capacity, 2.6 * capacity, TRIAL_S),
        LatencyObjective.of(text),
        text,
        capacity_per_s=capacity,
        url=url,
        managed=names.AutoscalerName(names.HPA, NAME, "default"),
        endpoint=str(lab.cluster.kubeconfig),
        observe_interval_ns=500_000_000,
        flags={"readiness_delay_ns": 1_000_000_000},
        target=parse("local"),
        rounds=ROUNDS,
        connections=64,
    )
    run = runs.execute(plan_elastic(request), Store(store))
    result = analyse_run.build(run)
    elastic = result.part(Elasticity)
    assert elastic is not None, result
    return result, elastic


def test_real_load_through_the_kubelet_s_measurement_scales_real_pods(
    lab: Lab, tmp_path: Path
) -> None:
    """Requests use CPU time, the kubelet measures it, the autoscaler acts upon it."""
    lab.metrics.total_milli = None
    haproxy = find("haproxy")
    assert haproxy
    with balancer.balancing(lab.cluster, tmp_path, haproxy) as url:
        result, elastic = measured(lab, f"{url}/cgi-bin/work", tmp_path / "store")
    sys.stdout.write(terminal.text(result) + "\n")
    (summary,) = elastic.autoscalers
    assert summary.problems == ()
    segments = {"creation", "boot", "warm_up", "rotation", "first_response", "total"}
    assert segments <= set(summary.out_segments)
    assert "total" in summary.in_segments
    assert all(estimate.n >= ROUNDS for estimate in summary.out_segments.values())
    out = [each for trial in elastic.trials for each in trial.changes if each.size > 0]
    # Every step of a pod comes after the one before it.
    for change in out:
        steps = (
            change.decided_s, change.created_s, change.booted_s, change.ready_s,
            change.in_rotation_s, change.served_s,
        )  # fmt: skip
        times = [each for each in steps if each is not None]
        assert times == sorted(times), change
    assert not any("did not follow" in note for note in summary.notes), summary.notes
