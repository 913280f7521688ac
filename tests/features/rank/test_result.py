"""Rankings of data whose order is known: copies, a capped copy, gaps, domains."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, MetricResult
from nephoscope.features.rank.records import DomainAdvice, Ranking, RankSettings
from nephoscope.features.rank.result import rank
from nephoscope.features.rank.rows import Alternatives, Measurement
from nephoscope.features.rank.standing import PairErrors, Standing
from nephoscope.stats.statistics import estimates, variation

ROUNDS = 8


def measurement(
    alternative: str,
    benchmark: str,
    values: Sequence[float],
    factors: dict[str, object] | None = None,
    better: Better = Better.LOWER,
) -> Measurement:
    line = MetricResult(
        benchmark,
        "value_ns",
        alternative,
        factors or {},
        better,
        estimates.median(values, unit="ns"),
        variation.consistency(values),
        trial_values=tuple(values),
        rounds=tuple(range(1, len(values) + 1)),
    )
    return Measurement(alternative, 0, line)


def ranking(
    measurements: Sequence[Measurement],
    settings: RankSettings | None = None,
    reasons: dict[str, str] | None = None,
) -> Ranking:
    names = list(dict.fromkeys(item.alternative for item in measurements))
    benchmarks = {item.line.benchmark for item in measurements}
    because = {
        (name, benchmark, ""): reason
        for name, reason in (reasons or {}).items()
        for benchmark in benchmarks
    }
    alternatives = Alternatives(0.95, names, list(measurements), because)
    return rank(alternatives, settings or RankSettings())


def noisy(
    rng: np.random.Generator, levels: dict[str, float], benchmark: str, **factors: object
) -> list[Measurement]:
    """Rounds that share their drift, of alternatives that take so long; 2 % of noise each."""
    drift = rng.normal(0, 0.05, ROUNDS)
    return [
        measurement(
            name, benchmark, 100 * level * np.exp(drift + rng.normal(0, 0.02, ROUNDS)), factors
        )
        for name, level in levels.items()
    ]


def intervals_of(document: Ranking, resource: str) -> list[dict[str, tuple[int, int]]]:
    """The rank interval of each alternative in each row of a resource."""
    return [
        {cell.alternative: (cell.rank_low or 0, cell.rank_high or 0) for cell in row.cells}
        for row in document.rows
        if row.resource == resource
    ]


@pytest.fixture(scope="module")
def copies() -> Ranking:
    """A platform, its copy, and a copy with 80 % of a CPU, which disks do not notice."""
    rng = np.random.default_rng(3)
    rows: list[Measurement] = []
    for number in range(20):
        rows += noisy(rng, {"a": 1, "copy": 1, "capped": 1.25}, "cpu.hash", number=number)
        rows += noisy(
            rng, {"a": 1, "copy": 1, "capped": 1}, "disk.io", number=number, operation="read"
        )
    return ranking(rows, RankSettings(margin=0.05))


def overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def test_two_copies_have_overlapping_rank_intervals_in_95_percent_of_rows(copies: Ranking) -> None:
    rows = [*intervals_of(copies, "cpu"), *intervals_of(copies, "read")]
    assert len(rows) == 40
    assert np.mean([overlap(row["a"], row["copy"]) for row in rows]) >= 0.95
    varied = [
        {
            cell.alternative: (cell.consistency_rank_low or 0, cell.consistency_rank_high or 0)
            for cell in row.cells
        }
        for row in copies.rows
    ]
    assert np.mean([overlap(row["a"], row["copy"]) for row in varied]) >= 0.95


def test_a_capped_copy_is_last_where_the_cpu_counts_and_open_elsewhere(copies: Ranking) -> None:
    assert all(row["capped"] == (3, 3) for row in intervals_of(copies, "cpu"))
    everywhere = [set(row.values()) == {(1, 3)} for row in intervals_of(copies, "read")]
    assert np.mean(everywhere) >= 0.95


def test_the_advice_follows(copies: Ranking) -> None:
    advice = {item.domain: item for item in copies.domains}
    cpu = advice["CPU-bound"]
    assert cpu.word == "several"
    assert set(cpu.choice) == {"a", "copy"}
    ratio = cpu.ratios["capped"]
    assert ratio.low is not None
    assert ratio.high is not None
    # Student's t with 7 degrees of freedom over all three pairs; errors of one benchmark add up.
    assert 1.18 < ratio.low < 1.25 < ratio.high < 1.32
    assert advice["read-heavy"].word == "no difference"
    assert "No difference worth having" in advice["read-heavy"].sentence
    assert advice["web"].word == "not measured"
    assert "web" in advice["web"].sentence


def test_one_best_alternative_is_named_with_its_lead() -> None:
    rng = np.random.default_rng(1)
    document = ranking(noisy(rng, {"a": 2, "b": 1, "c": 3}, "mem.stream"))
    advice = next(item for item in document.domains if item.domain == "memory-bound")
    assert (advice.word, advice.choice[0]) == ("best", "b")
    assert advice.certainty == 1
    assert advice.sentence.startswith("b: a, the next one, costs 2")


def test_few_rounds_leave_it_open() -> None:
    rng = np.random.default_rng(1)
    rows = noisy(rng, {"a": 1, "b": 1.02}, "mem.stream")
    short = [
        measurement(item.alternative, "mem.stream", item.line.trial_values[:4]) for item in rows
    ]
    advice: DomainAdvice = next(
        item
        for item in ranking(short, RankSettings(margin=0.01)).domains
        if item.domain == "memory-bound"
    )
    assert advice.word == "undecided"
    assert advice.certainty is not None
    assert "more rounds decide" in advice.sentence


def test_a_gap_has_its_reason_and_no_rank() -> None:
    rng = np.random.default_rng(1)
    whole = noisy(rng, {"a": 1, "b": 2, "c": 2}, "cpu.hash")
    part = noisy(rng, {"a": 1, "b": 2}, "mem.stream")
    document = ranking([*whole, *part], reasons={"c": "needs KVM"})
    cell = document.rows[1].cells[2]
    assert (cell.alternative, cell.rank, cell.estimate) == ("c", None, None)
    assert cell.reason == "needs KVM"
    assert document.overall.benchmarks == ("cpu.hash",), "incomplete rows count in no overall order"
    advice = next(item for item in document.domains if item.domain == "memory-bound")
    assert advice.word == "not measured"
    assert "c has a gap" in advice.sentence


def test_an_alternative_without_common_metrics_is_left_out() -> None:
    rng = np.random.default_rng(1)
    rows = [*noisy(rng, {"a": 1, "b": 2}, "cpu.hash"), measurement("c", "ab", [1, 2, 3, 4])]
    document = ranking(rows)
    assert document.alternatives == ("a", "b")
    assert any("'c' is left out" in text for text in document.excluded)
    assert any("of one alternative only" in text for text in document.excluded)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([measurement("a", "null", [1, 2])], "'a' is the only alternative"),
        ([measurement("a", "null", [1]), measurement("b", "ab", [1])], "no metric in common"),
        ([measurement("a", "null", [1]), measurement("a", "null", [1]), measurement("b", "x", [1])],
         "'a' has two values of null value"),
    ],
)  # fmt: skip
def test_what_cannot_be_ranked_is_one_sentence(rows: list[Measurement], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ranking(rows)


def test_an_unknown_reference_or_weight_is_refused() -> None:
    rows = [measurement(name, "null", [1, 2, 3]) for name in "ab"]
    with pytest.raises(UsageError, match="no alternative 'z'"):
        ranking(rows, RankSettings(reference="z"))
    with pytest.raises(UsageError, match=r"nothing is named 'nul'.*did you mean 'null'"):
        ranking(rows, RankSettings(weights={"nul": 1}))


def test_a_value_of_zero_has_no_ratio() -> None:
    rows = [measurement(name, "null", [0, 2, 3]) for name in "ab"]
    rows += [measurement(name, "ab", [1, 2, 3]) for name in "ab"]
    document = ranking(rows)
    assert [row.benchmark for row in document.rows] == ["ab"]
    assert any("not above zero" in text for text in document.excluded)


def test_values_that_do_not_vary_are_told_apart() -> None:
    rows = [measurement("a", "null", [1.0] * 6), measurement("b", "null", [2.0] * 6)]
    (row,) = ranking(rows).rows
    assert [cell.rank for cell in row.cells] == [1, 2]


def test_exact_copies_share_rank_interval_and_probability() -> None:
    rows = [
        measurement(name, benchmark, [value] * ROUNDS)
        for benchmark in ("cpu.hash", "cpu.compress")
        for name, value in (("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 2.0))
    ]
    cells = ranking(rows).overall.cells
    for cell in cells[:3]:
        assert (cell.rank, cell.rank_low, cell.rank_high) == (1, 1, 3)
        assert cell.first_probability == pytest.approx(1 / 3, abs=0.03)
        assert cell.first_of_weightings == pytest.approx(1 / 3)
    assert (cells[3].rank, cells[3].rank_low, cells[3].rank_high) == (4, 4, 4)
    assert cells[3].first_probability == 0


def test_one_value_each_is_ordered_and_not_tested() -> None:
    rows = [
        measurement("a", "null", [3]),
        measurement("b", "null", [2]),
        measurement("c", "null", [2]),
    ]
    (row,) = ranking(rows).rows
    assert not row.tested
    assert [cell.rank for cell in row.cells] == [3, 1, 1]
    assert {cell.rank_low for cell in row.cells} == {None}


def test_weights_move_the_order_and_the_front_keeps_both() -> None:
    rng = np.random.default_rng(5)
    rows = noisy(rng, {"a": 1, "b": 2, "c": 2.5}, "cpu.hash")
    rows += noisy(rng, {"a": 2, "b": 1, "c": 2.5}, "mem.stream")
    even = ranking(rows).overall
    assert [cell.on_pareto_front for cell in even.cells] == [True, True, False]
    first = {cell.alternative: cell.first_of_weightings for cell in even.cells}
    assert first["a"] == pytest.approx(0.5, abs=0.04)
    assert first["c"] == 0
    memory = ranking(rows, RankSettings(weights={"Memory": 3, "cpu.hash": 1})).overall
    assert memory.weights == {"cpu.hash": 0.25, "mem.stream": 0.75}
    by_name = {cell.alternative: cell for cell in memory.cells}
    assert (by_name["b"].rank_low, by_name["b"].rank_high) == (1, 1)
    assert by_name["b"].first_probability == 1
    assert by_name["b"].ratio is not None
    assert by_name["b"].ratio.value == pytest.approx(2**0.25 * 0.5**0.75, rel=0.03)


def test_a_middle_that_differs_from_neither_end_leaves_the_ends_apart() -> None:
    error = np.full((3, 3), 0.3)
    np.fill_diagonal(error, 0)
    errors = PairErrors(error, np.full((3, 3), 1000.0), np.zeros((3, 3)))
    standing = Standing(("a", "b", "c"), np.array([0.0, 0.5, 1.0]), errors, 0.95)
    assert list(zip(standing.low, standing.high, strict=True)) == [(1, 2), (1, 3), (2, 3)]


def test_the_same_data_give_the_same_document(copies: Ranking) -> None:
    from nephoscope.core.documents import to_json, to_text

    rng = np.random.default_rng(1)
    rows = noisy(rng, {"a": 1, "b": 1.1}, "cpu.hash")
    texts = {to_text(to_json(ranking(rows))) for _ in range(2)}
    assert len(texts) == 1
    assert json.loads(texts.pop())["alternatives"] == ["a", "b"]
