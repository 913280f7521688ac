"""From the command to the process of a trial: few calls, which a reader can follow."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import pytest

import nephoscope
from nephoscope.cli.commands.bench import bench
from nephoscope.command_line import main
from nephoscope.measure.targets import local
from nephoscope.measure.targets.channels.child import Child, start_child

SOURCES = str(Path(nephoscope.__file__).parent)
CALLS = 8
"""vegeta has 4 and hyperfine 6; ours passes two layers more: the targets and their channels."""


def calls_since_command(frame: FrameType | None) -> list[str]:
    """This program's functions between the callback of the command and a frame, outermost first.

    Nothing on the way may begin a task, whose stack would not show who began it.
    """
    calls: list[str] = []
    while frame is not None:
        if frame.f_code is bench.callback.__wrapped__.__code__:  # type: ignore[union-attr]
            return calls[::-1]
        if frame.f_code.co_filename.startswith(SOURCES):
            calls.append(frame.f_code.co_qualname)
        frame = frame.f_back
    raise AssertionError(f"The command is not below {calls[::-1]}.")


def test_a_trial_is_at_most_eight_calls_below_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journeys: list[list[str]] = []

    def start(command: Sequence[str], directory: str | None = None) -> Child:
        if "null" in command:
            journeys.append(calls_since_command(sys._getframe(1)))
        return start_child(command, directory)

    monkeypatch.setattr(local, "start_child", start)
    words = ["bench", "null", "--repetitions", "2", "--store", str(tmp_path)]
    assert main(words) == 0
    assert len(journeys) >= 2
    for calls in journeys:
        assert len(calls) <= CALLS, calls
        assert calls[0] == "executed"
        assert calls[-1] == "LocalChannel.start"
