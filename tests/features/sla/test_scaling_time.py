"""The objective of the time from a step of the demand to the capacity that serves it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.features.sla.made import JUNE_S, agreement, refused, run

from nephoscope import command_line
from nephoscope.features.sla import files

Capture = pytest.CaptureFixture[str]
OBJECTIVE = "measure: scaling_time, target: 90%, within: 3min, basis: census"
CREDITS = "credits: [{below: 90%, credit: 10%}, {below: 50%, credit: 30%}]"
NOW = ("--now", "2023-07-02T00:00:00Z")


def steps(path: Path, times_s: list[float | None]) -> Path:
    """Steps of the demand, a day apart; None: its capacity was never served."""
    rows = [
        f"{JUNE_S + 86_400 * day},{int(time_s is not None)},"
        + ("" if time_s is None else f"{1e3 * time_s:g}")
        for day, time_s in enumerate(times_s)
    ]
    path.write_text("time,ok,response_time_ms\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("times_s", "verdict", "share", "owed"),
    [
        ([60.0] * 9 + [200.0], "met", 0.9, 0.0),
        ([60.0] * 9 + [180.0], "met", 1.0, 0.0),
        ([60.0] * 8 + [200.0, None], "violated", 0.8, 0.1),
        ([60.0, 60.0, 200.0, None, None], "violated", 0.4, 0.3),
    ],
)
def test_steps_are_judged_and_credited(
    times_s: list[float | None],
    verdict: str,
    share: float,
    owed: float,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    terms = agreement(tmp_path / "a.yaml", f"{OBJECTIVE}, {CREDITS}")
    document = run(capsys, "verdict", terms, steps(tmp_path / "e.csv", times_s), *NOW)
    (period,) = document["periods"]
    (judged,) = period["objectives"]
    assert judged["verdict"] == verdict
    assert judged["share"]["value"] == pytest.approx(share)
    assert judged["objective"] == "at least 90 % of demand steps served within 3min"
    assert (judged["missing_share"], judged["owed_share"]) == (0, owed)
    slowest = None if None in times_s else 1e3 * max(time_s or 0 for time_s in times_s)
    assert judged["response_ms"]["max"] == slowest


def test_a_few_steps_prove_nothing_beyond_them(tmp_path: Path, capsys: Capture) -> None:
    terms = agreement(tmp_path / "a.yaml", OBJECTIVE.replace(", basis: census", ""))
    document = run(capsys, "verdict", terms, steps(tmp_path / "e.csv", [60.0] * 10), *NOW)
    assert document["periods"][0]["verdict"] == "undecided"


def test_openslo_says_it_with_an_annotation(tmp_path: Path, capsys: Capture) -> None:
    terms = agreement(tmp_path / "a.yaml", OBJECTIVE)
    assert command_line.main(["sla", "export", str(terms), "--format", "openslo"]) == 0
    text = capsys.readouterr().out
    (document,) = yaml.safe_load_all(text)
    assert document["metadata"]["annotations"]["nephoscope/measure"] == "scaling_time"
    assert document["spec"]["objectives"] == [{"op": "lte", "target": 0.9, "value": 180.0}]
    (objective,) = files.from_text(text, "slo.yaml").objectives
    assert objective == files.load(str(terms)).objectives[0]
    wrong = tmp_path / "slo.yaml"
    wrong.write_text(text.replace("scaling_time\n", "luck\n", 1))
    line = refused(capsys, "verdict", wrong, steps(tmp_path / "e.csv", [60.0]))
    assert "'luck' is no measure of a time" in line


def test_requests_and_steps_do_not_share_an_agreement(tmp_path: Path, capsys: Capture) -> None:
    terms = agreement(
        tmp_path / "a.yaml", OBJECTIVE, "  - {measure: availability, target: 99.9%}\n"
    )
    line = refused(capsys, "verdict", terms, steps(tmp_path / "e.csv", [60.0]))
    assert "write an agreement for each" in line
    terms = agreement(tmp_path / "b.yaml", f"{OBJECTIVE}, slot: 1min")
    line = refused(capsys, "verdict", terms, steps(tmp_path / "e.csv", [60.0]))
    assert "'slot' has no meaning for scaling_time" in line
