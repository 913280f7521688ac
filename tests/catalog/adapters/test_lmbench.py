"""lmbench takes its settings from the environment, and its report from standard error."""

from __future__ import annotations

import pytest

from nephoscope.catalog.adapters import ADAPTERS, Output, ToolError
from nephoscope.core.errors import UsageError

LMBENCH = [name for name in ADAPTERS if name.startswith("lmbench.")]


@pytest.mark.parametrize("name", LMBENCH)
def test_interval_and_placement_are_variables(name: str) -> None:
    command = ADAPTERS[name].build_command({"interval_ns": 5_000_000, "placement": "one-cpu"})
    assert command.environment == {"ENOUGH": "5000", "LMBENCH_SCHED": "SINGLE"}
    assert command.job("tool")["environment"] == dict(command.environment)


def test_an_interval_is_in_whole_microseconds() -> None:
    with pytest.raises(UsageError, match="whole number of microseconds"):
        ADAPTERS["lmbench.pipe"].build_command({"interval_ns": 1_000_500})


def test_a_figure_that_is_not_printed_is_an_error_in_the_tool_s_words() -> None:
    said = Output("", "lat_syscall: /dev/zero: Permission denied\n")
    with pytest.raises(ToolError, match="Permission denied"):
        ADAPTERS["lmbench.syscall"].parse(said)


def test_a_switch_is_of_the_ring_and_not_of_its_heading() -> None:
    said = Output("", '\n"size=16k ovr=5.20\n8 19.08\n')
    values = {sample.metric: sample.value for sample in ADAPTERS["lmbench.context"].parse(said)}
    assert values == pytest.approx({"switch_ns": 19_080.0, "overhead_ns": 5_200.0})
