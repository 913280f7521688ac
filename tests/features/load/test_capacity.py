from __future__ import annotations

import pytest

from nephoscope.core.errors import RunFailed
from nephoscope.features.load import capacity
from nephoscope.features.load.capacity import CapacityStage, Costs, SearchLimits, StagePlan
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.load.records import TrialOutcome

OBJECTIVE = LatencyObjective.of("p99 < 20ms")
LIMITS = SearchLimits(precision_ratio=0.05, budget_s=1000.0, confidence=0.95)


class Server:
    """Meets the objective up to a rate; counts the seconds that its trials take."""

    def __init__(self, holds_to: float) -> None:
        self.holds_to = holds_to
        self.spent_s = 0.0
        self.lengths_s: list[float] = []

    def measure(self, plan: StagePlan) -> CapacityStage:
        self.lengths_s.append(plan.trial_s)
        self.spent_s += plan.trial_s * plan.trials
        rates = [*plan.rates_per_s] * plan.rounds
        return CapacityStage([TrialOutcome(rate, rate <= self.holds_to) for rate in rates], 0)


def run(server: Server, closed_loop_per_s: float, limits: SearchLimits = LIMITS) -> capacity.Search:
    return capacity.search(
        server.measure, OBJECTIVE, closed_loop_per_s, limits, now=lambda: server.spent_s
    )


def test_a_limit_is_found_to_the_precision_asked_for() -> None:
    found = run(Server(3000.0), 10_000.0)
    assert found.capacity.low <= 3000 <= found.capacity.high
    assert found.capacity.relative_width <= 0.05
    sentence, known = capacity.conclusion(found, OBJECTIVE, 0.95)
    assert known
    assert sentence.startswith("p99 < 20.0 ms holds up to 2,9") or "up to 3,0" in sentence


def test_time_ends_a_search() -> None:
    server = Server(3000.0)
    found = run(server, 10_000.0, SearchLimits(0.0001, 30.0, 0.95))
    assert server.spent_s <= 30
    assert found.capacity.relative_width > 0.0001
    (told,) = capacity.remarks(found, OBJECTIVE, SearchLimits(0.0001, 30.0, 0.95))
    assert told.startswith("The budget ended the search: the interval is ±")


@pytest.mark.parametrize("budget_s", [15.0, 50.0, 120.0])
@pytest.mark.parametrize("overhead_s", [0.1, 2.5])
def test_a_slow_server_does_not_exceed_the_budget(budget_s: float, overhead_s: float) -> None:
    """At 20 requests per second the percentile alone would take a minute a trial."""
    server = Server(15.0)

    def measure(plan: StagePlan) -> CapacityStage:
        stage = server.measure(plan)
        server.spent_s += overhead_s * plan.trials
        return stage

    limits = SearchLimits(0.05, budget_s, 0.95)
    found = capacity.search(measure, OBJECTIVE, 20.0, limits, now=lambda: server.spent_s)
    # Only the first stage does not know what a trial takes besides its load.
    assert server.spent_s <= budget_s + 6 * max(0.0, overhead_s - 0.5)
    told = capacity.remarks(found, OBJECTIVE, limits)
    assert any("to fit into the budget" in sentence and "1,000" in sentence for sentence in told)
    assert found.capacity.n >= 3
    # A trial without enough requests decides nothing, and so is none.
    assert all(one.rate_per_s * found.shortest_s >= 5 for one in found.tried)


@pytest.mark.parametrize(
    ("holds_to", "words"), [(1e9, "at least"), (0.0, "at most (95 %), if at any rate")]
)
def test_a_limit_outside_of_the_range_has_no_interval(holds_to: float, words: str) -> None:
    found = run(Server(holds_to), 10_000.0, SearchLimits(0.05, 60.0, 0.95))
    sentence, known = capacity.conclusion(found, OBJECTIVE, 0.95)
    assert not known
    assert words in sentence


def test_trials_have_enough_requests_for_the_percentile() -> None:
    assert capacity.trial_s(OBJECTIVE, 100_000.0) == 1
    assert capacity.trial_s(OBJECTIVE, 100.0) == 10
    # Of a tenth too many requests, half wait for more than 300 ms after 6 s.
    assert capacity.trial_s(LatencyObjective.of("p50 < 300ms"), 100_000.0) == pytest.approx(6)
    assert capacity.trial_s(LatencyObjective.of("p99.9 < 20ms"), 1.0) == 60


def test_a_server_that_gives_no_valid_trial_ends_the_search() -> None:
    with pytest.raises(RunFailed, match="No trial of the search is valid"):
        capacity.search(lambda plan: CapacityStage([], 6), OBJECTIVE, 1000.0, LIMITS)


def test_a_budget_without_room_for_a_trial_is_refused() -> None:
    limits = SearchLimits(precision_ratio=0.05, budget_s=1.0, confidence=0.95)
    with pytest.raises(RunFailed, match="no room for a trial"):
        run(Server(1.0), 1000.0, limits)


