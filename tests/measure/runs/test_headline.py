from __future__ import annotations

from pathlib import Path

from nephoscope import catalog
from nephoscope.core.model import Sample, Shape, TrialKey, TrialRecord, TrialStatus
from nephoscope.measure import plans
from nephoscope.measure.runs.schedule.headline import (
    headline_metrics,
    headline_values,
    rows_of_samples,
    rows_of_table,
)
from nephoscope.store import Store

SPEC = catalog.load().benchmark("null")


def test_the_specs_headline_or_the_plans() -> None:
    assert headline_metrics(SPEC, ()) == {"null_ns": Shape.SCALAR}
    chosen = headline_metrics(SPEC, ("null_latency_ns", "null_per_s"))
    assert chosen == {"null_per_s": Shape.SCALAR, "null_latency_ns": Shape.HISTOGRAM}


def test_one_value_a_series() -> None:
    samples = [
        Sample("null_ns", 1.0),
        Sample("null_ns", 9.0),
        Sample("null_ns", 3.0),
        Sample("null_ns", 7.0, factors={"cpu": 1}),
        Sample("null_latency_ns", 5.0, 1),
        Sample("null_latency_ns", 2.0, 2),
        Sample("null_latency_ns", 8.0, 2),
        Sample("null_per_s", 4.0),
    ]
    metrics = {"null_ns": Shape.SCALAR, "null_latency_ns": Shape.HISTOGRAM}
    assert headline_values(rows_of_samples(samples, {"x": 1}), metrics) == {
        ("null_ns", '{"x":1}'): 3.0,
        ("null_ns", '{"cpu":1,"x":1}'): 7.0,
        # Ranks 1..5 of 2 2 5 8 8: the third.
        ("null_latency_ns", '{"x":1}'): 5.0,
    }


def test_rows_from_the_store_are_those_of_the_target(tmp_path: Path) -> None:
    """Else a resumed run would stop elsewhere than one that was never killed."""
    known = catalog.load()
    plan = plans.single("null", {"value": "[1,2]"})
    settings = plans.expand(plan, known)
    run = Store(tmp_path).create(plan, 1, catalog=known, settings=settings)
    samples = [
        Sample("null_ns", 0.1 + 0.2),
        Sample("null_ns", 3.0, factors={"value": 5, "a": None}),
        Sample("null_latency_ns", 7.0, 3),
    ]
    setting = settings[1]
    record = TrialRecord(
        TrialKey(1, 1, "local"), "null", {}, setting.factors, TrialStatus.VALID, (), 0, 0.0, 1, {}
    )
    run.append(record, samples, SPEC)
    ((_, table),) = run.tables()
    assert rows_of_table(table) == rows_of_samples(samples, setting.factors)
