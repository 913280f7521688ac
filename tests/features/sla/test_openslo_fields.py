"""Every field of an OpenSLO document is honoured, or refused by its name and place."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.features.sla.made import JUNE_S, agreement, month, refused, run

from nephoscope.features.sla import files
from nephoscope.features.sla.terms import TermsReading

Capture = pytest.CaptureFixture[str]

RATIO = "{spec: {ratioMetric: {counter: true, good: {}, total: {}}}}"
THRESHOLD = "{spec: {thresholdMetric: {metricSource: {type: Any, spec: {query: q}}}}}"
SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: web}
spec:
  service: shop
  indicator: INDICATOR
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: METHOD
  objectives: [{OBJECTIVE}]
"""


def slo(folder: Path, objective: str, indicator: str = RATIO, method: str = "Occurrences") -> Path:
    text = SLO.replace("INDICATOR", indicator).replace("METHOD", method)
    (folder / "slo.yaml").write_text(text.replace("OBJECTIVE", objective))
    return folder / "slo.yaml"


@pytest.mark.parametrize(
    ("objective", "indicator", "method", "expected"),
    [
        ("target: 0.9, op: lt, value: 500", THRESHOLD, "Occurrences", "500 has no unit in OpenSLO"),
        ("target: 0.9, op: gt, value: 5", THRESHOLD, "Occurrences", "op: gt cannot be judged"),
        ("target: 0.9, value: 5", THRESHOLD, "Occurrences", "needs 'op'"),
        ("target: 0.9, op: lt", THRESHOLD, "Timeslices", "needs 'value'"),
        ("target: 0.9, targetPercent: 90", RATIO, "Occurrences", "either 'target' or"),
        ("displayName: x", RATIO, "Occurrences", "either 'target' or 'targetPercent'"),
        ("target: 0.9, compositeWeight: 2", RATIO, "Occurrences", "'compositeWeight' makes a"),
        ("target: 0.9, indicatorRef: b", RATIO, "Occurrences", "'indicatorRef' makes a composite"),
        ("target: 0.9, timeSliceTarget: 1", RATIO, "Occurrences", "no meaning for Occurrences"),
        ("target: 0.9, timeSliceWindow: 1m", RATIO, "Timeslices", "need 'timeSliceTarget'"),
        ("target: 0.9, timeSliceTarget: 1", RATIO, "Timeslices", "need 'timeSliceWindow'"),
        (
            "target: 0.9, timeSliceTarget: 1, timeSliceWindow: 1M",
            RATIO,
            "Timeslices",
            "a slice of 1M has no fixed length",
        ),
        ("target: 0.9, goal: 1", RATIO, "Occurrences", "unknown key 'goal'"),
        ("target: 0.9", "{spec: {}}", "Occurrences", "either 'ratioMetric' or 'thresholdMetric'"),
    ],
)
def test_what_is_not_honoured_is_refused_by_name_and_place(
    objective: str, indicator: str, method: str, expected: str, tmp_path: Path, capsys: Capture
) -> None:
    file = slo(tmp_path, objective, indicator, method)
    events = month(tmp_path / "e.csv", (), minutes=3)
    sentence = refused(capsys, "verdict", file, events)
    assert expected in sentence
    assert f"{file}:" in sentence


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("duration: 1m, isRolling: true", "a window of 1m is 1 min in OpenSLO; a month is 1M"),
        ("duration: 1M, isRolling: true", "a rolling window of 1M has no fixed length"),
        (
            "duration: 1w, isRolling: true, calendar: {startTime: 2022-01-01 12:00:00, "
            "timeZone: UTC}",
            "a rolling window has no calendar",
        ),
        ("duration: 1w, calendar: {startTime: 2022-01-01 12:00:00}", "'timeZone' is missing"),
        ("duration: 1w, calendar: {startTime: noon, timeZone: UTC}", "'noon' is no local time"),
    ],
)
def test_windows_that_are_refused(
    window: str, expected: str, tmp_path: Path, capsys: Capture
) -> None:
    file = slo(tmp_path, "target: 0.9")
    text = file.read_text().replace("duration: 28d, isRolling: true", window)
    file.write_text(text)
    assert expected in refused(capsys, "verdict", file, month(tmp_path / "e.csv", (), minutes=3))


