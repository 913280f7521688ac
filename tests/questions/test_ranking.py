"""Questions about which alternative is best."""

from __future__ import annotations

import time

import numpy as np
import pytest
from tests.questions.conftest import Asking

HEAD = "metric,alternative,better,resource,value"


def figures(rows: list[tuple[object, ...]], head: str = HEAD) -> str:
    return "\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n"


def test_which_of_twenty_server_types_is_fastest_by_one_value_each(ask: Asking) -> None:
    """I have one figure for each of 20 server types and 6 benchmarks: which type is the fastest?"""
    rng = np.random.default_rng(1)
    speed = {f"type-{number}": 33 ** (number / 19) for number in range(20)}
    rows = [
        (f"bench-{metric}", name, "higher", "", f"{level * np.exp(rng.normal(0, 0.1)):.5g}")
        for metric in range(6)
        for name, level in speed.items()
    ]
    ask.write("types.csv", figures(rows))
    answer = ask("nephoscope rank types.csv")
    answer.says(
        r"Overall order of values without intervals \(one value each\), by the geometric mean: "
        r"type-1[89], then type-1[89], then"
    )
    answer.never_says("share a rank")
    document = ask("nephoscope rank types.csv --json").json()
    cells = {cell["alternative"]: cell for cell in document["overall"]["cells"]}
    assert sorted(cell["rank"] for cell in cells.values()) == list(range(1, 21))
    assert cells["type-0"]["rank"] >= 19
    assert {cell["rank_low"] for cell in cells.values()} == {None}
    assert document["overall"]["tested"] is False


def test_is_c_as_good_as_a(ask: Asking) -> None:
    """C is 1.30 times slower than A and B in all five metrics, eight runs each: who is first?"""
    rng = np.random.default_rng(2)
    rows = [
        (f"m{metric}", name, "lower", "cpu", f"{100 * level * np.exp(rng.normal(0, 0.01)):.5g}")
        for metric in range(5)
        for name, level in (("A", 1.0), ("B", 1.0), ("C", 1.3))
        for _ in range(8)
    ]
    ask.write("v.csv", figures(rows))
    answer = ask("nephoscope rank v.csv")
    answer.says(r"Rank 1 over 5 benchmarks is open between [AB] and [AB]\. [AB] has the lowest")
    document = ask("nephoscope rank v.csv --json").json()
    a, b, c = document["overall"]["cells"]
    assert [(x["rank_low"], x["rank_high"]) for x in (a, b, c)] == [(1, 2), (1, 2), (3, 3)]
    assert c["first_probability"] == 0
    assert c["rank"] == 3
    assert c["ratio"]["low"] > 1.2
    advice = document["domains"][0]
    assert "C" not in advice["choice"]


def test_which_of_200_types_are_surely_among_the_best_three(ask: Asking) -> None:
    """I measured 200 types eight times: which are the three best, and how sure is that?"""
    rng = np.random.default_rng(3)
    rows = [
        (metric, f"t{number}", "lower", "", f"{level * np.exp(rng.normal(0, 0.02)):.5g}")
        for metric in ("latency", "time")
        for number, level in enumerate([1.0, 1.2, 1.4, *np.linspace(2, 10, 197)])
        for _ in range(8)
    ]
    ask.write("v.csv", figures(rows))
    answer = ask("nephoscope rank v.csv --top 3")
    answer.says(r"t0 is first over 2 benchmarks: t1, the next one, costs 1\.[12]\d* times as much")
    answer.says(r"180 more: --all prints them, --json has them")
    answer.says(r"t2 3 3 1\.\d+ \[1\.\d+, 1\.\d+\] 0 % 100 %")
    every = ask("nephoscope rank v.csv --all")
    every.says(r"t199 \d+ ")


@pytest.mark.slow
def test_can_it_rank_a_whole_market(ask: Asking) -> None:
    """I have 10,000 offers with one figure in each of six benchmarks: rank them, please."""
    rng = np.random.default_rng(4)
    levels = rng.normal(0, 0.5, 10_000)
    rows = [
        (f"m{metric}", f"offer-{number}", f"{value:.5g}")
        for metric in range(6)
        for number, value in enumerate(np.exp(levels + rng.normal(0, 0.1, 10_000)))
    ]
    ask.write("v.csv", figures(rows, "metric,alternative,value"))
    began = time.process_time()
    answer = ask("nephoscope rank v.csv -o market.html")
    assert time.process_time() - began < 10
    answer.says(r"then 9,995 more")
    answer.says(r"`better` is not stated for m0, m1, .*: lower values count as better")
    assert (ask.folder / "market.html").stat().st_size < 10_000_000
    best = f"offer-{int(np.argmin(levels))}"
    assert best in answer.out


def test_types_with_gaps_have_no_overall_rank_and_are_named(ask: Asking) -> None:
    """Some types lack a benchmark: does the ranking still work, and who is left out?"""
    rows = [
        (metric, f"t{number}", "higher", "cpu", number + 1)
        for metric in ("a", "b", "c")
        for number in range(30)
        if (metric, number) != ("b", 29) and (metric != "c" or number < 10)
    ]
    ask.write("v.csv", figures(rows))
    answer = ask("nephoscope rank v.csv")
    answer.says(r"No overall rank: 1 alternative of 30 without a value of every benchmark .*: t29")
    answer.says(r"Not in the overall order: c; too many gaps")
    cells = ask("nephoscope rank v.csv --json").json()["overall"]["cells"]
    assert cells[29]["rank"] is None
    assert cells[28]["rank"] == 1
