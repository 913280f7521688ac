"""OpenSLO documents: read, written, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.features.sla.made import agreement, month, refused, run

from nephoscope import command_line
from nephoscope.features.sla import files

Capture = pytest.CaptureFixture[str]

SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: Web-Latency, displayName: Web}
spec:
  service: web
  indicator: {spec: {ratioMetric: {good: {}, total: {}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Timeslices
  objectives: [{targetPercent: 99.9, timeSliceTarget: 0.9, timeSliceWindow: 5m}]
"""


def test_timeslices(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "slo.yaml").write_text(SLO)
    terms = files.load(str(tmp_path / "slo.yaml"))
    (objective,) = terms.objectives
    assert (terms.name, terms.period, objective.slot) == ("web-latency", "28d", 300)
    assert (str(objective.target), str(objective.failed_above)) == ("0.999", "0.1")
    file = month(tmp_path / "e.csv", range(5), minutes=28 * 1440)
    words = [tmp_path / "slo.yaml", file, "--now", "2023-06-29T00:00:00Z"]
    (period,) = run(capsys, "verdict", *words)["periods"]
    assert (period["objectives"][0]["total"], period["objectives"][0]["bad"]) == (8064, 1)


@pytest.mark.parametrize(
    "objective",
    [
        "measure: availability, target: 99.95%, slot: 5min",
        "measure: availability, target: 99.5%, slot: 1min, failed_above: 25%",
        "measure: response_time, target: 90%, under: 500ms",
        "measure: loss, at_most: 1%, basis: census",
    ],
)
@pytest.mark.parametrize("period", ["month", "quarter", "30d"])
def test_what_is_written_is_read_again(
    objective: str, period: str, tmp_path: Path, capsys: Capture
) -> None:
    more = f"period: {period}\ntime_zone: {'UTC' if period == '30d' else 'Europe/Berlin'}\n"
    file = agreement(tmp_path / "a.yaml", objective, more)
    assert command_line.main(["sla", "export", str(file), "--format", "openslo"]) == 0
    text = capsys.readouterr().out
    (document,) = yaml.safe_load_all(text)
    assert document["apiVersion"] == "openslo/v1"
    first, again = files.load(str(file)), files.from_text(text, "slo.yaml")
    assert (again.period, again.time_zone) == (first.period, first.time_zone)
    (one,), (two,) = first.objectives, again.objectives
    assert (two.measure, two.target, two.slot, two.under) == (
        one.measure,
        one.target,
        one.slot,
        one.under,
    )
    assert two.at_most == one.at_most


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("openslo/v1", "openslo/v1alpha", "version openslo/v1alpha"),
        ("kind: SLO", "kind: Goal", "OpenSLO has no kind Goal"),
        (
            "Timeslices",
            "RatioTimeslices",
            "RatioTimeslices (a mean of the ratios of all slices) cannot be",
        ),
        ("  timeWindow: [{duration: 28d, isRolling: true}]\n", "", "'timeWindow' is missing"),
        (
            "duration: 28d, isRolling: true",
            "duration: 2M, isRolling: false",
            "neither rolls nor has a calendar",
        ),
        ("targetPercent: 99.9", "targetPercent: 999", "is no share"),
        ("targetPercent: 99.9", "targetPercent: [9]", "is no share"),
        ("28d", "soon", "'soon' is no duration of OpenSLO"),
    ],
)
def test_bad_documents_are_one_sentence(
    old: str, new: str, expected: str, tmp_path: Path, capsys: Capture
) -> None:
    assert old in SLO
    (tmp_path / "slo.yaml").write_text(SLO.replace(old, new))
    file = month(tmp_path / "e.csv", (), minutes=3)
    assert expected in refused(capsys, "verdict", tmp_path / "slo.yaml", file)


def test_what_openslo_has_no_form_for(capsys: Capture) -> None:
    words = ["export", "app-engine-2015", "--format", "openslo"]
    assert "no form for outages of a minimum length" in refused(capsys, *words)
