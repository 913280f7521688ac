"""Measures, segments and validity of made-up trials whose times are planted."""

from __future__ import annotations

import pytest
from tests.features.elastic import made

from nephoscope.core.model import Sample
from nephoscope.features.elastic import section
from nephoscope.features.elastic.findings import RULES
from nephoscope.features.elastic.records import Elasticity, ElasticTrial
from nephoscope.features.elastic.result import _comparisons, _summary
from nephoscope.features.elastic.trials import elastic_trial
from nephoscope.features.elastic.validity import notes_of, problems_of
from nephoscope.report.blocks import Chart
from nephoscope.stats import elasticity
from nephoscope.stats.elasticity import StepFunction


def shown(samples: list[Sample], **options: int) -> ElasticTrial:
    own = made.scaler(samples)
    trial = elastic_trial(made.trial(own, **options), own)  # type: ignore[arg-type]
    assert trial is not None
    return trial


def test_segments_are_those_that_were_planted() -> None:
    trial = shown(made.reacting())
    out, inward = trial.changes
    assert out.segments_s() == pytest.approx(
        {
            "metric_lag": 2, "decision": 1, "creation": 0.5, "boot": 1.5, "warm_up": 1,
            "rotation": 0.25, "first_response": 0.25,
        }
    )  # fmt: skip
    assert out.total_s() == pytest.approx(6.25)
    assert (inward.size, inward.total_s()) == (-1, 4)
    assert inward.segments_s()["metric_lag"] == 2.5
    assert inward.segments_s()["decision"] == 0.5
    assert trial.decision_intervals_s == (10, 10)


def test_areas_violations_and_cost_are_those_of_a_calculation_by_hand() -> None:
    trial = shown(made.reacting())
    assert trial.demand == ((0, 1), (10, 2), (20, 1))
    assert trial.supply == ((0, 1), (16.25, 2), (24, 1))
    assert trial.measures.under_provisioned == pytest.approx(6.25 / 30)
    assert trial.measures.over_provisioned == pytest.approx(4 / 30)
    assert (trial.due, trial.slow, trial.failed, trial.violated_s) == (1600, 100, 4, 6)
    # Units of 10 s: one machine for 30 s, one from 13.5 to 25 s; at least 3 + 1 units.
    assert (trial.billed_s, trial.minimum_billed_s) == (50, 40)
    assert trial.oscillations == ()


def test_what_an_outsider_sees_gives_the_whole_time_only() -> None:
    seen = [sample for sample in made.reacting() if sample.metric == "instances_count"]
    out, inward = shown(seen).changes
    assert (out.total_s(), inward.total_s()) == (6.25, 4)
    assert set(out.segments_s().values()) == {None}


def test_a_planted_oscillation_is_found() -> None:
    samples = made.reacting()
    for place, at_s in enumerate((25.5, 26, 26.5, 27, 27.5, 28)):
        samples.append(made.level(at_s, "in_rotation", 1 + (place + 1) % 2))
    trial = shown(samples)
    # The change at 26 s could still answer the demand of 20 s, within 6.25 s.
    (swing,) = trial.oscillations
    assert (swing.start_s, swing.period_s, swing.amplitude) == (26, 1, 1)


def test_each_reason_not_to_judge_is_named() -> None:
    def sentences(samples: list[Sample], **options: object) -> list[str]:
        own = made.scaler(samples)
        trial = made.trial(own, **options)  # type: ignore[arg-type]
        shown_trial = elastic_trial(trial, own)
        assert shown_trial is not None
        return [*problems_of(shown_trial, trial, own), *notes_of(shown_trial, trial, own)]

    still = [made.level(0, state, 1) for state in ("present", "in_rotation", "billed")]
    failing = Sample("unobserved_count", 1.0, at_ns=5, factors={"failure": "exit code 1: no"})
    capped = [*made.reacting(), *made.decision(14, 5, 2, "maximum")]
    died = [*made.reacting(), made.step(20, "m2", "died")]
    cases: list[tuple[list[Sample], dict[str, object], str]] = [
        (made.reacting(), {"rates": (40, 40, 40)}, "nothing had to be scaled"),
        (still, {}, "never changed the number of instances, while the demand went from 1 to 2"),
        (made.reacting(), {"unsent": 20}, "generator was at its limit: 20 of 1,600 requests"),
        (
            made.reacting(),
            {"silent_from_s": 20},
            "service died: no request was answered after 20 s",
        ),
        ([*made.reacting(), failing], {}, "command failed 1 time (exit code 1: no)"),
        (capped, {}, "cap of 2 instances was reached: the rule wanted up to 5"),
        (died, {}, "1 machine died"),
    ]
    assert sentences(made.reacting()) == []
    for samples, options, sentence in cases:
        (only,) = sentences(samples, **options)
        assert sentence in only


