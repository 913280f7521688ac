"""PostMark's captures against figures that were read from them by eye, and its commands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from captured import output, record

from nephoscope.catalog.adapters import ADAPTERS, Output, ToolError
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample

POSTMARK = ADAPTERS["postmark"]


def values(samples: list[Sample]) -> dict[tuple[str, Any], float]:
    return {(one.metric, one.factors.get("phase")): one.value for one in samples}


def study() -> Output:
    return output(record("postmark", "study"))


def test_the_study_s_numbers_come_out() -> None:
    found = values(POSTMARK.parse(study()))
    elapsed = {phase: found["elapsed_ns", phase] for phase in ("create", "transactions", "delete")}
    assert found["elapsed_ns", "all"] == sum(elapsed.values())
    assert found["reported_elapsed_ns", None] == 13e9
    assert found["reported_transactions_per_s", None] == 1875
    assert found["transactions_per_s", None] * elapsed["transactions"] / 1e9 == pytest.approx(15000)
    for metric, phase, count in (
        ("files_created_per_s", "create", 3000),
        ("files_created_per_s", "transactions", 7505),
        ("files_appended_per_s", "transactions", 7504),
        ("files_deleted_per_s", "transactions", 7495),
        ("files_deleted_per_s", "delete", 3010),
    ):
        assert found[metric, phase] * elapsed[phase] / 1e9 == pytest.approx(count), metric
    moved = {"read": 93.38, "written": 133.40}
    for word, mebibytes in moved.items():
        rate = found[f"{word}_bytes_per_s", "all"]
        assert rate * found["elapsed_ns", "all"] / 1e9 == pytest.approx(mebibytes * 2**20)


def test_whole_seconds_are_not_the_measure() -> None:
    """A run of some milliseconds is one second to the tool; its words came earlier."""
    found = values(POSTMARK.parse(output(record("postmark", "small"))))
    assert found["reported_elapsed_ns", None] == 1e9
    assert found["elapsed_ns", "all"] < 0.1e9
    assert found["transactions_per_s", None] > found["reported_transactions_per_s", None]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no-folder", "it met errors. It printed: 'Error: cannot open '/no/such/folder/1'"),
        ("bad-size", "no file size low or high bounds specified"),
        ("crash", "it was ended by signal 8"),
        ("out-of-files", "it ran out of files"),
        ("not-asked", "it did not understand"),
        ("terse", "its report lacks"),
        ("version", "its report lacks"),
    ],
)
def test_failures_carry_the_tool_s_words(name: str, words: str) -> None:
    with pytest.raises(ToolError) as caught:
        POSTMARK.parse(output(record("postmark", name)))
    assert words in str(caught.value)


def test_a_report_that_contradicts_itself_is_refused() -> None:
    said = study()
    text = said.stdout.replace("Creation alone: 3000 files", "Creation alone: 3001 files")
    assert text != said.stdout
    with pytest.raises(ToolError, match="contradicts itself"):
        POSTMARK.parse(replace(said, stdout=text))


def test_a_report_that_contradicts_the_clock_is_refused() -> None:
    said = study()
    later = tuple((at_ns * 3, there) for at_ns, there in said.marks)
    with pytest.raises(ToolError, match="says 13 s, and 39"):
        POSTMARK.parse(replace(said, marks=later))


def test_a_phase_that_nobody_saw_is_refused() -> None:
    said = study()
    with pytest.raises(ToolError, match="nobody saw"):
        POSTMARK.parse(replace(said, marks=said.marks[:3]))
    with pytest.raises(ToolError, match="too short to be seen"):
        POSTMARK.parse(replace(said, marks=said.marks[-1:]))


def test_the_version_is_in_its_greeting() -> None:
    assert POSTMARK.version(output(record("postmark", "version"))) == "1.51"


def test_parameters_become_commands() -> None:
    command = POSTMARK.build_command(
        {"files": 7, "transactions": 20, "directories": 0, "buffering": True, "directory": "/x"}
    )
    lines = command.input.splitlines()
    assert lines[0] == "set location ."
    assert "set number 7" in lines
    assert "set size 1024 20480" in lines
    assert "set buffering true" in lines
    # It refuses a 0, which is what it has by itself.
    assert not any(line.startswith("set subdirectories") for line in lines)
    assert lines[-2:] == ["run", "quit"]
    assert command.directory == "/x"
    assert command.needs_bytes == 2 * 7 * 20480


def test_sizes_have_to_be_a_range() -> None:
    with pytest.raises(UsageError, match="must be less than"):
        POSTMARK.build_command({"min_bytes": 500, "max_bytes": 500})
