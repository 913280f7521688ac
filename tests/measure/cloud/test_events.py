"""What happened between two listings of the same machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nephoscope.measure.cloud.events import events_between, reboots_between
from nephoscope.measure.cloud.model import Kind, Machine, ResourceState, Tags

MACHINE = Machine(
    Kind.MACHINE,
    "i-1",
    "east",
    Tags("run1", "tests", 2_000_000_000),
    type="small",
    host="host-1",
    address="192.0.2.1",
)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            {"market": "spot"},
            {"market": "spot", "state": ResourceState.LEAVING, "problem": "no-capacity"},
            "a is interrupted by the cloud (no-capacity).",
        ),
        ({}, {"state": ResourceState.GONE}, "a is ended."),
        ({}, None, "a is ended."),
        ({"market": "spot"}, None, "a is interrupted by the cloud."),
        ({}, {"state": ResourceState.STOPPED}, "a is stopped."),
        ({"state": ResourceState.STOPPED}, {}, "a is started again."),
        ({}, {"host": "host-2"}, "a is moved to another host (host-1, now host-2)."),
        ({}, {"type": "large"}, "a is of another type (small, now large)."),
        ({}, {"address": "192.0.2.9"}, "a is at another address (192.0.2.1, now 192.0.2.9)."),
        ({}, {}, ""),
        ({"host": ""}, {"host": "host-1"}, ""),
        ({"state": ResourceState.GONE}, None, ""),
    ],
)
def test_each_event_is_one_sentence(
    before: dict[str, Any], after: dict[str, Any] | None, sentence: str
) -> None:
    old = {"a": replace(MACHINE, **before)}
    new = {} if after is None else {"a": replace(MACHINE, **after)}
    assert " ".join(map(str, events_between(old, new))) == sentence


def test_a_machine_that_says_another_word_was_rebooted() -> None:
    happened = reboots_between({"a": "1", "b": "1", "d": "1"}, {"a": "1", "b": "2", "c": "3"})
    assert [str(event) for event in happened] == ["b is up again after a reboot."]
