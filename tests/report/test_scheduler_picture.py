"""The scheduler's picture: strips, distributions and tables of schedulers with known gaps."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from nephoscope.features.scheduler import charts as scheduler_charts
from nephoscope.features.scheduler.inference.verdict import Scheduler, of_kind
from nephoscope.features.scheduler.section import scheduler_blocks
from nephoscope.report import html_output, markdown_output, terminal_output
from nephoscope.report.blocks import Chart, Section, Table
from report.schedulers import MS, WINDOW_NS, cap, reservation, unclear

EVERY = [reservation(), cap(), unclear()]


def charts(schedulers: list[Scheduler]) -> list[Chart]:
    return [block for block in scheduler_blocks(schedulers) if isinstance(block, Chart)]


def page(schedulers: list[Scheduler]) -> list[Section]:
    return [Section("scheduling", "CPU scheduling", scheduler_blocks(schedulers))]


def test_runs_waits_and_periods_are_those_that_were_made() -> None:
    found = scheduler_charts.lengths(of_kind(reservation().windows, "one"))
    assert set(found["run"]) == {30 * MS}  # interrupts do not cut a run
    assert set(found["wait"]) == {10 * MS}
    assert set(found["period"]) == {40 * MS}
    # Of n gaps there are n - 1 whole runs; the cut ones at both ends do not count.
    assert len(found["run"]) == len(found["period"]) == len(found["wait"]) - 3


def test_the_strip_shows_every_look_and_where_the_cpu_was_gone() -> None:
    chart = scheduler_charts.strip(cap(), "strip")
    assert chart is not None
    ticks = chart.figure["layout"]["yaxis"]["ticktext"]
    assert ticks == ["one CPU busy: CPU 0", "all CPUs busy: CPU 0", "all CPUs busy: CPU 1"]
    bars, *gaps = chart.figure["data"]
    assert bars["name"] == "running"
    assert [trace["name"] for trace in gaps] == ["gap: unexplained"]
    # Eight periods of 240 ms are more than the window of 1.2 s: all of it is shown.
    ends = [x for x in bars["x"] if x is not None]
    assert (min(ends), max(ends)) == (0, WINDOW_NS)
    had = sum(
        stop - start
        for start, stop, place in zip(bars["x"][::3], bars["x"][1::3], bars["y"][::3], strict=True)
        if place == 1
    )
    look = sorted(of_kind(cap().windows, "all"), key=lambda look: look.obtained_cpus)[1]
    assert had / WINDOW_NS == pytest.approx(look.loops[0].share)


def test_the_strip_in_text_has_the_same_share() -> None:
    chart = scheduler_charts.strip(reservation(), "strip")
    assert chart is not None
    assert chart.brief is not None
    text = str(chart.brief.rows[0][2])
    assert len(text) == 48
    full = sum("·▁▂▃▄▅▆▇█".index(char) / 8 for char in text) / len(text)
    # Eight whole periods; each of the 48 steps is rounded to an eighth.
    assert full == pytest.approx(0.75, abs=0.02)


def test_one_target_has_its_fit_marked_in_its_distribution() -> None:
    (chart,) = scheduler_charts.distributions([reservation()])
    names = [trace["name"] for trace in chart.figure["data"]]
    assert names[:3] == ["running, one CPU busy", "waiting, one CPU busy", "period, one CPU busy"]
    marks = [note["text"] for note in chart.figure["layout"]["annotations"]]
    assert marks == ["rest 10.0 ms", "slice 30.0 ms", "period 40.0 ms"]
    row = {row[0]: row for row in chart.table.rows}["running, one CPU busy"]
    assert row[2:] == ("30.0 ms",) * 5


def test_a_slice_of_the_whole_machine_is_no_run_of_one_cpu() -> None:
    (chart,) = scheduler_charts.distributions([cap()])
    marks = [note["text"] for note in chart.figure["layout"]["annotations"]]
    assert marks == ["period 240 ms"]


def test_several_targets_share_a_chart_of_each_length() -> None:
    found = scheduler_charts.distributions(EVERY)
    assert [chart.id for chart in found] == [
        "scheduler-run",
        "scheduler-wait",
        "scheduler-period",
    ]
    for chart in found:
        assert [trace["name"] for trace in chart.figure["data"]] == ["sedf", "credit"]


def test_verdict_fit_evidence_and_contradiction_are_in_every_form() -> None:
    parts = page([reservation()])
    texts = {
        "terminal": terminal_output.render("t", parts, colour=False, width=79),
        "markdown": markdown_output.render("t", parts),
        "page": html_output.render("t", "", parts),
    }
    for form, text in texts.items():
        flat = " ".join(text.split())
        for told in (
            "Reservation per CPU: each CPU has 30.0 ms in 40.0 ms",
            "slice per period",
            "Steal rose by 3 %",
            "Gaps are exact",
            "behaviour after sleeping",
        ):
            assert told in flat, (form, told)
    assert all(len(line) <= 79 for line in texts["terminal"].splitlines())
    assert "█" in texts["terminal"]


def test_several_targets_begin_with_a_table_of_verdicts() -> None:
    table = next(block for block in scheduler_blocks(EVERY) if isinstance(block, Table))
    assert [row[:2] for row in table.rows] == [
        ("sedf", "reservation per CPU"),
        ("credit", "cap per machine"),
        ("hidden", "unclear"),
    ]
    assert table.rows[2][2:] == ("–", "–", "–")


def test_what_was_not_seen_is_said_with_the_next_step() -> None:
    text = terminal_output.render("t", page([unclear()]), colour=False, width=79)
    assert "Not observed: all CPUs busy" in text
    assert "Next step: Run `nephoscope scheduler`" in text
    assert charts([unclear()]) == []


def test_ids_are_unique_and_figures_are_plain_json() -> None:
    found = charts(EVERY)
    assert len({chart.id for chart in found}) == len(found)
    for chart in found:
        json.dumps(chart.figure, allow_nan=False)


def test_no_scheduler_no_blocks() -> None:
    assert scheduler_blocks([]) == []


def test_names_of_targets_cannot_run_in_the_page() -> None:
    bad = reservation("<script>alert(1)</script>")
    assert "<script>alert(1)" not in html_output.render("t", "", page([bad]))


def test_one_target_under_two_conditions_is_told_apart() -> None:
    alone, beside = (
        replace(reservation(), conditions={"loads": name}) for name in ("none", "memory")
    )
    table = next(block for block in scheduler_blocks([alone, beside]) if isinstance(block, Table))
    assert [row[0] for row in table.rows] == ["sedf, loads none", "sedf, memory"]
    found = charts([alone, beside])
    assert len({chart.id for chart in found}) == len(found)
