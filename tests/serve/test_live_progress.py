"""What a run measures at the moment, and how long it will still take."""

from __future__ import annotations

from nephoscope.serve.live_progress import described, left_s

SETTINGS = [{"benchmark": "cpu.pi", "factors": {"threads": 2}}]


def test_a_trial_that_begins_says_what_it_measures() -> None:
    event = described({"event": "trial_started", "trial": "r0003-s000-web"}, SETTINGS)
    assert event["measures"] == {
        "benchmark": "cpu.pi",
        "about": "Integer arithmetic: digits of π on 1 to N threads",
        "setting": "2 threads",
        "round": 3,
        "target": "web",
    }
    assert event["text"] == "r0003-s000-web begins"
    warmup = described({"event": "trial_started", "trial": "w0001-s000t002-web"}, SETTINGS)
    assert warmup["measures"]["round"] == -1


def test_other_events_and_unknown_trials_have_a_sentence_only() -> None:
    for event in (
        {"event": "trial_started", "trial": "r0003-s007-web"},
        {"event": "trial_started"},
        {"event": "target_opened", "target": "web"},
    ):
        assert described(event, SETTINGS).keys() - event.keys() == {"text"}


def test_what_is_left_is_the_budget_but_at_least_the_first_round() -> None:
    trials = ["w0000-s000-a", "r0001-s000-a", "r0001-s001-a", "r0002-s000-a"]
    assert left_s(trials, 2, 30.0, 100.0) == 70.0
    # Two of four settings have no trial yet; a trial takes 30 s / 4.
    assert left_s(trials, 4, 30.0, 31.0) == 15.0
    assert left_s(trials, 4, 30.0, None) == 15.0
    assert left_s(trials, 2, 30.0, None) is None
    assert left_s([], 2, 0.0, None) is None
    assert left_s([], 2, 0.0, 10.0) == 10.0