def test_a_late_generator_is_its_own_limit() -> None:
    own = made.scaler(made.reacting())
    trial = made.trial(own)
    samples = [s for s in trial.samples[0] if s.metric != "send_delay_ns"]
    late = [Sample("send_delay_ns", 1000.0, 1500), Sample("send_delay_ns", 3e7, 100)]
    trial = type(trial)(1, trial.balancer, trial.records, [[*samples, *late]], trial.counters)
    seen = elastic_trial(trial, own)
    assert seen is not None
    (sentence,) = problems_of(seen, trial, own)
    assert "1 % of the requests more than 30.0 ms late" in sentence


def _elasticity(problems: tuple[str, ...] = ()) -> Elasticity:
    trials = [shown(made.reacting(), number=number) for number in (1, 2, 3)]
    notes = ("The cap of 2 instances was reached: the rule wanted up to 5.",)
    summary = _summary(trials, problems, notes, 0.95)
    return Elasticity("client1", "p99 < 200ms", 50.0, (summary,), (), tuple(trials))


def test_an_experiment_that_judges_nothing_states_no_elasticity() -> None:
    class Result:
        def __init__(self, part: Elasticity) -> None:
            self._part = part

        def part(self, kind: type) -> Elasticity:
            assert kind is Elasticity
            return self._part

    good = section.answer(Result(_elasticity()))  # type: ignore[arg-type]
    assert "6.25 s" in good[0]
    assert "6.50 %" in good[0]
    page = section.build(Result(_elasticity()))  # type: ignore[arg-type]
    assert page is not None
    (chart,) = (block for block in page.blocks if isinstance(block, Chart))
    assert [trace["name"] for trace in chart.figure["data"]] == ["demand", "supply", "latency"]
    bad = section.answer(Result(_elasticity(("The service died.",))))  # type: ignore[arg-type]
    assert bad == ["rate-40 is not judged: The service died."]


def test_findings_name_what_is_wrong() -> None:
    class Case:
        target = "client1"

        def __init__(self, part: Elasticity) -> None:
            self._part = part

        def part(self, kind: type) -> Elasticity:
            return self._part

    found = [f for rule in RULES for f in rule(Case(_elasticity(("The service died.",))))]  # type: ignore[arg-type]
    assert [finding.id for finding in found] == ["autoscaler_not_judged", "autoscaler_capped"]


def test_a_worse_rule_is_compared_round_by_round() -> None:
    first = [shown(made.reacting(), number=number) for number in range(1, 9)]
    worse = [shown(made.reacting(), number=number, unsent=10) for number in range(1, 9)]
    summaries = [_summary(own, (), (), 0.95) for own in (first, worse)]
    (comparison,) = _comparisons([first, worse], summaries, 0.95)
    ratio = comparison.violations.ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(114 / 104)
    assert comparison.speed_up == pytest.approx(1)


def test_the_demand_follows_from_the_capacity_of_one() -> None:
    from nephoscope.features.elastic.trials import demand_of

    got = demand_of([0, 50, 51, 150, 151], 2.0, 50.0)
    assert got == StepFunction((0, 4, 6, 8), (1, 2, 3, 4))
    assert elasticity.measures(got, got, 0, 10).jitter_per_min == 0
