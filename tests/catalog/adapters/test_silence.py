"""Tools that leave out requests without an answer: their reports of a cut link are refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from captured import output, record

from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.catalog.adapters.frame import ToolError

CUT = {
    "sockperf.tcp": (r"(\[Valid Duration\] RunTime)=[0-9.]+", r"\1=0.100"),
    "sockperf.udp": (r"(\[Valid Duration\] RunTime)=[0-9.]+", r"\1=0.100"),
    "wrk": (r"(\nsilent) -?[0-9]+", r"\1 900000"),
}
"""Tool -> what the report of a run of one second has when the last answer came at a tenth of it."""


@pytest.mark.parametrize("benchmark", CUT)
def test_a_silence_that_is_longer_than_any_answer_is_no_measurement(benchmark: str) -> None:
    usual = output(record(benchmark, "usual"))
    assert ADAPTERS[benchmark].parse(usual)
    cut, count = re.subn(*CUT[benchmark], usual.stdout)
    assert count == 1
    with pytest.raises(ToolError, match=r"had no answer for 0\.[0-9]+ s, longer than any answer"):
        ADAPTERS[benchmark].parse(replace(usual, stdout=cut))