@pytest.mark.parametrize(
    ("duration", "zone", "start", "period", "ends"),
    [
        ("1w", "America/New_York", "2022-01-01 12:00:00", "2023-06-03T12:00", "2023-06-10T12:00"),
        ("2w", "UTC", "2023-05-20 00:00:00", "2023-06-03", "2023-06-17T00:00"),
        ("1M", "Europe/Berlin", "2023-01-15 00:00:00", "2023-05-15", "2023-06-15T00:00"),
        ("1M", "UTC", "2023-01-31 06:00:00", "2023-05-31T06:00", "2023-06-30T06:00"),
        ("1M", "UTC", "2020-01-01 00:00:00", "2023-06", "2023-07-01T00:00"),
        ("1Q", "UTC", "2022-02-01 00:00:00", "2023-05-01", "2023-08-01T00:00"),
        ("1Y", "UTC", "2020-02-29 00:00:00", "2023-02-28", "2024-02-29T00:00"),
        ("12h", "UTC", "2023-06-01 03:00:00", "2023-06-03T03:00", "2023-06-03T15:00"),
    ],
)
def test_calendar_windows_follow_their_start_time(
    duration: str, zone: str, start: str, period: str, ends: str, tmp_path: Path, capsys: Capture
) -> None:
    file = slo(tmp_path, "target: 0.9")
    calendar = f"{{startTime: {start}, timeZone: {zone}}}"
    window = f"duration: {duration}, calendar: {calendar}"
    file.write_text(file.read_text().replace("duration: 28d, isRolling: true", window))
    local = datetime.fromisoformat("2023-06-03T12:30:00").replace(tzinfo=ZoneInfo(zone))
    (tmp_path / "e.csv").write_text(f"time,ok\n{local.isoformat()},1\n")
    if (duration, zone) == ("12h", "UTC"):
        local = local.replace(hour=4)
        (tmp_path / "e.csv").write_text(f"time,ok\n{local.isoformat()},1\n")
    (judged,) = run(capsys, "verdict", file, tmp_path / "e.csv", "--now", "2023-06-04")["periods"]
    assert judged["period"] == period
    end = datetime.fromisoformat(judged["end"].replace("Z", "+00:00"))
    assert end.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == datetime.fromisoformat(ends)


def test_nothing_before_the_first_window_is_judged(tmp_path: Path, capsys: Capture) -> None:
    file = slo(tmp_path, "target: 0.9")
    calendar = "{startTime: 2023-06-02 00:00:00, timeZone: UTC}"
    window = f"duration: 1d, calendar: {calendar}"
    file.write_text(file.read_text().replace("duration: 28d, isRolling: true", window))
    events = month(tmp_path / "e.csv", range(1440), minutes=2 * 1440)
    answer = run(capsys, "verdict", file, events, "--now", "2023-06-03")
    (period,) = answer["periods"]
    assert (period["period"], period["verdict"]) == ("2023-06-02", "met")
    assert any("Events before 2023-06-02T00:00:00Z" in note for note in answer["notes"])
    early = month(tmp_path / "early.csv", (), minutes=3)
    assert "lie before the first period" in refused(capsys, "verdict", file, early)


@pytest.mark.parametrize(("op", "good"), [("lt", 1), ("lte", 2)])
def test_a_threshold_has_the_unit_that_is_stated(
    op: str, good: int, tmp_path: Path, capsys: Capture
) -> None:
    file = slo(tmp_path, f"target: 0.9, op: {op}, value: 500", THRESHOLD)
    rows = "".join(f"{JUNE_S + at},1,{ms}\n" for at, ms in enumerate((300, 500, 700)))
    (tmp_path / "e.csv").write_text(f"time,ok,response_time_ms\n{rows}")
    words = [file, tmp_path / "e.csv", "--now", "2023-06-02"]
    (period,) = run(capsys, "verdict", *words, "--unit", "ms")["periods"]
    assert period["objectives"][0]["good"] == good
    annotated = file.read_text().replace(
        "metadata: {name: web}", "metadata: {name: web, annotations: {nephoscope/unit: ms}}"
    )
    file.write_text(annotated)
    (again,) = run(capsys, "verdict", *words)["periods"]
    assert again["objectives"][0]["good"] == good
    ratio = slo(tmp_path, "target: 0.9")
    assert "--unit ms: no objective" in refused(
        capsys, "verdict", ratio, *words[1:], "--unit", "ms"
    )
    own = agreement(tmp_path / "a.yaml", "measure: loss, at_most: 1%")
    assert "--unit is for OpenSLO" in refused(capsys, "verdict", own, *words[1:], "--unit", "ms")


def test_slow_responses_make_a_slice_bad(tmp_path: Path, capsys: Capture) -> None:
    objective = "target: 0.9, op: lt, value: 0.5, timeSliceTarget: 0.5, timeSliceWindow: 1m"
    file = slo(tmp_path, objective, THRESHOLD, "Timeslices")
    rows = "".join(f"{JUNE_S + 20 * at},1,{900 if at < 3 else 100}\n" for at in range(9))
    (tmp_path / "e.csv").write_text(f"time,ok,response_time_ms\n{rows}")
    words = [file, tmp_path / "e.csv", "--now", "2023-06-01T00:03:00Z", "--unit", "s"]
    (period,) = run(capsys, "verdict", *words)["periods"]
    (judged,) = period["objectives"]
    assert (judged["good"], judged["bad"]) == (2, 1)
    assert judged["objective"] == "availability at least 90 % with responses under 500ms"


