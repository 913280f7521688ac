"""Names of percentiles, labels and seeds."""

import pytest

from nephoscope.core.naming import line_name
from nephoscope.results import names


@pytest.mark.parametrize(
    ("metric", "unit", "quantile", "expected"),
    [
        ("disk_latency_ns", "ns", 0.5, "disk_latency_p50_ns"),
        ("disk_latency_ns", "ns", 0.9, "disk_latency_p90_ns"),
        ("disk_latency_ns", "ns", 0.99, "disk_latency_p99_ns"),
        ("disk_latency_ns", "ns", 0.999, "disk_latency_p999_ns"),
        ("depth", "none", 0.99, "depth_p99"),
        ("rate_per_s", "per_s", 0.05, "rate_p05_per_s"),
    ],
)
def test_the_percentile_stands_before_the_unit(
    metric: str, unit: str, quantile: float, expected: str
) -> None:
    assert names.percentile_metric(metric, unit, quantile) == expected


def test_a_label_lists_factors_in_the_order_of_their_names() -> None:
    assert line_name("disk.io", "x_ns", {"op": "read", "depth": 32}) == (
        "disk.io x (depth 32, read)"
    )
    assert line_name("disk.io", "x_ns", {}) == "disk.io x"


def test_seeds_depend_on_names_and_nothing_else() -> None:
    assert names.seed_of("a", "b") == names.seed_of("a", "b")
    assert names.seed_of("a", "b") != names.seed_of("ab", "")
