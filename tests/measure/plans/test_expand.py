from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.core.errors import PlanError
from nephoscope.measure.plans import Plan, expand

from .factory import CATALOG

threads = st.lists(st.integers(0, 64), min_size=1, max_size=5, unique=True)
sizes = st.lists(st.integers(1, 10**6), min_size=1, max_size=4, unique=True)


def plan_of(*entries: dict[str, Any]) -> Plan:
    return Plan.model_validate({"name": "p", "benchmarks": list(entries)})


@settings(deadline=None)
@given(threads, sizes)
def test_factors_are_fully_crossed_the_last_one_fastest(one: list[int], two: list[int]) -> None:
    plan = plan_of({"benchmark": "cpu.work", "factors": {"threads": one, "size_bytes": two}})
    found = expand(plan, CATALOG)
    assert [(s.factors["threads"], s.factors["size_bytes"]) for s in found] == list(
        itertools.product(one, two)
    )
    assert [setting.index for setting in found] == list(range(len(found)))
    assert all(setting.params == setting.factors for setting in found)
    assert found == expand(plan, CATALOG)


def test_parameters_that_stay_the_same_are_no_factors() -> None:
    entry = {"benchmark": "cpu.work", "params": {"threads": 3, "wait_ns": "1us"}, "timeout": "5s"}
    (setting,) = expand(plan_of(entry), CATALOG)
    assert setting.params == {"threads": 3, "wait_ns": 1000}
    assert setting.factors == {}
    assert setting.timeout_s == 5.0


def test_labels_alone_tell_settings_apart_where_each_has_its_own() -> None:
    entries = [
        {"benchmark": "cpu.work", "params": {"label": label, "words": words}}
        for label, words in (("one", ["a"]), ("two", ["b", "1"]), ("two", ["c"]))
    ]
    labelled = expand(plan_of(*entries[:2]), CATALOG)
    assert [setting.factors for setting in labelled] == [{"label": "one"}, {"label": "two"}]
    repeated = expand(plan_of(*entries), CATALOG)
    assert repeated[1].factors == {"label": "two", "words": '["b","1"]'}


@pytest.mark.parametrize("words", ["a b", ["a", 0.1], [True]])
def test_a_list_of_texts_holds_texts_only(words: Any) -> None:
    with pytest.raises(PlanError, match="words must be a list of texts"):
        expand(plan_of({"benchmark": "cpu.work", "params": {"words": words}}), CATALOG)


def test_entries_of_one_benchmark_are_told_apart_by_what_differs() -> None:
    """Else their results would be taken for repetitions of one another."""
    plan = plan_of(
        {"benchmark": "cpu.work", "params": {"threads": 1, "pin": False}},
        {"benchmark": "disk.work"},
        {"benchmark": "cpu.work", "params": {"size_bytes": 8192, "pin": False}},
        {"benchmark": "cpu.work", "params": {"lengths": [1, 2], "pin": False}},
    )
    found = expand(plan, CATALOG)
    assert [setting.factors for setting in found] == [
        {"lengths": "[]", "size_bytes": 4096},
        {},
        {"lengths": "[]", "size_bytes": 8192},
        {"lengths": "[1,2]", "size_bytes": 4096},
    ]
    assert [setting.entry for setting in found] == [0, 1, 2, 3]


def test_the_same_setting_twice_is_refused() -> None:
    plan = plan_of(
        {"benchmark": "cpu.work", "factors": {"threads": [1, 2]}},
        {"benchmark": "cpu.work", "params": {"threads": "2"}},
    )
    with pytest.raises(PlanError, match=r"benchmarks\.1 repeats a setting"):
        expand(plan, CATALOG)


def test_too_many_settings_are_refused_before_they_are_made() -> None:
    factors = {"threads": list(range(60)), "size_bytes": list(range(1, 900))}
    with pytest.raises(PlanError, match="53940 settings"):
        expand(plan_of({"benchmark": "cpu.work", "factors": factors}), CATALOG)
