"""Simulated runs, made up, with known figures: trials with their documents, and their lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.results.made import run_data
from tests.store.factory import trial_record

from nephoscope.core.model import (
    Better,
    Consistency,
    Estimate,
    MetricResult,
    RunResult,
    RunSummary,
    TrialRecord,
    TrialStatus,
    factors_key,
)
from nephoscope.features.simulation.result import analyse

MS = 1e6
N = 10

PLACES: dict[str, Any] = {
    "objective_ms": 300,
    "user_bases": [
        {"name": "north", "region": "N. America", "latitude": 40.0, "longitude": -98.0,
         "users": 42000},
        {"name": "europe", "region": "Europe", "latitude": 50.0, "longitude": 10.0,
         "users": 18480},
        {"name": "asia", "region": "Asia", "latitude": 25.0, "longitude": 95.0, "users": 16800},
        {"name": "nowhere", "region": "Asia", "latitude": None, "longitude": None, "users": 10},
    ],
    "sites": [{"name": "us", "region": "N. America", "latitude": 40.0, "longitude": -98.0}],
    "caches": [{"name": "edge", "region": "Europe", "latitude": 48.0, "longitude": 2.0}],
}  # fmt: skip
MEANS = {"N. America": 80.5, "Europe": 269.9, "Asia": 504.9}
TWO = {
    **PLACES,
    "sites": [
        *PLACES["sites"],
        {"name": "eu", "region": "Europe", "latitude": 50.0, "longitude": 10.0},
    ],
}


def line(
    benchmark: str, metric: str, value: float, unit: str, factors: Mapping[str, Any] | None = None
) -> MetricResult:
    """A line over N replications whose interval is one per cent to either side."""
    return MetricResult(
        benchmark,
        metric,
        "sim",
        dict(factors or {}),
        Better.LOWER,
        Estimate(value, value * 0.99, value * 1.01, 0.95, N, unit, "median, order statistics"),
        Consistency(0.01, 0.01, 0.01, 0.01, 0.01, "steady"),
        trial_values=(value,) * N,
        rounds=tuple(range(1, N + 1)),
    )


def record(
    benchmark: str,
    *,
    round: int = 1,
    setting: int = 0,
    factors: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    documents: Mapping[str, Any] | None = None,
    status: TrialStatus = TrialStatus.VALID,
) -> TrialRecord:
    """One replication."""
    return trial_record(
        round,
        "sim",
        setting=setting,
        benchmark=benchmark,
        params=dict(params or {}),
        factors=dict(factors or {}),
        status=status,
        reasons=() if status is TrialStatus.VALID else ("the test says so",),
        documents=dict(documents or {}),
    )


def geo_lines(
    means: Mapping[str, float], given: Mapping[str, Any] | None = None, *, within: float = 0.4
) -> list[MetricResult]:
    """A deployment: mean response times by region in ms, and what stands around them."""
    given = dict(given or {})

    def one(metric: str, value: float, unit: str, **own: Any) -> MetricResult:
        return line("sim.geo", metric, value, unit, {**given, **own})

    out = [
        one("response_time_mean_ns", 217.3 * MS, "ns"),
        one("response_time_p99_ns", 600 * MS, "ns"),
        one("within_objective_ratio", 0.81, "ratio"),
        one("requests", 65_300_000, "count"),
        one("cost_usd", 36.0, "none"),
        one("cost_usd", 24.0, "none", site="us", part="instances"),
        one("cost_usd", 12.0, "none", site="us", part="transfer"),
        one("requests", 65_300_000, "count", site="us"),
        one("utilisation_ratio", 0.97, "ratio", site="us"),
        one("processing_time_mean_ns", 12 * MS, "ns", site="us"),
    ]
    for region, mean in means.items():
        out += [
            one("response_time_mean_ns", mean * MS, "ns", region=region),
            one("response_time_p99_ns", 1.3 * mean * MS, "ns", region=region),
            one("within_objective_ratio", 1.0 if mean < 290 else within, "ratio", region=region),
        ]
    for hour in range(24):
        load = 2_000_000 + 1_000_000 * (hour % 12)
        out.append(one("requests", load, "count", site="us", hour=hour))
        out.append(one("response_time_mean_ns", (200 + hour) * MS, "ns", hour=hour))
    return out


def histogram(centre_ms: float) -> tuple[list[float], list[int]]:
    """Response times around a centre."""
    values = [centre_ms * MS * (0.7 + 0.01 * step) for step in range(61)]
    return values, [100 * (31 - abs(step - 30)) for step in range(61)]


def deployments() -> tuple[list[TrialRecord], list[MetricResult], dict[Any, Any]]:
    """One scenario with one site, by ten replications."""
    records = [record("sim.geo", round=n, documents={"locations": PLACES}) for n in range(N + 1)]
    merged = {
        ("sim.geo", "response_time_ns", "sim", factors_key({"region": region})): histogram(mean)
        for region, mean in MEANS.items()
    }
    return records, geo_lines(MEANS), merged


def three_deployments() -> tuple[list[TrialRecord], list[MetricResult], dict[Any, Any]]:
    """One site, the other, and both: with both, Asia is faster than with either (as printed)."""
    only_eu = {**PLACES, "sites": [TWO["sites"][1]]}
    told: list[tuple[str, dict[str, Any], dict[str, float]]] = [
        ("us", PLACES, MEANS),
        ("eu", only_eu, {"N. America": 262.4, "Europe": 60.5, "Asia": 625.0}),
        ("both", TWO, {"N. America": 101.8, "Europe": 68.8, "Asia": 305.9}),
    ]
    records, lines = [], []
    for setting, (name, places, means) in enumerate(told):
        given = {"placement": name}
        records.append(
            record("sim.geo", setting=setting, factors=given, documents={"locations": places})
        )
        lines += geo_lines(means, given)
    return records, lines, {}


FRONT = [
    {"sites": ["us", "eu", "asia"], "cost_usd_per_h": 3.0, "within_ratio": 0.999,
     "response_time_mean_ns": 60 * MS},
    {"sites": ["us"], "cost_usd_per_h": 1.0, "within_ratio": 0.71,
     "response_time_mean_ns": 217 * MS},
    {"sites": ["us", "eu"], "cost_usd_per_h": 2.0, "within_ratio": 0.93,
     "response_time_mean_ns": 143 * MS},
]  # fmt: skip
SENSITIVITY = [
    {"latency_factor": 1.25, "growth_factor": 1.0, "met": False, "same": False,
     "chosen": {"within_ratio": 0.82}, "best": {"sites": ["us", "eu", "asia"],
                                                "cost_usd_per_h": 3.0}},
    {"latency_factor": 1.0, "growth_factor": 1.5, "met": True, "same": True,
     "chosen": {"within_ratio": 0.93}, "best": {"sites": ["us", "eu"], "cost_usd_per_h": 3.1}},
]  # fmt: skip


def placement(
    *, met: bool = True, bound: float = 0.0
) -> tuple[list[TrialRecord], list[MetricResult], dict[Any, Any]]:
    """Three choices of sites, of which the middle one is taken."""
    told = {
        "front": FRONT,
        "chosen": {"sites": ["us", "eu"], "met": met, "confirmed": met},
        "sensitivity": SENSITIVITY,
        "locations": PLACES,
    }
    lines = [
        line("sim.place", "within_objective_ratio", 0.93, "ratio"),
        line("sim.place", "cost_usd_per_h", 2.0, "none"),
        line("sim.place", "bound_ratio", bound, "ratio"),
    ]
    return [record("sim.place", documents=told)], lines, {}


def scheduler() -> tuple[list[TrialRecord], list[MetricResult], dict[Any, Any]]:
    """Two virtual CPUs under a cap of 150 %: 180 ms of running and 60 of waiting."""
    ends = [min(2000, start * 240 + 180) for start in range(9)]
    runs = [[start * 240 * MS, end * MS, 0] for start, end in enumerate(ends)]
    told = {
        "timeline": {
            "vcpus": [{"vm": "guest", "vcpu": cpu, "intervals": runs} for cpu in (0, 1)],
        }
    }
    lines, merged = [], {}
    for cpu in (0, 1):
        own = {"vm": "guest", "vcpu": cpu}
        lines.append(line("sim.scheduler", "cpu_share_ratio", 0.75, "ratio", own))
        for metric, length in (("run_ns", 180), ("wait_ns", 60), ("period_ns", 240)):
            name = metric.replace("_ns", "_p50_ns")
            lines.append(line("sim.scheduler", name, length * MS, "ns", own))
            key = ("sim.scheduler", metric, "sim", factors_key(own))
            merged[key] = ([length * MS], [80])
    web = {"vm": "web"}
    lines.append(line("sim.scheduler", "response_time_p50_ns", 4 * MS, "ns", web))
    lines.append(line("sim.scheduler", "response_time_p99_ns", 62 * MS, "ns", web))
    return [record("sim.scheduler", documents=told)], lines, merged


def saving(*, ratio: float = 0.16) -> tuple[list[TrialRecord], list[MetricResult], dict[Any, Any]]:
    """Fleets by trial and failure, and the surface 1 - E(X)/x with E(X) = p x + 1 - p over x."""
    p, x = [0.1, 0.3, 0.5, 0.9], [1.0, 1.5, 2.0, 5.0, 10.0]
    rows = [[1 - (share * factor + 1 - share) / factor for factor in x] for share in p]
    told = {"surface": {"share_of_fast": p, "factor": x, "saving_ratio": rows}}
    lines = [
        line("sim.selection", "saving_ratio", ratio, "ratio"),
        line("sim.selection", "cost_usd", 213_000.0, "none"),
        line("sim.selection", "break_even_h", 17.4, "none"),
    ]
    spread = ([ratio + 0.01 * step for step in range(10)], [5] * 10)
    merged = {("sim.selection", "fleet_saving_ratio", "sim", "{}"): spread}
    return [record("sim.selection", documents=told)], lines, merged


def result_of(*made: tuple[list[TrialRecord], list[MetricResult], dict[Any, Any]]) -> RunResult:
    """A run's result that holds all of these."""
    records = [one for part in made for one in part[0]]
    metrics = [one for part in made for one in part[1]]
    merged = {key: value for part in made for key, value in part[2].items()}
    found = analyse(run_data(records, metrics))
    assert found is not None
    run = RunSummary(id="made", plan="made", question="Is the truth found?", targets=("sim",))
    return RunResult(
        run=run,
        metrics=tuple(metrics),
        findings=(),
        invalid=(),
        histograms=merged,
        parts=(found,),
    )
