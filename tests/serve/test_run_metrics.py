"""The metrics of a run as its page shows them: the report's names, in the report's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.made import metric, result
from tests.results.made import NULL_PLAN, make_run
from tests.serve.made import call, settings

from nephoscope.core import documents
from nephoscope.core.errors import StoreError
from nephoscope.core.model import MetricResult, Sample, Setting
from nephoscope.report import report_files, summary
from nephoscope.results import analyse_run
from nephoscope.serve import run_metrics
from nephoscope.serve.app import make_app

KIB, MIB = 1024, 1024 * 1024


def bandwidth(value: float, threads: int) -> MetricResult:
    factors = {"kernel": "triad", "type": "double", "threads": threads}
    return metric("mem.stream", "stream_bytes_per_s", value, "bytes_per_s", factors=factors)


def made() -> list[MetricResult]:
    """Lines of four benchmarks, in no order."""
    return [
        metric("sys.fingerprint", "clock_read_ns", 17.0, "ns"),
        *(
            metric(
                "mem.cache",
                "cache_bytes_per_s",
                1e9,
                "bytes_per_s",
                factors={"vector_bytes": length},
            )
            for length in (128 * MIB, 16 * KIB, 1 * MIB, 512)
        ),
        bandwidth(1.1e10, 1),
        bandwidth(1.9e10, 2),
        metric("cpu.pi", "pi_digits_per_s", 7e4, "per_s", factors={"threads": 1}),
    ]


def test_cards_are_the_headline_results_of_the_report() -> None:
    lines = made()
    page = run_metrics.of_metrics("r1", lines)
    cards = [(card.title, card.setting, card.value, card.interval) for card in page.headlines]
    tiles = summary.headline_tiles(
        replace(result(), metrics=tuple(lines), parts={}), run_metrics.MAX_HEADLINES
    )
    assert [(tile.label, tile.setting, tile.value, tile.interval) for tile in tiles] == cards
    assert ("Memory bandwidth, triad", "2 threads, double") in [card[:2] for card in cards]


def test_groups_are_those_of_the_report_and_sizes_ascend() -> None:
    page = run_metrics.of_metrics("r1", made())
    assert [group.title for group in page.groups] == ["CPU", "Memory", "System"]
    cache, stream = page.groups[1].tables
    assert page.groups[1].count == 6
    assert [line.setting for line in cache.lines] == [
        "vector 512 B",
        "vector 16 KiB",
        "vector 1 MiB",
        "vector 128 MiB",
    ]
    assert (stream.title, stream.setting) == ("mem.stream throughput", "triad, double")
    assert [line.setting for line in stream.lines] == ["1 thread", "2 threads"]
    assert stream.lines[1].factors == '{"kernel":"triad","threads":2,"type":"double"}'
    assert "bandwidth" in cache.about.lower()


def test_metrics_are_read_from_a_document_as_they_were() -> None:
    lines = made()
    stored = documents.to_json({"metrics": lines})
    again = run_metrics.of_metrics("r1", run_metrics.read_metrics("r1", stored))
    assert again == run_metrics.of_metrics("r1", lines)


@pytest.mark.parametrize("damage", [{"estimate": 3}, {"better": "maybe"}, {"consistency": {}}])
def test_a_result_of_another_version_is_one_sentence(damage: dict[str, Any]) -> None:
    line = {**documents.to_json(made()[0]), **damage}
    with pytest.raises(StoreError, match="r1: its result is of another version"):
        run_metrics.read_metrics("r1", {"metrics": [line]})


def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0 + number % 3)]


def test_the_route_has_the_metrics_of_the_stored_result(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, sampler)
    analysed = analyse_run.build(run)
    report_files.write(analysed, run.report_path)
    reply = call(make_app(settings(tmp_path)), f"/api/v1/runs/{run.id}/metrics")
    assert reply.status == 200
    expected = run_metrics.of_metrics(run.id, analysed.metrics)
    assert reply.json == documents.versioned(expected)
