from __future__ import annotations

import math

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample
from nephoscope.features.load.objective import LatencyObjective


def latency(value_ns: float, count: int) -> Sample:
    return Sample("latency_ns", value_ns, count)


def unanswered(value_ns: float, count: int) -> Sample:
    return Sample("unanswered_ns", value_ns, count)


def error(kind: str, count: int) -> Sample:
    return Sample("errors_count", count, factors={"kind": kind})


def test_an_objective_is_read_as_it_is_printed() -> None:
    objective = LatencyObjective.of("p99.9<20 ms")
    assert objective == LatencyObjective(0.999, 20_000_000)
    assert LatencyObjective.of(str(objective)) == objective
    assert objective.least_requests == 10_000


@pytest.mark.parametrize(
    "text",
    ["", "p99", "p0 < 1ms", "p100 < 1ms", "99 < 1ms", "p99 < 0s", "p99 < 1 parsec", "p99 > 1ms"],
)
def test_other_text_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="is no objective") as refused:
        LatencyObjective.of(text)
    assert "p99 < 20ms" in (refused.value.hint or "")


def test_a_share_of_requests_below_the_limit_meets_it() -> None:
    objective = LatencyObjective.of("p99 < 20ms")
    assert objective.met_by([latency(1e6, 990), latency(30e6, 10)])
    assert not objective.met_by([latency(1e6, 989), latency(30e6, 11)])


def test_failed_requests_are_beyond_the_limit_once() -> None:
    """A request that timed out is among the latencies; one that was refused is not."""
    objective = LatencyObjective.of("p99 < 20ms")
    timeouts = [latency(1e6, 990), latency(10e9, 10), unanswered(10e9, 10)]
    timeouts += [error("timeout", 10), error("any", 10)]
    assert objective.met_by(timeouts)
    assert not objective.met_by([*timeouts, latency(10e9, 1), unanswered(10e9, 1)])
    assert not objective.met_by([latency(1e6, 990), error("refused", 11), error("any", 11)])


def test_the_latency_of_a_trial_is_the_one_that_decides() -> None:
    objective = LatencyObjective.of("p99 < 20ms")
    assert objective.latency_of([latency(30e6, 10), latency(1e6, 990)]) == 1e6
    assert objective.latency_of([latency(1e6, 989), latency(30e6, 11)]) == 30e6
    assert objective.latency_of([latency(1e6, 90), error("refused", 10)]) == math.inf


def test_a_request_without_an_answer_misses_the_limit_however_short_it_waited() -> None:
    """Of 100 requests due 80 are unsent at the end of the trial, some of them 1 ms after."""
    objective = LatencyObjective.of("p99 < 500ms")
    answered = [latency(1e6, 20)]
    waiting = [make(wait_ns, 40) for wait_ns in (1e6, 300e6) for make in (latency, unanswered)]
    assert objective.latency_of([*answered, *waiting, error("unsent", 80)]) == math.inf
    assert LatencyObjective.of("p20 < 500ms").met_by([*answered, *waiting, error("unsent", 80)])


def test_no_request_meets_nothing() -> None:
    assert not LatencyObjective.of("p50 < 1s").met_by([])
