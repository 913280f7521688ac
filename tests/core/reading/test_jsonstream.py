"""JSON values among other lines: found whole, with their lines, in bounded time."""

from __future__ import annotations

import time

import pytest

from nephoscope.core.reading import jsonstream
from nephoscope.core.reading.jsonstream import Repeated


def test_values_with_lines_around_them() -> None:
    found = jsonstream.documents('warning\n{"a": 1}\n{"b":\n 2}\nend\n[3]\n')
    assert found.values == [(2, {"a": 1}), (3, {"b": 2}), (6, [3])]
    assert (found.other_lines, found.problems, found.cut_off_at) == (2, [], None)


def test_a_broken_value_does_not_hide_the_next() -> None:
    found = jsonstream.documents('{"a": 1}\n{"b": x}\n{"c": 3}\n')
    assert [value for _, value in found.values] == [{"a": 1}, {"c": 3}]
    assert found.problems == [(2, "this is no JSON (expecting value)")]


@pytest.mark.parametrize(
    "cut", ['{"a": [1, 2', '{"a": "bc', '{"a": tr', '{"a": -', '{"a"', "{", '{"a": "\\u12']
)
def test_a_value_that_ends_in_the_middle(cut: str) -> None:
    found = jsonstream.documents('{"x": 1}\n' + cut)
    assert (found.cut_off_at, found.problems) == (2, [])
    assert found.values == [(1, {"x": 1})]


def test_keys_that_are_there_twice() -> None:
    found = jsonstream.documents('{"a": 1, "a": 1, "b": 1, "b": 2, "c": NaN, "c": NaN}')
    value = found.values[0][1]
    assert value["a"] == 1
    assert value["b"] == Repeated((1, 2))
    assert str(value["b"]) == "1, 2"
    assert not isinstance(value["c"], Repeated)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "[\n" * 100_000,
        '{"a":\n' * 100_000,
        '{"a": 1, x\n' * 50_000,
        '{"a": "' + "x\n{" * 100_000,
        '{"' + "\\ud800" + '": 1}\n' * 20_000,
        '{"a": ' + "9" * 100_000 + "}\n" * 10,
        "x\n" * 200_000,
    ],
)
def test_time_is_bounded(text: str) -> None:
    began = time.process_time()
    jsonstream.documents(text)
    assert time.process_time() - began < 5
