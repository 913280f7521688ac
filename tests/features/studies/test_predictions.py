"""Predictions: what was measured beside what was simulated."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from tests.features.studies.made import line, noisy, result

from nephoscope.features.studies import catalogue
from nephoscope.features.studies import terminal as study_text
from nephoscope.features.studies.comparison import predictions
from nephoscope.features.studies.comparison.part_result import PartResult
from nephoscope.features.studies.definition.study import Control, Part
from nephoscope.features.studies.report import charts

STUDY = catalogue.load("zhuang-2012")
SIMULATED_MS = 10.0


def part(**changes: Any) -> Part:
    layout = {
        "title": "latency",
        "measured": {"benchmark": "http.load", "metric": "latency_p50_ns", "scale": 1e-6},
        "simulated": {
            "benchmark": "sim.scheduler",
            "metric": "response_time_p50_ns",
            "scale": 1e-6,
        },
        "unit": "ms",
        "within": 0.2,
        "within_why": "made",
        "lines": {"cap, 100/s": {"measured": {"target": "client"}, "simulated": {"target": "sim"}}},
        "why": "The network is not simulated.",
        **changes,
    }
    scales = {"small": {}, "paper": {}}
    return Part.model_validate(
        {
            "name": "made",
            "title": "made",
            "section": "none",
            "plan": "plan.yaml",
            "scales": scales,
            "predictions": [layout],
        }
    )


def compared(measured_ms: float, spread: float = 0.01, **changes: Any) -> predictions.Prediction:
    lab = line("http.load", "latency_p50_ns", noisy(measured_ms * 1e6, spread, 1), target="client")
    model = line(
        "sim.scheduler", "response_time_p50_ns", noisy(SIMULATED_MS * 1e6, 0.01, 2), target="sim"
    )
    return predictions.compare_predictions(part(**changes), result(lab, model))[0]


@pytest.mark.parametrize(
    ("measured_ms", "verdict"),
    [
        (10.5, predictions.PREDICTED),
        (15.0, predictions.DIFFERS),
        (7.0, predictions.DIFFERS),
        (12.0, predictions.UNDECIDED),  # on the edge
    ],
)
def test_the_verdict_rests_on_the_whole_interval_of_the_ratio(
    measured_ms: float, verdict: str
) -> None:
    value = compared(measured_ms).values[0]
    assert value.verdict == verdict
    assert value.ratio is not None
    assert value.ratio.value == pytest.approx(measured_ms / SIMULATED_MS, rel=0.02)


def test_a_wide_interval_decides_nothing() -> None:
    assert compared(10.5, spread=0.5).values[0].verdict == predictions.UNDECIDED


def test_what_the_run_lacks_is_named() -> None:
    lines = {"cap": {"measured": {"target": "nobody"}, "simulated": {"target": "sim"}}}
    value = compared(10.0, lines=lines).values[0]
    assert value.verdict == predictions.ABSENT
    assert "on nobody" in value.absent


def test_both_sides_are_single_values() -> None:
    ratio = {
        "benchmark": "http.load",
        "metric": "latency_p50_ns",
        "numerator": {},
        "denominator": {},
    }
    with pytest.raises(ValidationError, match="both sides are one value"):
        part(measured=ratio)


def test_the_text_has_both_figures_and_the_verdicts() -> None:
    prediction = compared(10.5)
    made = PartResult(part(), "run", (), predictions=(prediction,))
    text = " ".join(study_text.comparison(STUDY, [made], ()).split())
    assert "1 of 1 conditions are as simulated within 20 % (made)." in text
    assert "cap, 100/s" in text
    assert "1.05" in text
    drawn = charts.prediction_chart(prediction).figure["data"]
    assert [trace["name"] for trace in drawn] == ["measured", "simulated"]
    assert [len(trace["x"]) for trace in drawn] == [1, 1]


def test_nothing_is_decided_where_a_control_does_not_hold() -> None:
    controlled = part()
    late = {"benchmark": "http.load", "metric": "late_sends_ratio", "scale": 100}
    control = Control.model_validate({"claim": "sends on time", "measured": late, "at_most": 1})
    controlled = controlled.model_copy(update={"controls": (control,)})
    lab = line("http.load", "latency_p50_ns", noisy(1e7, 0.01, 1), target="client")
    model = line("sim.scheduler", "response_time_p50_ns", noisy(1e7, 0.01, 2), target="sim")
    for share, verdict in ((0.001, predictions.PREDICTED), (0.2, predictions.UNDECIDED)):
        sends = line("http.load", "late_sends_ratio", [share] * 8, target="client")
        made = predictions.compare_predictions(controlled, result(lab, model, sends))[0]
        assert made.values[0].verdict == verdict
        assert bool(made.obstacle) == (verdict == predictions.UNDECIDED)
        assert ("at most 1; measured 20" in predictions.summarise(made)) == bool(made.obstacle)