def test_a_file_of_several_documents(tmp_path: Path, capsys: Capture) -> None:
    file = slo(tmp_path, "target: 0.9")
    service = "apiVersion: openslo/v1\nkind: Service\nmetadata: {name: shop}\nspec: {}\n"
    text = (
        f"---\n{service}---\n{file.read_text().replace('indicator: ' + RATIO, 'indicatorRef: i')}"
    )
    sli = f"---\napiVersion: openslo/v1\nkind: SLI\nmetadata: {{name: i}}\nspec: {RATIO[7:-1]}\n"
    file.write_text(text + sli)
    events = month(tmp_path / "e.csv", (), minutes=28 * 1440)
    words = [file, events, "--now", "2023-06-29"]
    answer = run(capsys, "verdict", *words)
    assert answer["periods"][0]["verdict"] == "met"
    assert "Other documents of the file are not used: 1 Service." in answer["notes"]
    second = text.replace("name: web", "name: api").replace("target: 0.9", "target: 0.5")
    file.write_text(text + sli + second.removeprefix(f"---\n{service}"))
    assert "has 2 SLOs. Choose one with --slo: web, api" in refused(capsys, "verdict", *words)
    (period,) = run(capsys, "verdict", *words, "--slo", "api")["periods"]
    assert period["objectives"][0]["target"] == 0.5
    file.write_text(service)
    assert "no SLO among its OpenSLO documents (Service)" in refused(capsys, "verdict", *words)
    file.write_text(f"{service}---\nname: x\n")
    assert "this document is not one of OpenSLO" in refused(capsys, "verdict", *words)


def test_a_bundle_of_an_openslo_file_is_verified(tmp_path: Path, capsys: Capture) -> None:
    file = slo(tmp_path, "target: 0.9, op: lt, value: 500", THRESHOLD)
    (tmp_path / "e.csv").write_text(f"time,ok,response_time_ms\n{JUNE_S},1,300\n")
    bundle = tmp_path / "b.zip"
    words = [file, tmp_path / "e.csv", "--unit", "ms", "--now", "2023-06-02", "-o", bundle]
    run(capsys, "evidence", *words, code=0)
    assert run(capsys, "verify", bundle)["intact"]


def test_v2alpha_names_the_indicator_otherwise(tmp_path: Path) -> None:
    file = slo(tmp_path, "target: 0.9")
    text = file.read_text().replace("openslo/v1", "openslo.com/v2alpha").replace("indicator", "sli")
    (objective,) = files.from_text(text, "slo.yaml", TermsReading()).objectives
    assert str(objective.at_most) == "0.1"


def test_the_service_of_an_slo_is_the_one_that_is_judged(tmp_path: Path, capsys: Capture) -> None:
    file = slo(tmp_path, "target: 0.9")
    rows = "".join(f"{JUNE_S + at},{name},1\n" for at in range(3) for name in ("db", "shop"))
    (tmp_path / "e.csv").write_text(f"time,service,ok\n{rows}")
    answer = run(capsys, "verdict", file, tmp_path / "e.csv", "--now", "2023-06-02")
    assert answer["services"] == ["shop"]
    (tmp_path / "e.csv").write_text(f"time,service,ok\n{rows.replace('shop', 'web')}")
    answer = run(capsys, "verdict", file, tmp_path / "e.csv", "--now", "2023-06-02")
    assert answer["services"] == ["db", "web"]
    assert any("those of the service shop, which" in note for note in answer["notes"])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("apiVersion: pyrra.dev/v1alpha1\nkind: ServiceLevelObjective\nspec: {}\n", "a Pyrra SLO"),
        ("version: prometheus/v1\nservice: s\nslos: []\n", "a Sloth specification"),
        ("apiVersion: sloth.slok.dev/v1\nkind: PrometheusServiceLevel\n", "a Sloth specification"),
        ("apiVersion: n9/v1alpha\nkind: SLO\n", "a Nobl9 object"),
        ("groups: [{name: a, rules: []}]\n", "a file of Prometheus rules"),
        ("goal: 0.9\nserviceLevelIndicator: {}\n", "an SLO of Google Cloud"),
        ("benchmarks: []\nname: p\n", "a plan of `nephoscope run`"),
    ],
)
def test_terms_of_another_format_are_one_sentence(
    text: str, what: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "slo.yaml").write_text(text)
    events = month(tmp_path / "e.csv", (), minutes=3)
    sentence = refused(capsys, "verdict", tmp_path / "slo.yaml", events)
    assert f"this is {what}" in sentence
    assert "sla: 1" in sentence


def test_weeks_of_a_start_time_cross_a_change_of_clocks(tmp_path: Path) -> None:
    from nephoscope.features.sla.periods import moment_of, periods_between, to_ns

    file = slo(tmp_path, "target: 0.9")
    calendar = "{startTime: 2022-01-01 12:00:00, timeZone: America/New_York}"
    window = f"duration: 1w, calendar: {calendar}"
    file.write_text(file.read_text().replace("duration: 28d, isRolling: true", window))
    terms = files.load(str(file))
    first = datetime(2024, 3, 11, tzinfo=ZoneInfo("UTC"))
    (week,) = periods_between(terms, to_ns(first), to_ns(first + timedelta(days=1)))
    assert week.end_ns - week.start_ns == (7 * 24 - 1) * 3600 * 10**9
    assert moment_of(week.end_ns, "America/New_York").hour == 12
