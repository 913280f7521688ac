"""The journal as a person reads it."""

from __future__ import annotations

from nephoscope.measure.runs.journal import lines

AT = "2026-01-02T03:04:05.678+00:00"


def one(**event: object) -> str:
    (day, line) = lines([{"at": AT, **event}])
    assert day == "2026-01-02 (UTC)"
    time, _, text = line.partition("  ")
    assert time == "03:04:05.678"
    return text


def test_a_trial_tells_its_phases_its_skew_and_its_loads() -> None:
    told = one(
        event="trial_ended",
        trial="r0001-s000-a",
        status="invalid",
        timeline={"prepare": [0, 5_000_000], "measure": [5_000_000, 1_005_000_000]},
        skew_ns=12_000,
        loads=[{"name": "noise", "target": "b", "covered_ratio": 0.5}],
        attempt=2,
        reasons=["it rained", "and snowed"],
    )
    assert told == (
        "r0001-s000-a invalid, prepare 5.00 ms, measure 1.00 s, skew 12.0 µs, "
        "load noise on b covered 50 %, attempt 2: it rained; and snowed"
    )


def test_sessions_attempts_and_losses_are_sentences() -> None:
    assert one(event="session_started", pid=7, machine="box", resumed=True, trials=3) == (
        "process 7 on box begins to measure, going on after 3 trials"
    )
    assert one(event="session_ended", why="interrupted") == (
        "the process stops measuring: interrupted"
    )
    assert one(event="trial_started", trial="r1", together="a, b", attempt="2") == (
        "r1 begins (together: a, b), attempt 2"
    )
    assert one(event="trial_tried_again", trial="r1", attempt=1, reasons=["late"]) == (
        "r1 attempt 1 failed, tried again: late"
    )
    assert one(event="target_lost", target="b", why="hung up") == "b is lost: hung up"
    assert one(
        event="alternative_ended",
        benchmark="null",
        target="a",
        factors={"x": 1},
        word="converged",
        reason="n = 10",
    ) == ("null (x 1) on a is done: converged (n = 10)")


def test_what_it_does_not_know_is_shown_as_it_stands() -> None:
    assert one(event="imported", file="f", lines=3) == "imported: file f, lines 3"
    assert one(event="trial_ended", trial="r1", status="valid") == "r1 valid"
    assert lines([{"event": "odd", "at": "nonsense"}]) == ["              odd"]
    assert one(event="trial_ended", loads=True) == "trial ended: loads True"
    assert one(event="trial_ended", timeline={"measure": 1}).startswith("trial ended: timeline")


def test_the_date_stands_once_a_day() -> None:
    events = [
        {"at": "2026-01-01T23:59:59+00:00", "event": "a"},
        {"at": "2026-01-02T00:00:01+00:00", "event": "b"},
        {"at": "2026-01-02T00:00:02+00:00", "event": "c"},
    ]
    assert lines(events) == [
        "2026-01-01 (UTC)",
        "23:59:59.000  a",
        "2026-01-02 (UTC)",
        "00:00:01.000  b",
        "00:00:02.000  c",
    ]
