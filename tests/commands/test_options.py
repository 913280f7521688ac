"""Texts of options into values."""

import pytest

from nephoscope.commands import options
from nephoscope.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60.0), ("90", 90.0), ("1.5 min", 90.0), ("1h", 3600.0)]
)
def test_a_budget_has_a_unit_or_is_seconds(text: str, seconds: float) -> None:
    assert options.budget_s(text) == seconds


@pytest.mark.parametrize("text", ["nan", "49%", "99.995%", ""])
def test_what_is_no_confidence_names_the_option(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--confidence"):
        options.confidence(text)


def test_no_budget_leaves_the_plans_own() -> None:
    assert options.budget_s(None) is None


@pytest.mark.parametrize("text", ["soon", "-5s", "0", "5 parsecs", "1e99h", "10ms", "", "nan"])
def test_nonsense_names_the_option(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--budget") as caught:
        options.budget_s(text)
    assert caught.value.hint


def test_sets_are_names_and_values_and_the_last_one_holds() -> None:
    assert options.sets(["a.b=1", "path=x=y", "a.b=2"]) == {"a.b": "2", "path": "x=y"}


@pytest.mark.parametrize("text", ["threads", "=2", ""])
def test_a_set_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="NAME=VALUE"):
        options.sets([text])
