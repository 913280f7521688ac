"""The page of platforms: every figure with its interval, every gap with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.features.platforms.made import MEANS_NS, report

from nephoscope.features.platforms.boot_chart import chart
from nephoscope.features.platforms.section import section
from nephoscope.report import html_output, markdown_output, terminal_output
from nephoscope.report.blocks import Chart


def text_of(**changes: object) -> str:
    drawn = section(replace(report(), **changes))  # type: ignore[arg-type]
    return " ".join(terminal_output.render("Platforms", [drawn], colour=False, width=200).split())


def test_the_page_states_boot_memory_and_density() -> None:
    text = text_of()
    assert "uml is reachable after 1.9" in text
    assert "carries 3 loaded guests until the p99 doubles" in text
    assert "Same-page merging (KSM) is off." in text
    assert "qemu: It needs qemu-img." in text
    assert "apt-get install qemu-utils" in text
    assert "bare – (it has no process of its own)" in text
    assert "2.60 [2.20, 3.10] (n = 6)" in text


def test_a_p99_that_did_not_double_is_no_limit() -> None:
    found = report()
    guests = found.densities[0].guests
    assert guests is not None
    open_end = replace(guests, high=None, note="The p99 did not double.")
    text = text_of(densities=(replace(found.densities[0], guests=open_end),))
    assert "carries 3 loaded guests without a doubled p99, and possibly more" in text
    assert "≥ 3" in text


@pytest.mark.parametrize(("merging", "words"), [(True, "is on"), (None, "does not say")])
def test_merged_pages_are_stated(merging: bool | None, words: str) -> None:
    assert words in text_of(same_page_merging=merging)


def test_the_timeline_stacks_what_each_platform_has() -> None:
    booted = report().platforms
    drawn = chart(booted)
    traces = {trace["name"]: trace for trace in drawn.figure["data"]}
    assert drawn.figure["layout"]["barmode"] == "stack"
    assert traces["until the kernel"]["y"] == [2]
    assert traces["until init"]["y"] == [1, 2]
    ends = [0.0] * len(booted)
    for trace in traces.values():
        for place, value in zip(trace["y"], trace["x"], strict=True):
            ends[place] += value
        assert len(trace["error_x"]["array"]) == len(trace["y"])
    truth = [MEANS_NS[one.name]["reachable"] for one in booted]
    assert ends == pytest.approx(truth, rel=0.05)


def test_every_table_is_as_wide_as_its_head() -> None:
    drawn = section(report())
    charts = [block for block in drawn.blocks if isinstance(block, Chart)]
    assert {one.id for one in charts} == {"boot-timeline", "platform-density"}
    for one in charts:
        assert all(len(row) == len(one.table.columns) for row in one.table.rows)


def test_the_page_is_rendered_in_every_form() -> None:
    drawn = section(report())
    assert "Boot timeline" in html_output.render("Platforms", "seed 1", [drawn])
    assert "until init" in markdown_output.render("Platforms", [drawn])


def test_nothing_booted_is_said() -> None:
    found = report()
    empty = [replace(one, marks={}, segments={}, memory=None) for one in found.platforms]
    assert "No platform booted." in text_of(platforms=tuple(empty), densities=())
