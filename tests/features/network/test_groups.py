"""Instance types whose networks are known to be alike or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.network import groups, section
from nephoscope.report.blocks import Chart
from nephoscope.stats.statistics.values import Refused


def drawn(medians: dict[str, float], n: int = 40) -> dict[str, list[float]]:
    rng = np.random.default_rng(8)
    return {name: list(median * rng.lognormal(0, 0.1, n)) for name, median in medians.items()}


def test_types_are_grouped_by_what_cannot_be_told_apart() -> None:
    rtts = drawn({"m1": 450e3, "c1": 452e3, "m2": 250e3, "m3": 251e3})
    rates = drawn({"m1": 3e8, "c1": 3e8, "m2": 9.4e8, "m3": 9.4e8})
    found = groups.group({"round trip": rtts, "goodput": rates})
    assert found.groups == (("m1", "c1"), ("m2", "m3"))
    assert found.points == 320


def test_one_metric_that_differs_is_enough() -> None:
    rtts = drawn({"a": 450e3, "b": 450e3})
    rates = drawn({"a": 3e8, "b": 9e8})
    assert groups.group({"round trip": rtts}).groups == (("a", "b"),)
    both = groups.group({"round trip": rtts, "goodput": rates})
    assert both.groups == (("a",), ("b",))


def test_types_without_a_common_metric_are_refused() -> None:
    with pytest.raises(Refused, match="The types 'a' and 'b' have no metric in common"):
        groups.group({"round trip": {"a": [1.0] * 4}, "goodput": {"b": [1.0] * 4}})


def test_a_type_between_two_may_belong_to_both() -> None:
    found = groups.group({"round trip": drawn({"a": 400e3, "b": 420e3, "c": 441e3}, 60)})
    assert found.groups == (("a", "b"), ("b", "c"))


def test_every_point_is_drawn() -> None:
    rng = np.random.default_rng(767)
    values = {name: list(rng.lognormal(-1, 1, 100)) for name in "abcdefg"}
    values["g"] += list(rng.lognormal(-1, 1, 67))
    found = groups.group(
        {"round trip": {name: [1e6 * v for v in own] for name, own in values.items()}}
    )
    charts = [one for one in section.groups_blocks(found) if isinstance(one, Chart)]
    assert sum(len(trace["y"]) for trace in charts[0].figure["data"]) == 767
    assert "All 767 values" in charts[0].caption


def test_too_few_types_are_refused() -> None:
    with pytest.raises(Refused, match="1 instance types"):
        groups.group({"round trip": {"a": [1.0]}})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no measurements"),
        ("rtt_ms\n1\n", "the column 'instance_type' is missing"),
        ("instance_type,speed\na,1\n", "unknown column 'speed'"),
        ("instance_type,rtt_ms\na\n", "1 fields under 2 columns"),
        ("instance_type,rtt_ms\na,-1\n", ":2: rtt_ms '-1' is not above 0"),
        ("instance_type,rtt_ms\na,2e15\n", ":2: rtt_ms '2e15' is too large"),
        ("instance_type,rtt_ms\na,nan\n", "is not a number"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "types.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        groups.read([file])
