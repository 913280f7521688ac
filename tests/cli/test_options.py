"""Texts of options into values."""

from __future__ import annotations

from typing import Any

import click
import pytest

from nephoscope.cli.kit import options
from nephoscope.core.errors import UsageError


def value_of(option: Any, *words: str) -> Any:
    """Returns the value that a command with this option gets."""

    command = click.Command("one", callback=lambda value: value, params=[option.made("value")])
    return command.main(list(words), standalone_mode=False)


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60.0), ("90 sec", 90.0), ("1.5 min", 90.0), ("1h", 3600.0)]
)
def test_a_budget_has_a_unit(text: str, seconds: float) -> None:
    assert value_of(options.BUDGET, "--budget", text) == seconds


@pytest.mark.parametrize("text", ["nan", "49%", "99.995%", ""])
def test_what_is_no_confidence_names_the_option(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--confidence"):
        value_of(options.CONFIDENCE, "--confidence", text)


def test_no_budget_leaves_the_plans_own() -> None:
    assert value_of(options.BUDGET) is None


@pytest.mark.parametrize("text", ["soon", "-5s", "0", "5 parsecs", "1e99h", "10ms", "", "nan"])
def test_nonsense_names_the_option(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--budget") as caught:
        value_of(options.BUDGET, "--budget", text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0.5", "--confidence: '0.5' is out of range (between 50 % and 99.99 %)."),
        ("20%", "--confidence: '20%' is out of range (between 50 % and 99.99 %)."),
        ("0.9999", "--confidence: '0.9999' is out of range (between 50 % and 99.99 %)."),
    ],
)
def test_bounds_that_are_excluded_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        value_of(options.CONFIDENCE, "--confidence", text)
    assert caught.value.message == sentence


def test_a_default_is_read_as_a_text_and_shown() -> None:
    assert value_of(options.CONFIDENCE) == 0.95
    assert value_of(options.option("--size", options.SIZE, "Size.", default="4KiB")) == 4096


def test_a_duration_has_the_unit_that_is_asked_for() -> None:
    kind = options.duration("1 ms", "1 min", unit="ns")
    assert value_of(options.option("-d --delay", kind, "Delay."), "-d", "20ms") == 2e7
    with pytest.raises(UsageError, match=r"^--delay: '2min' is out of range \(1 ms to 1 min\)"):
        value_of(options.option("-d --delay", kind, "Delay."), "-d", "2min")


def test_a_checked_text_stays_as_it_was_written() -> None:
    option = options.option(
        "--keep", options.Checked("TIME", options.duration("1 s", "9 d").read), ""
    )
    assert value_of(option, "--keep", "7d") == "7d"
    with pytest.raises(UsageError, match="--keep: 'week' is no duration"):
        value_of(option, "--keep", "week")


def test_sets_are_names_and_values_and_the_last_one_holds() -> None:
    assert options.sets(["a.b=1", "path=x=y", "a.b=2"]) == {"a.b": "2", "path": "x=y"}


@pytest.mark.parametrize("text", ["threads", "=2", ""])
def test_a_set_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="NAME=VALUE"):
        options.sets([text])
