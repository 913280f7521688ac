"""Each quantity states where it comes from, and what cannot be used is refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.features.market.made import catalogue_of, server
from tests.features.sizing.made import answer, one, shop

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate, Sample
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.load.outcomes import capacity_of_runs
from nephoscope.features.market import prediction
from nephoscope.features.market.prediction_records import PredictedType, TypePrediction
from nephoscope.features.simulation import measured_latency
from nephoscope.features.sizing.records import SizeAnalysis, SizingInput
from nephoscope.stats.statistics.values import Refused
from nephoscope.store import StoredRun


def named(analysis: SizeAnalysis, name: str) -> SizingInput:
    (entry,) = (entry for entry in analysis.inputs if entry.name == name)
    return entry


def test_stated_values_have_their_line(tmp_path: Path) -> None:
    analysis = answer(tmp_path, shop(spread="4%", types=one(spread=None)))
    text = (tmp_path / "app.yaml").read_text().splitlines()
    for name, key in (
        ("demand", "demand"),
        ("capacity of a/one", "capacity_per_s"),
        ("spread of a/one", "spread"),
        ("price of a/one in eu", "price_per_h"),
    ):
        entry = named(analysis, name)
        line, column = map(int, entry.source.split(",")[0].split(":")[-2:])
        assert text[line - 1][column - 1 :].startswith(f"{key}:"), entry
        assert entry.origin == "stated"
        assert entry.id in analysis.deployments[0].inputs


def test_several_instances_state_their_spread(tmp_path: Path) -> None:
    values = [400.0, 410.0, 390.0, 420.0]
    analysis = answer(tmp_path, shop(types=one(capacity_per_s=values, spread=None)))
    spread = named(analysis, "spread of a/one")
    # The rate of service of an M/M/1 queue is ln(100) / 50 ms above its capacity for p99 < 50 ms.
    expected = np.std(np.log(np.array(values) + np.log(100) / 0.05), ddof=1)
    assert spread.estimate.value == pytest.approx(expected)
    assert (spread.origin, spread.estimate.n) == ("measured", 4)


def test_a_document_of_capacity_names_its_runs_and_objective(tmp_path: Path) -> None:
    estimate = {"value": 400, "low": 390, "high": 410, "confidence": 0.95, "n": 9}
    document = {"capacity_per_s": estimate, "objective": "p95 < 20.0 ms", "runs": ["r1", "r2"]}
    (tmp_path / "c.json").write_text(json.dumps(document))
    analysis = answer(tmp_path, shop(types=one(capacity_per_s=None, capacity_file="c.json")))
    assert named(analysis, "capacity of a/one").source == (
        "c.json, runs r1 to r2, for p95 < 20.0 ms"
    )


def test_a_search_without_a_bound_leaves_the_capacity_to_measure(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"capacity_per_s": null, "objective": "p95 < 20 ms"}')
    analysis = answer(tmp_path, shop(types=one(capacity_per_s=None, capacity_file="c.json")))
    assert "the capacity of a/one is not known: c.json does not bound it" in analysis.sentence
    assert "Measure the capacity of a/one first" in analysis.recommended_measurement


class _Run:
    """A stored run whose server answers in 10 ms up to 500 requests per second, then in 90 ms."""

    id = "planted"

    def __init__(self, rates: list[float]) -> None:
        self.rates = rates


def test_trials_of_stored_runs_give_the_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    def trials(run: Any) -> list[Any]:
        records = [
            type("Trial", (), {"factors": {"rate_per_s": rate}, "cause": ""}) for rate in run.rates
        ]
        return [
            (record, [Sample("latency_ns", 1e7 if record.factors["rate_per_s"] < 500 else 9e7)])
            for record in records
        ]

    monkeypatch.setattr("nephoscope.features.load.outcomes._trials", trials)
    rates = [*np.linspace(400, 600, 21).tolist()] * 2
    run: StoredRun = _Run(rates)  # type: ignore[assignment]
    capacity = capacity_of_runs([run], LatencyObjective.of("p99 < 50ms"))
    assert capacity.low is not None
    assert capacity.high is not None
    assert capacity.low < 500 < capacity.high
    assert 480 < capacity.value < 510
    with pytest.raises(Refused, match="do not bound the rate"):
        capacity_of_runs([run], LatencyObjective.of("p99 < 95ms"))
    with pytest.raises(UsageError, match="no trial was sent at a set rate"):
        capacity_of_runs([_Run([])], LatencyObjective.of("p99 < 95ms"))  # type: ignore[list-item]


def test_measured_round_trips_count_with_their_tail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One in 50 round trips exceeds the limit, so that no instance can keep p99.
    def latency(name: str, store: Path | None) -> dict[str, Any]:
        return {"measured": {"x": {"eu": [5.0] * 196 + [80.0] * 4}}}

    monkeypatch.setattr(measured_latency, "latency", latency)
    values = shop(users={"x": 1}, rtt_run="r7")
    analysis = answer(tmp_path, values)
    assert "No deployment keeps" in analysis.sentence
    assert named(analysis, "round trip from x to eu").source == "run r7, x to eu"
    assert answer(tmp_path, {**values, "objective": "p97 < 50ms"}).is_answered


def test_capacities_carry_over_in_proportion_to_an_imported_work(tmp_path: Path) -> None:
    catalogue_of(tmp_path / "store", [server("a/one", {"web": 4e4}), server("a/two", {"web": 8e4})])
    types = {**one(), "a/two": {"spread": "3%", "price_per_h": 0.15}, "a/none": {"spread": "3%"}}
    analysis = answer(tmp_path, shop(work="web", transfer="10%", types=types))
    entry = named(analysis, "capacity of a/two")
    assert entry.estimate.value == pytest.approx(800)
    assert entry.estimate.low == pytest.approx(800 / 1.1)
    assert entry.origin == "imported"
    assert "in proportion to a/one" in entry.source
    assert "no imported type has this name" in str(analysis.unknown)
    without = answer(tmp_path, shop(work="web", types=types))
    assert "how well rates of web carry over" in str(without.unknown)


def test_a_type_without_a_rate_gets_a_prediction_or_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = server("a/two", {"redis": 1e5})
    catalogue_of(tmp_path / "store", [server("a/one", {"web": 4e4}), two])

    def predict(catalogue: object, work: object, *, names: list[str]) -> TypePrediction:
        rate = Estimate(8e4, 6e4, 1.1e5, 0.9, 100, "per_s", "planted")
        row = PredictedType("a", "two", "", rate if predicts else None, None, "it is too far away")
        return TypePrediction("", "per_s", 0.9, (row,), 1, 100, {}, {}, {}, "")

    monkeypatch.setattr(prediction, "predict", predict)
    types = {**one(), "a/two": {"spread": "3%", "price_per_h": 0.15}}
    for predicts in (True, False):
        analysis = answer(tmp_path, shop(work="web", transfer="10%", types=types))
        if predicts:
            entry = named(analysis, "capacity of a/two")
            assert entry.origin == "predicted"
            assert entry.estimate.low is not None
            # Wider than the prediction alone, at 95 % and not 90 %.
            assert entry.estimate.low < 800 * 6 / 8
        else:
            assert "is not predicted: it is too far away" in analysis.unknown[0].reason


def test_a_spread_may_be_that_of_machines_with_the_same_cpu_model(tmp_path: Path) -> None:
    rates = {f"a/{n}": 100 + n for n in range(7)} | {"a/one": 107, "b/z": 900}
    machines = [
        server(name, {"cpu-single": rate}, cpu_model="Model 1") for name, rate in rates.items()
    ]
    catalogue_of(
        tmp_path / "store", [*machines, server("a/rare", {"cpu-single": 9}, cpu_model="2")]
    )
    types = {**one(spread=None), "a/rare": {"capacity_per_s": 400, "price_per_h": 0.05}}
    analysis = answer(tmp_path, shop(types=types, spread_work="cpu-single"))
    entry = named(analysis, "spread of a/one")
    # 1.4826 median absolute deviations of 100 to 107 (2) over their median, corrected for n = 8.
    assert entry.estimate.value == pytest.approx(1.4826 * 2 / 103.5, rel=0.3)
    assert "8 machines with Model 1" in entry.source
    assert "fewer than 6 imported machines" in analysis.unknown[0].reason


def test_a_promise_is_no_measurement(tmp_path: Path) -> None:
    analysis = answer(tmp_path, shop(availability="99.9%", sla="ec2-instance"))
    entry = named(analysis, "availability of instances of a/one")
    assert (entry.origin, entry.estimate.value) == ("promised", 0.995)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"objective": "p99 below 50"}, "is no objective of response time"),
        ({"riks": 0.1}, "unknown key 'riks' (did you mean 'risk'?)"),
        ({"users": {"x": 0.5}}, "do not sum to 100%"),
        ({"users": {"x": 1}, "regions": {"eu": {"rtt_ms": {"y": 1}}}}, "has the site 'y'"),
        ({"types": {}}, "there is no server type"),
        ({"market": {}}, "imported types need a work"),
        ({"work": "web"}, "no server types were imported"),
        ({"sla": "ec2-instances"}, "there is no built-in contract 'ec2-instances'"),
        ({"demand": {}}, "a demand has rate_per_s or hours"),
        ({"demand": {"hours": [1, 2]}}, "hours are 24 rates"),
        ({"types": one(spread=1.4)}, "a share is 1 (100%) at most"),
        ({"types": one(capacity_file="c.json")}, "capacity_file or capacity_runs. Use one of them"),
        ({"types": one(capacity_per_s=None, capacity_file="c.json")}, "there is no such file"),
        ({"types": one(regional_price_per_h={"us": 1}, price_per_h=None)}, "has the region 'us'"),
        ({"purchase": ["spot"]}, "its price is one on demand"),
        ({"version": 2}, "format version 2"),
        ({"region_availability": 0.99}, "region_availability counts for the goal"),
        ({"egress_gb_per_month": 5}, "regions.eu has only one of them. Add the other one."),
        (
            {
                "region_availability": 0.9,
                "availability": 0.999,
                "users": {"x": 1},
                "regions": {name: {"rtt_ms": {"x": 1}} for name in ("eu", "us")},
            },
            "no 2 regions reach 99.9 %, where each works 90 % of the time",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    values = shop(**changes)
    if "sla" in changes:
        values["availability"] = 0.9
    with pytest.raises(UsageError) as error:
        answer(tmp_path, values)
    assert sentence in str(error.value)
    assert "app.yaml" in str(error.value) or "c.json" in str(error.value)
