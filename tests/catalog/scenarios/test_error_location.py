"""From a line of the JSON to the part of the scenario, on documents drawn at random."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nephoscope.catalog.scenarios.error_location import as_text, loc_at, place_in

KEYS = st.text('abc{}[]":,. é', min_size=1, max_size=6)
LEAVES = st.one_of(st.integers(), st.booleans(), st.none(), st.text('x{["}]\n', max_size=4))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def lines_of(value: Any, loc: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of each line of a value's JSON with one item a line, in order."""
    if isinstance(value, dict) and value:
        inner = [line for key, item in value.items() for line in lines_of(item, (*loc, key))]
        return [loc, *inner, loc]
    if isinstance(value, list) and value:
        inner = [line for n, item in enumerate(value) for line in lines_of(item, (*loc, n))]
        return [loc, *inner, loc]
    return [loc]


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_every_line_is_told(document: dict[str, Any]) -> None:
    text = as_text(document)
    wanted = lines_of(document)
    assert len(text.split("\n")) == len(wanted)
    assert [loc_at(text, number) for number in range(1, len(wanted) + 1)] == wanted


def test_a_message_loses_its_line_and_gains_a_place() -> None:
    values = {"sites": {"eu": {"hosts": 2, "hots": 3}}}
    text = as_text(values)
    line = next(n for n, words in enumerate(text.split("\n"), 1) if "hots" in words)
    message, loc = place_in(f"unknown field `hots` at line {line} column 9.", text, values)
    assert (message, loc) == ("unknown field `hots`.", ("sites", "eu", "hots"))


def test_a_dotted_path_at_the_beginning_is_a_place() -> None:
    values = {"types": {"E1": {"share": 2}}}
    message = "types.E1.share is 2, which is too much."
    assert place_in(message, "", values) == (message, ("types", "E1", "share"))
    assert place_in("The site is down.", "", values)[1] == ()
