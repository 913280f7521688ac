"""Scaling rules on a trace: planted best settings, equal ones, and the replay of a recorded run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nephoscope.autoscalers import rules
from nephoscope.autoscalers.rules import rule_of
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.features.elastic.rule_texts import RuleLimits
from nephoscope.features.elastic.rule_texts import rule_of as rule_text
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.scaling import grid, result, search, traces
from nephoscope.features.scaling.records import ScalingAnalysis, ScalingFigures
from nephoscope.features.scaling.settings import with_settings
from nephoscope.stats.instance_demand import ScaledService
from nephoscope.stats.queueing import ResponseObjective
from nephoscope.stats.scaled_service import simulate

OBJECTIVE = LatencyObjective.of("p95 < 500ms")
SERVICE = ScaledService(services_per_s=10.0, objective=ResponseObjective(0.5, 0.95), boot_s=120.0)


def written(path: Path, rows: Sequence[Sequence[object]], head: str = "time_s,rate") -> Path:
    lines = (",".join(str(cell) for cell in row) for row in rows)
    path.write_text("\n".join((head, *lines)) + "\n")
    return path


def stepped(path: Path, at_s: int = 3600, low: float = 8, high: float = 32) -> traces.Trace:
    rows = [(at, low if at < at_s else high) for at in range(0, 7200, 300)]
    return traces.read(written(path, rows))


def analysed(
    rules: Sequence[str],
    trace: traces.Trace,
    test: traces.Trace | None = None,
    replications: int = 3,
) -> ScalingAnalysis:
    wanted = result.SearchSettings(OBJECTIVE, grid.candidates(rules), replications)
    return result.analyse(SERVICE, wanted, trace, test)


def test_planted_best_settings_are_selected(tmp_path: Path) -> None:
    trace = stepped(tmp_path / "day.csv")
    # 8/s needs 2 instances, 32/s needs 4, which take two minutes to boot: the third and the fourth
    # have to be requested at 58 minutes. Later misses requests, earlier costs more.
    schedules = (
        "00:00 2",
        "00:00 2;01:10 4",
        "00:00 2;00:58 4",
        "00:00 2;00:30 4",
        "00:00 4",
        "00:00 3;00:58 5",
    )
    analysis = analysed([f"schedule:schedule={'|'.join(schedules)}"], trace)
    best = analysis.candidates[0]
    assert best.settings == {"schedule": "00:00 2;00:58 4"}
    assert [each.is_best for each in analysis.candidates].count(True) == 1
    assert analysis.sentence.startswith(
        "day.csv: schedule schedule=00:00 2;00:58 4 is the cheapest"
    )
    # The minimum has 2 for an hour and 4 for an hour; the best pays two more for two minutes.
    assert analysis.bound.cost_h == pytest.approx(6.0)
    assert best.figures.cost_h.value == pytest.approx(6.0 + 2 * 2 / 60)
    assert (analysis.bound.peak_count, best.figures.under_provisioned) == (4, 0.0)
    late = next(each for each in analysis.candidates if "01:10" in each.settings["schedule"])
    assert not late.meets
    assert late.is_on_frontier


def test_another_day_shows_settings_that_fit_one_day_only(tmp_path: Path) -> None:
    trace = stepped(tmp_path / "day.csv")
    other = stepped(tmp_path / "other.csv", at_s=1800)
    analysis = analysed(
        ["schedule:schedule=00:00 2;00:58 4", "tracking:target=0.5,cooldown_in=5min"], trace, other
    )
    assert analysis.candidates[0].rule == "schedule"
    assert analysis.candidates[0].test_meets is False
    back_test = next(text for text in analysis.remarks if text.startswith("Back-test"))
    assert "on other.csv: it misses the objective" in back_test
    assert "tracking target=0.5 cooldown_in=5min would be best" in back_test


def test_equal_settings_are_not_preferred(tmp_path: Path) -> None:
    trace = stepped(tmp_path / "day.csv", high=12)
    # Decisions are a minute apart: a cooldown of 1 s changes nothing.
    analysis = analysed(["tracking:target=0.5,cooldown_in=0s|1s|30s"], trace)
    assert [each.is_best for each in analysis.candidates] == [True] * 3
    assert "of 3 settings, 2 other settings cannot be distinguished from it" in analysis.sentence


def outcome(place: int, cost_h: np.ndarray) -> search.SimulatedRule:
    candidate = grid.candidates([f"tracking:target={0.1 + place / 100:g}"])[0]
    value = Estimate(float(cost_h.mean()), None, None, 0.95, cost_h.size, "h", "mean")
    figures = ScalingFigures(value, value, 0.0, 0.0, 0.0, 0.0)
    return search.SimulatedRule(candidate, cost_h, np.zeros(cost_h.size), figures, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [2, 6])
def test_settings_with_the_same_mean_are_rarely_distinguished(count: int) -> None:
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(300):
        outcomes = [outcome(place, rng.normal(100, 5, 10)) for place in range(count)]
        wrong += len(search.best_of(outcomes, 0.05)[1]) < count
    # 5 % of 300, and 3 standard errors of a count.
    assert wrong <= 15 + 3 * np.sqrt(15 * 0.95)
    worse = [outcome(0, rng.normal(100, 5, 10)), outcome(1, rng.normal(120, 5, 10))]
    assert len(search.best_of(worse, 0.05)[1]) == 1


def test_the_frontier_has_what_nothing_else_beats() -> None:
    costs, slow = [3.0, 1.0, 2.0, 2.0, 4.0], [0.1, 0.4, 0.2, 0.3, 0.2]
    outcomes = []
    for place, (cost, ratio) in enumerate(zip(costs, slow, strict=True)):
        one = outcome(place, np.array([cost]))
        outcomes.append(
            search.SimulatedRule(
                one.candidate, one.cost_h, np.array([ratio]), one.figures, one.first
            )
        )
    assert [float(each.cost_h[0]) for each in search.frontier(outcomes)] == [1.0, 2.0, 3.0]


def recorded(tmp_path: Path, text: str, wrong_at: int | None = None) -> traces.Trace:
    """A run of a rule, as an autoscaler records it."""
    rows = [(at, 20 + 15 * np.sin(at / 1500)) for at in range(0, 7200, 60)]
    load = traces.read(written(tmp_path / "load.csv", rows))
    rule = grid.candidates([text])[0].rule
    run = simulate(rule, SERVICE, load.rate, load.end_s, np.random.default_rng(4))
    lines = []
    for place, each in enumerate(run.decisions):
        seen = each.observation
        rate = float(load.rate.at(seen.at_s))
        desired = each.decision.desired + (place == wrong_at)
        lines.append((seen.at_s, rate, seen.present, seen.ready, seen.value, desired))
    head = "time_s,rate,present,ready,value,desired"
    return traces.read(written(tmp_path / "run.csv", lines, head))


def test_a_recorded_run_is_replayed_step_for_step(tmp_path: Path) -> None:
    text = "tracking:target=0.6,cooldown_out=2min,stabilisation_in=5min"
    (replay,) = analysed([text], recorded(tmp_path, text), replications=1).replays
    assert (replay.equal, replay.first_difference_s) == (replay.decisions, None)
    assert replay.decisions == 119
    assert replay.simulated_over == pytest.approx(replay.measured_over, rel=0.1)


def test_a_decision_of_another_rule_is_named(tmp_path: Path) -> None:
    text = "tracking:target=0.6"
    (replay,) = analysed([text], recorded(tmp_path, text, wrong_at=40), replications=1).replays
    assert (replay.decisions - replay.equal, replay.first_difference_s) == (1, 41 * 60.0)
    (other,) = analysed(["tracking:target=0.5"], recorded(tmp_path, text), replications=1).replays
    assert other.equal < other.decisions


def test_each_trial_is_simulated_with_its_own_clock(tmp_path: Path) -> None:
    """Two rules, whose trials differ by when they decide alone."""
    load = traces.read(written(tmp_path / "load.csv", [(0, 20), (600, 120), (1200, 20)]))
    made = []
    for text, firsts_s in (("tracking:target=0.6", (5.0, 55.0)), ("tracking:target=0.3", (30.0,))):
        (candidate,) = grid.candidates([text])
        own = []
        for first_s in firsts_s:
            service = replace(SERVICE, first_decision_s=first_s, first_value_s=2.0)
            run = simulate(candidate.rule, service, load.rate, load.end_s)
            decisions = tuple(
                traces.RecordedDecision(each.observation, each.decision.desired)
                for each in run.decisions
            )
            recording = traces.ScalerRecording(decisions, run.supply, 0.0, first_s, 2.0, 0.25, 1.5)
            own.append(recording)
        made.append(grid.recorded(candidate.rule, tuple(own)))
    assert made[0].recordings[0].supply != made[0].recordings[1].supply
    wanted = result.SearchSettings(OBJECTIVE, made, replications=1)
    analysis = result.analyse(SERVICE, wanted, load)
    assert [each.trials for each in analysis.replays] == [2, 1]
    for each in analysis.replays:
        assert each.equal == each.decisions
        assert each.measured_under > 0
        assert each.simulated_under == pytest.approx(each.measured_under)
        assert each.simulated_over == pytest.approx(each.measured_over)
        assert (each.measured_slow_ratio, each.measured_cost_h) == (0.25, 1.5)


def test_times_since_1970_keep_their_time_of_day(tmp_path: Path) -> None:
    day = 19_000 * 86_400
    rows = [(day + 30_000, 1), (day + 30_060, 2)]
    trace = traces.read(written(tmp_path / "a.csv", rows, "time_s,rate_per_s"))
    assert trace.rate.times_s == (30_000.0, 30_060.0)
    assert trace.end_s == 30_120.0


@pytest.mark.parametrize(
    ("head", "rows", "words"),
    [
        ("time_s,rate", [(0, 1)], "two rows"),
        ("time_s,rate", [(0, 1), (0, 1)], "not after"),
        ("time_s,rate", [(0, -1), (1, 1)], "rate '-1'"),
        ("time_s,rate", [(0, "nan"), (1, 1)], "rate 'nan'"),
        ("time_s,rate", [("x", 1), (1, 1)], "time_s 'x'"),
        ("time_s,rate", [(0, 1), (1e12, 1)], "longer than 400 days"),
        ("time_s,load", [(0, 1), (1, 1)], "unknown column 'load'"),
        ("time_s,ready", [(0, 1), (1, 1)], "'rate' or the column 'rate_per_s'"),
        ("time_s,rate,rate_per_s", [(0, 1, 1), (1, 1, 1)], "and not both"),
        ("time_s,rate,ready", [(0, 1, 1), (1, 1, 1)], "'present' is missing"),
    ],
)
def test_a_wrong_trace_is_one_sentence(
    head: str, rows: Sequence[Sequence[object]], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        traces.read(written(tmp_path / "bad.csv", rows, head))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tracking:target", "is no setting"),
        ("tracking:target=0.1,target=0.2", "there twice"),
        ("tracking:target=" + "|".join(str(1 + place) for place in range(5001)), "more than 5,000"),
        ("luck", "no rule 'luck'"),
    ],
)
def test_a_wrong_grid_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        grid.candidates([text])


def test_a_grid_has_each_combination_once() -> None:
    made = grid.candidates(["tracking:target=0.5|0.6,cooldown_in=0s|1min", "tracking:target=0.5"])
    assert [str(each) for each in made] == [
        f"tracking target={target} cooldown_in={cooldown}"
        for target, cooldown in itertools.product(("0.5", "0.6"), ("0s", "1min"))
    ] + ["tracking target=0.5"]
    assert len(grid.candidates(grid.defaults(50.0, 0.2))) == 34


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("rate=40", "tracking:metric=rate,target=40"),
        (
            "response-time=50ms,cooldown_in=1min",
            "tracking:metric=response-time,target=50ms,cooldown_in=1min",
        ),
        ("queue=1..4", "step:metric=queue,down_at=1,up_at=4"),
        ("predictive=40", "predictive:target=40"),
    ],
)
def test_the_rules_of_experiments_have_the_same_names(short: str, long: str) -> None:
    (first,), (second,) = (grid.candidates([text]) for text in (short, long))
    assert first.rule == second.rule
    text = short.partition(",")[0]
    limits = RuleLimits(maximum=1000, cooldown_in_s=first.rule.cooldown_in_s)
    measured = rule_of(rule_text(text, limits))
    if measured.policy == rules.PREDICTIVE:
        measured = replace(measured, history_s=900.0, horizon_s=300.0)
    assert replace(measured, metric=first.rule.metric) == first.rule
    assert len(grid.candidates(["cpu=0.5|0.6|0.7"])) == 3


def test_settings_of_the_service_are_read() -> None:
    service = with_settings(
        SERVICE, {"boot": "5min", "warm-up": "10s", "backlog": "0", "start": "3"}
    )
    assert (service.boot_s, service.warm_up_s) == (300.0, 10.0)
    assert (service.backlog, service.start_count) == (0, 3)
    uneven = with_settings(SERVICE, {"service_cv": "2", "queue": "instances"})
    assert (uneven.service_cv, uneven.shared_queue) == (2.0, False)
    for settings in (
        {"queue": "none"},
        {"service_cv": "-1"},
        {"boots": "1s"},
        {"boot": "-1s"},
        {"start": "0"},
        {"interval": "0s"},
    ):
        with pytest.raises(UsageError, match=r"^(--set|'-1s')"):
            with_settings(SERVICE, settings)