def test_a_search_without_any_outcome_states_no_capacity() -> None:
    limits = SearchLimits(precision_ratio=0.05, budget_s=20.0, confidence=0.95)
    with pytest.raises(RunFailed, match="sent too late"):
        capacity.search(
            lambda plan: CapacityStage([], 6, RunFailed("All were sent too late.", "")),
            OBJECTIVE,
            1000.0,
            limits,
        )


class BusyMachine:
    """Each trial and each stage takes time besides its load, and ends at the limit it is given;
    the sender is late above a rate, so that the objective is missed there."""

    def __init__(self, holds_to: float, late_from: float, trial_s: float, stage_s: float) -> None:
        self.holds_to, self.late_from = holds_to, late_from
        self.trial_s, self.stage_s = trial_s, stage_s
        self.clock_s = 0.0
        self.cut = 0

    def measure(self, plan: StagePlan) -> CapacityStage:
        ends_s = self.clock_s + plan.limit_s
        self.clock_s += self.stage_s
        outcomes, spent_s = [], []
        for rate in [*plan.rates_per_s] * plan.rounds:
            took_s = plan.trial_s + self.trial_s
            if self.clock_s + took_s > ends_s:
                self.clock_s, self.cut = ends_s, self.cut + 1
                break
            self.clock_s += took_s
            spent_s.append(took_s + (0 if spent_s else self.stage_s))
            late = rate >= self.late_from
            outcomes.append(
                TrialOutcome(rate, rate <= self.holds_to and not late, is_sender_late=late)
            )
        return CapacityStage(outcomes, plan.trials - len(outcomes), None, spent_s)

    def search(self, budget_s: float, costs: Costs | None = None) -> capacity.Search:
        limits = SearchLimits(0.05, budget_s, 0.95)
        return capacity.search(
            self.measure, OBJECTIVE, 1000.0, limits, now=lambda: self.clock_s, costs=costs
        )


@pytest.mark.parametrize("budget_s", [20.0, 40.0, 120.0])
@pytest.mark.parametrize(("trial_s", "stage_s"), [(0.1, 0.5), (2.0, 4.0), (4.0, 8.0)])
def test_the_budget_is_never_exceeded(budget_s: float, trial_s: float, stage_s: float) -> None:
    machine = BusyMachine(300.0, 1e9, trial_s, stage_s)
    found = machine.search(budget_s)
    assert machine.clock_s <= budget_s
    assert found.outcomes
    # Only the first stage does not know the costs, so that no later one is ended by the limit.
    assert machine.cut <= 1


def test_costs_that_are_known_keep_stages_whole() -> None:
    machine = BusyMachine(300.0, 1e9, trial_s=4.0, stage_s=8.0)
    costs = Costs()
    costs.learn(8 + 3 * 5, 3, 1.0, [13.0, 5.0, 5.0])
    assert (costs.trial_s, costs.stage_s) == (4.0, 8.0)
    assert machine.search(40.0, costs).outcomes
    assert machine.cut == 0


def test_a_late_sender_leaves_bounds() -> None:
    machine = BusyMachine(1e9, late_from=200.0, trial_s=0.5, stage_s=1.5)
    found = machine.search(60.0)
    sentence, known = capacity.conclusion(found, OBJECTIVE, 0.95)
    assert not known
    met_to = max(one.rate_per_s for one in found.outcomes if one.met)
    assert found.capacity.low <= met_to < 200
    assert "requests per second at least (95 %): the highest rate that met it was 1" in sentence
    assert "late senders leave it open from 2" in sentence
    (late, *_) = capacity.remarks(found, OBJECTIVE, SearchLimits(0.05, 60.0, 0.95))
    assert late.startswith("The sender was late in ")
    assert "the load generator, not the server, may be the limit" in late
    assert sum(one.sender_late for one in found.tried) == sum(
        one.is_sender_late for one in found.outcomes
    )


def test_a_sender_that_is_late_beyond_the_capacity_keeps_the_interval() -> None:
    """The server misses at 300/s while the sender is on time, so the late trials matter not."""
    found = BusyMachine(300.0, late_from=400.0, trial_s=0.5, stage_s=1.5).search(120.0)
    assert found.capacity.low <= 300 <= found.capacity.high
    assert any(one.is_undecided for one in found.outcomes)
    sentence, known = capacity.conclusion(found, OBJECTIVE, 0.95)
    assert known, sentence


def test_nothing_is_bounded_where_every_sender_is_late() -> None:
    found = BusyMachine(1e9, late_from=0.0, trial_s=0.5, stage_s=1.5).search(40.0)
    sentence, known = capacity.conclusion(found, OBJECTIVE, 0.95)
    assert not known
    assert sentence.startswith("The trials do not bound the rate up to which p99 < 20.0 ms holds")
    assert found.capacity.n == 0
