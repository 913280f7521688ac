"""Measures, segments and validity of made-up trials whose times are planted."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.features.elastic import made

from nephoscope.core.model import Sample
from nephoscope.features.elastic import section
from nephoscope.features.elastic.findings import RULES
from nephoscope.features.elastic.records import Elasticity, ElasticTrial
from nephoscope.features.elastic.result import _comparisons, _judged, _summary
from nephoscope.features.elastic.trials import autoscaler_of, elastic_trial
from nephoscope.features.elastic.validity import disturbances_of, notes_of, problems_of
from nephoscope.features.experiments import answer as effects
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


def still_with_a_death() -> list[Sample]:
    """Two instances until one dies at 15 s; the rule decides to keep what is there."""
    states = ("present", "in_rotation", "billed")
    samples = [made.level(0, state, 2) for state in states]
    samples += [made.level(15, state, 1) for state in states]
    samples += [made.step(0, name, "created") for name in ("m1", "m2")]
    return [
        *samples,
        made.step(15, "m2", "died"),
        *made.decision(3, 2, 2),
        *made.decision(18, 1, 1),
    ]


def test_a_time_without_responses_is_violated_also_where_nothing_failed_yet() -> None:
    own = made.scaler(made.reacting())
    trial = made.trial(own, silent_from_s=20, silent_to_s=26, errors=False)
    seen = elastic_trial(trial, own)
    assert seen is not None
    # 6 s are slow, and 6 s silent: a limit of 0.2 s is over in the first of them.
    assert seen.violated_s == 12


def test_each_machine_is_billed_by_its_own_life() -> None:
    """The second machine of four units is removed, and not the first."""
    samples = [each for each in made.reacting() if each.factors.get("step") != "removed"]
    samples = [each for each in samples if each.factors.get("machine") != "m1"]
    samples += [
        made.step(0, "m1", "created"),
        made.step(12, "m1", "died"),
        made.step(12, "m3", "created"),
    ]
    # m1: 0 to 12, m3: 12 to 30, m2: 13.5 to 30 s.
    assert shown(samples).billed_s == 20 + 20 + 20


def test_an_attack_costs_what_the_load_without_it_does_not_need() -> None:
    """Of 90/s from 15 s on, 50/s are the attack."""
    own = made.scaler(made.reacting(), attack_per_s=50.0, rule='{"maximum": 4}')
    seen = elastic_trial(made.trial(own, rates=(40, 40, 40, 90, 90, 90)), own)
    assert seen is not None
    # Without the attack one instance serves 30 s; it scaled to 2, and its cap is 4.
    assert (seen.minimum_billed_s, seen.billed_s, seen.bound_s) == (30, 50, 120)
    assert seen.demand == ((0, 1), (15, 2))
    summary = _summary([seen], (), (), 0.95)
    assert summary.cost_bound == 4
    elastic = Elasticity("client1", "p99 < 200ms", 50.0, (summary,), (), (seen,))
    assert "50.0 /s of the second half are an attack" in section.service_table(elastic).caption
    assert "(4 at its cap throughout)" in section._sentence(summary, elastic.objective)


def test_every_instance_answers_the_moment_at_which_the_demand_needed_it() -> None:
    """Steps of one instance each follow a demand of 3 from 10 s on; the swing after it does not."""
    samples = [made.level(0, state, 1) for state in ("present", "in_rotation")]
    for at_s, before, after in ((12, 1, 2), (15, 2, 3), (25, 3, 2), (27, 2, 3)):
        samples += made.decision(at_s, after, after)
        name = "created" if after > before else "out_of_rotation"
        samples.append(made.step(at_s + 0.5, "m2", name))
        samples += [made.level(at_s + 0.5, state, after) for state in ("present", "in_rotation")]
        samples.append(made.step(at_s + 0.6, "m2", "in_rotation"))
    samples.append(made.visible(11, 2))
    trial = shown(samples, rates=(40, 140, 140))
    assert [change.total_s() for change in trial.changes] == pytest.approx([2.6, 5.6, None, None])
    lags = [change.segments_s()["metric_lag"] for change in trial.changes]
    assert lags == [1, None, None, None]
    seen = [sample for sample in samples if sample.metric == "instances_count"]
    assert [change.total_s() for change in shown(seen, rates=(40, 140, 140)).changes] == (
        pytest.approx([2.5, 5.5, None, None])
    )


def test_each_reason_not_to_judge_is_named() -> None:
    def sentences(samples: list[Sample], **options: object) -> list[str]:
        own = made.scaler(samples)
        trial = made.trial(own, **options)  # type: ignore[arg-type]
        shown_trial = elastic_trial(trial, own)
        assert shown_trial is not None
        return [
            sentence
            for sentences in (
                problems_of(shown_trial),
                disturbances_of(shown_trial, trial, own),
                notes_of(shown_trial, own),
            )
            for sentence in sentences
        ]

    failed = [*made.reacting(), made.step(20, "m2", "failed")]
    dying = [*still_with_a_death()]
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
        (failed, {}, "1 start of a machine failed"),
        (
            made.reacting(),
            {"silent_from_s": 8, "silent_to_s": 12},
            "No request was answered from 8 s to 12 s",
        ),
    ]
    assert sentences(made.reacting()) == []
    # Few requests: silence of a tenth of the trial is no death, and a death needs no scaling.
    assert not any("answered" in each for each in sentences(made.reacting(), rates=(1, 2, 2)))
    assert ["never changed" in each for each in sentences(dying)] == [True, False]
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
    (sentence,) = disturbances_of(seen, trial, own)
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
    assert [trace["name"] for trace in chart.figure["data"]] == [
        "demand",
        "supply",
        "latency",
        "limit",
    ]
    silent = elastic_trial(made.trial(own := made.scaler(made.reacting()), silent_from_s=20), own)
    assert silent is not None
    drawn = section._chart(silent, _elasticity()).figure
    # Times without a response are gaps of the line, and instances are counted in whole numbers.
    assert [y is None for y in drawn["data"][2]["y"]] == [False] * 20 + [True] * 10
    assert drawn["layout"]["yaxis"]["ticktext"] == ["0", "1", "2"]
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
    elastic = Elasticity("client1", "p99 < 200ms", 50.0, tuple(summaries), (comparison,), ())

    class Result:
        def part(self, kind: type) -> Elasticity:
            return elastic

    verdict, *own = section.answer(Result())  # type: ignore[arg-type]
    assert verdict.startswith("rate-40 follows the load worse than rate-40: 1.10 [")
    assert verdict.endswith("times as many requests miss p99 < 200ms.")
    assert [sentence.split(",")[0] for sentence in own] == ["With rate-40"] * 2


@pytest.mark.parametrize(
    ("rounds", "word", "sentence"),
    [
        (8, "worse", "late follows the load worse than rate-40: 5.75 % ["),
        (4, "inconclusive", "Measure at least 6 rounds of both."),
    ],
)
def test_a_rule_that_violates_nothing_is_compared_by_the_difference(
    rounds: int, word: str, sentence: str
) -> None:
    first, other = (
        [
            replace(
                shown(made.reacting(), number=number),
                autoscaler=name,
                slow=slow + slow // 30 * number,
                failed=0,
                due=600,
            )
            for number in range(1, rounds + 1)
        ]
        for name, slow in (("rate-40", 0), ("late", 30))
    )
    summaries = [_summary(own, (), (), 0.95) for own in (first, other)]
    (comparison,) = _comparisons([first, other], summaries, 0.95)
    assert comparison.violations.ratio is None
    assert comparison.violations.verdict.word == word
    said = section._comparison_sentence(comparison, "p99 < 200ms")
    assert sentence in said


def test_the_demand_follows_from_the_capacity_of_one() -> None:
    from nephoscope.features.elastic.trials import demand_of

    got = demand_of([0, 50, 51, 150, 151], 2.0, 50.0)
    assert got == StepFunction((0, 4, 6, 8), (1, 2, 3, 4))
    assert elasticity.measures(got, got, 0, 10).jitter_per_min == 0


def test_a_death_is_the_reason_and_not_the_connections_that_it_took() -> None:
    own = made.scaler(made.reacting())
    sources = [made.trial(own, number=1), made.trial(own, number=2, unsent=50, silent_from_s=20)]
    pairs = [(trial, own) for trial in sources]
    trials = [elastic_trial(trial, own) for trial in sources]
    rounds, problems, notes = _judged([each for each in trials if each], pairs)["rate-40"]
    assert [each.round for each in rounds] == [1, 2]
    assert problems == ["The service died: no request was answered after 20 s."]
    assert notes == []


def test_disturbed_rounds_are_left_out_while_others_remain() -> None:
    own = made.scaler(made.reacting())
    sources = [made.trial(own, number=1), made.trial(own, number=2, unsent=50)]
    pairs = [(trial, own) for trial in sources]
    trials = [elastic_trial(trial, own) for trial in sources]
    rounds, problems, notes = _judged([each for each in trials if each], pairs)["rate-40"]
    assert [each.round for each in rounds] == [1]
    assert problems == []
    assert notes[0].startswith("1 of 2 rounds left out: The load generator was at its limit")
    rounds, problems, _ = _judged([trials[1]] if trials[1] else [], pairs[1:])["rate-40"]
    assert [each.round for each in rounds] == [2]
    assert "at its limit" in problems[0]


def test_other_figures_of_the_generator_are_no_verdict_on_an_autoscaler() -> None:
    class Result:
        def part(self, kind: type) -> object:
            levels = {"autoscaler": ["rate-40", "queue-2"]}
            return SimpleNamespace(designs=[SimpleNamespace(levels=levels)])

    assert effects.answer(Result()) == []  # type: ignore[arg-type]


def test_parameters_that_a_plan_leaves_out_have_their_defaults() -> None:
    own = made.scaler(made.reacting())
    terse = replace(own, params={"objective": "p99 < 200ms", "capacity_per_s": 50.0})
    scaler = autoscaler_of(made.trial(terse))
    assert scaler is not None
    seen = elastic_trial(made.trial(terse), scaler)
    assert seen is not None
    # By the second: 30 s of one machine, and 11.5 s of the other.
    assert seen.billed_s == 42
