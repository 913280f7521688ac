"""Stored experiments on elasticity, made up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.features.elastic import made
from tests.results.made import make_run

from nephoscope import catalog
from nephoscope.core.model import Sample, Setting, Shape
from nephoscope.features.elastic.plan import ElasticRequest, plan_elastic
from nephoscope.features.elastic.profiles import profile_of
from nephoscope.features.elastic.rule_texts import RuleLimits
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.store import StoredRun
from nephoscope.store.trialfile import AuxiliarySamples

TEXT = "p99 < 200ms"
RULE = "rate-40"
REQUEST = ElasticRequest(
    profile_of("step", 40, 80, 30),
    LatencyObjective.of(TEXT),
    TEXT,
    50.0,
    rule_texts=("rate=40",),
    limits=RuleLimits(maximum=2),
    billing_ns=10 * made.S,
    params={"interval_ns": made.S},
)


def make(
    store: Path,
    scaler: Sequence[Sample] | None = None,
    silent_from_s: int = 99,
    request: ElasticRequest = REQUEST,
) -> StoredRun:
    """A run whose autoscaler logs these samples in each of three rounds; `made.reacting` where
    none are stated. silent_from_s: from when on nothing is answered."""
    known = catalog.load()
    own = [*(made.reacting() if scaler is None else scaler)]
    spec = known.benchmark("autoscaler.reference")

    def sampled(setting: Setting, number: int, target: str) -> list[Sample]:
        trial = made.trial(made.scaler(own), silent_from_s=silent_from_s)
        samples = [*trial.samples[0]]
        seen = {sample.metric for sample in samples}
        plain = {"completed_count": 1596.0, "responses_count": 1596.0, "sent_count": 1600.0}
        plain |= {"offered_per_s": 53.3, "requests_per_s": 53.2 + number / 10, "pace_ratio": 1.0}
        return samples + [
            Sample(metric.id, plain.get(metric.id, (4.0 + number / 10) / 1600))
            for metric in known.benchmark(setting.benchmark).metrics
            if metric.shape is Shape.SCALAR and metric.id not in seen
        ]

    def logged(number: int) -> list[AuxiliarySamples]:
        samples = [
            Sample("started_wall_ns", number * 1e9),
            Sample("decisions_count", 3.0),
            *(sample for sample in own if sample.metric != "started_wall_ns"),
        ]
        return [AuxiliarySamples(spec, "balancer", {"load": RULE}, samples)]

    return make_run(
        store,
        plan_elastic(request),
        sampled,
        rounds=3,
        timeline={"measure": (0, 30 * made.S)},
        auxiliary=logged,
    )


still = partial(
    make,
    scaler=[
        *(made.level(0, state, 1) for state in ("present", "in_rotation", "billed")),
        made.step(0, "m1", "created"),
        *made.decision(3, 1, 1),
    ],
)
"""A run whose autoscaler never acts."""
