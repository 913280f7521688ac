"""Were two runs measured alike?"""

from __future__ import annotations

from typing import Any

from tests.store.factory import trial_record

from nephoscope.core.model import TrialRecord
from nephoscope.features.comparison import settings


def record(benchmark: str, params: dict[str, Any], factors: dict[str, Any]) -> TrialRecord:
    return trial_record(1, benchmark=benchmark, params=params, factors=factors)


def test_what_the_plan_varied_is_no_difference_but_the_rest_is() -> None:
    one = [
        record("cpu.pi", {"threads": 1, "digits": 9}, {"threads": 1}),
        record("mem.stream", {"cache_multiple": 4}, {}),
        record("net.loopback", {}, {}),
    ]
    two = [
        record("cpu.pi", {"threads": 2, "digits": 9}, {"threads": 2}),
        record("mem.stream", {"cache_multiple": 2}, {}),
        record("disk.sync", {}, {}),
    ]
    otherwise = settings.measured_otherwise(settings.settings_of(one), settings.settings_of(two))
    assert otherwise == {"mem.stream"}
    assert "mem.stream" in settings.parameter_warning(otherwise)
