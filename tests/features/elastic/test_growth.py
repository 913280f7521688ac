"""Growth seen from outside: planted knees and moments are recovered, and no other is stated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.features.elastic.ramps import PERIOD_S, REQUEST, Planted, ramp
from tests.results.made import make_run

from nephoscope import catalog
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample, Setting, Shape
from nephoscope.features.elastic.growth import growth_of
from nephoscope.features.elastic.growth_plan import LEAD_STEPS, OBJECTIVE, plan_growth, ramp_rates
from nephoscope.features.elastic.growth_records import ServiceGrowth
from nephoscope.features.elastic.growth_section import levels_table, ramps_table, sentences_of
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.measure.targets.kinds import parse
from nephoscope.results import analyse_run

ROUNDS = 14


def shown(planted: Planted, rounds: int = ROUNDS) -> ServiceGrowth:
    ramps = [ramp(planted, number + 1, place=number) for number in range(rounds)]
    return growth_of(ramps, REQUEST.objective, 0.95)


@pytest.mark.parametrize("grows_s", [5.0 * PERIOD_S, 7.4 * PERIOD_S])
def test_planted_knees_and_their_moment_are_recovered(grows_s: float) -> None:
    """A ramp misses a knee by a step at most, and a moment by a ramp."""
    growth = shown(Planted(210, 430, grows_s))
    first, last = growth.levels
    step = 1 + growth.step_ratio
    assert step < 1.15
    for level, rate in ((first, 210.0), (last, 430.0)):
        assert level.knee.low is not None
        assert level.knee.high is not None
        assert level.knee.low <= rate <= level.knee.high
        assert rate / step <= level.knee.value <= rate * step
    assert last.since_s is not None
    assert last.since_s.low is not None
    assert last.since_s.high is not None
    assert last.since_s.low <= grows_s <= last.since_s.high
    assert last.since_s.high - last.since_s.low <= 2 * PERIOD_S
    (sentence,) = sentences_of(growth)
    assert sentence.startswith("The service kept p99 < 50.0 ms up to ")
    assert sentence.endswith("% of the requests at rates up to there failed while it grew.")
    assert len(levels_table(growth).rows) == 2
    assert len(ramps_table(growth).rows) == ROUNDS


def test_what_fails_while_it_grows_is_counted() -> None:
    grows_s = 5.0 * PERIOD_S
    growth = shown(Planted(210, 430, grows_s))
    knee = growth.levels[-1].knee.value
    before = [step for each in growth.ramps[:5] for step in each.steps if step.rate_per_s <= knee]
    assert growth.failed == sum(step.errors for step in before) > 0
    assert growth.due == pytest.approx(
        sum(step.rate_per_s * step.length_s for step in before), abs=1
    )
    assert growth.failed < sum(each.failed for each in growth.ramps[:5])


def test_a_service_that_stays_as_it_is_did_not_grow() -> None:
    growth = shown(Planted(300))
    assert not growth.has_moved
    (sentence,) = sentences_of(growth)
    assert "throughout 4 min 53 s (14 ramps): its limit did not move." in sentence


def test_knees_beyond_the_ramp_are_bounds() -> None:
    assert (
        "its limit lies beyond the ramp; use a higher --high"
        in sentences_of(shown(Planted(5000), 10))[0]
    )
    assert "use a lower --low" in sentences_of(shown(Planted(60), 10))[0]


def test_few_ramps_show_no_move() -> None:
    growth = shown(Planted(210, 430, 2 * PERIOD_S), 4)
    assert not growth.has_moved
    assert growth.notes == ("4 ramps cannot show a move: 10 are needed. Use more --rounds.",)


def test_a_generator_at_its_limit_is_named_and_nothing_is_called_elastic() -> None:
    """Late sends; and two connections that 10 ms of service each limit to 200 requests per
    second."""
    late = shown(Planted(300, send_delay_s=0.02), 10)
    (sentence,) = sentences_of(late)
    assert sentence.startswith(
        "The growth of the service is not judged: The load generator was at its limit: it sent 1 %"
    )
    few = shown(Planted(1e6, connections=2, service_s=0.01), 10)
    (sentence,) = sentences_of(few)
    assert "they waited for one of 2 connections. Use more connections (-c)." in sentence
    assert few.levels == ()
    assert all(each.is_above for each in few.ramps)


def test_ramps_of_a_late_generator_are_left_out() -> None:
    """A generator that recovers looks like a service that grows."""
    slow = Planted(430, send_delay_s=0.06)
    good = Planted(430)
    ramps = [ramp(slow if place < 6 else good, place + 1, place=place) for place in range(18)]
    growth = growth_of(ramps, REQUEST.objective, 0.95)
    assert not growth.has_moved
    assert growth.notes[0].startswith("6 of 18 ramps left out: The load generator was at its limit")


def test_three_generators_tell_whether_one_limits() -> None:
    one, three = Planted(250), Planted(500)
    for with_three, words in ((three, "one generator limits"), (one, "does not limit it")):
        ramps = [
            each
            for number in range(10)
            for each in (
                ramp(one, number + 1, place=2 * number),
                ramp(with_three, number + 1, generators=3, place=2 * number + 1),
            )
        ]
        growth = growth_of(ramps, REQUEST.objective, 0.95)
        assert growth.generators == 3
        assert growth.levels[0].ramps == 10
        assert words in sentences_of(growth)[1]


def test_a_ramp_begins_with_its_lead_and_ends_at_its_high_rate() -> None:
    rates = ramp_rates(REQUEST)
    assert rates[: LEAD_STEPS + 1] == [100] * (LEAD_STEPS + 1)
    assert rates[-1] == 800
    assert rates == sorted(rates)
    hosts = (parse("local"), parse("ssh:a"), parse("ssh:b"))
    alone, shared = plan_growth(replace(REQUEST, hosts=hosts)).benchmarks
    assert (alone.on, alone.together, shared.on, shared.together) == (
        ("local",), False, ("local", "a", "b"), True,
    )  # fmt: skip
    assert shared.params["generators"] == 3


def test_refusals() -> None:
    with pytest.raises(UsageError, match="interval by interval"):
        plan_growth(
            replace(REQUEST, objective=LatencyObjective.of("p90 < 1ms"), objective_text="p90 < 1ms")
        )
    with pytest.raises(UsageError, match="Use --duration 31s or more"):
        ramp_rates(replace(REQUEST, ramp_s=5.0, objective=LatencyObjective.of("p99 < 500ms")))


def test_stored_ramps_are_read_and_other_plans_are_not(tmp_path: Path) -> None:
    def result_of(label: str) -> ServiceGrowth | None:
        plan, labels = plan_growth(replace(REQUEST, rounds=3)), {OBJECTIVE: label}
        run = make_run(tmp_path, plan, sampled, rounds=3, labels=labels)
        return analyse_run.build(run).part(ServiceGrowth)

    def sampled(setting: Setting, number: int, target: str) -> list[Sample]:
        samples = list(ramp(Planted(300), number, place=number).samples[0])
        seen = {sample.metric for sample in samples}
        plain = {"completed_count": 1.0, "responses_count": 1.0, "requests_per_s": 290.0 + number}
        return samples + [
            Sample(metric.id, plain.get(metric.id, 0.5))
            for metric in catalog.load().benchmark(setting.benchmark).metrics
            if metric.shape is Shape.SCALAR and metric.id not in seen
        ]

    growth = result_of("p99 < 50ms")
    assert growth is not None
    assert growth.objective == "p99 < 50.0 ms"
    assert growth.levels[0].ramps == 3
    assert result_of("fast") is None
