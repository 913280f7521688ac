"""What stands open on a page, what is folded, and what is too small for a chart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.results.isolated import Truth, make

from nephoscope.core.model import RunResult
from nephoscope.report import feature_sections, figures, html_output, summary
from nephoscope.report.blocks import Chart, Heading, Section, Sentence, Table, Tiles
from nephoscope.report.columns import table, text
from nephoscope.report.feature_sections import build_all
from nephoscope.results import analyse_run
from report import made

FIRST = {"summary", "findings", "stability", "results"}
APPENDIX = {"machine", "execution", "method", "excluded_trials"}


def test_details_and_the_appendix_are_folded() -> None:
    folded = {section.id: section.folded for section in build_all(made.result())}
    assert not any(folded[name] for name in FIRST & folded.keys())
    assert all(folded[name] for name in APPENDIX & folded.keys())
    assert folded["cache-ladder"]


def test_few_sections_of_benchmarks_stay_open() -> None:
    whole = made.result()
    only = tuple(line for line in whole.metrics if line.benchmark.startswith("disk."))
    folded = {section.id: section.folded for section in build_all(replace(whole, metrics=only))}
    assert not folded["disk"]


def test_single_benchmarks_are_folded_below_an_answer(tmp_path: Path) -> None:
    result = analyse_run.build(make(tmp_path, Truth()))
    folded = {section.id: section.folded for section in build_all(result)}
    assert not folded["isolation"]
    assert folded["other"]


def test_the_page_shows_as_many_headline_results_as_the_terminal() -> None:
    result: RunResult = made.result()
    (tiles,) = [block for block in summary.build(result).blocks if isinstance(block, Tiles)]
    wanted = summary.headline_tiles(result, 100)[: summary.MAX_TILES]
    assert tiles.tiles == tuple(wanted)


def chart(count: int, repeats: bool = False) -> Chart:
    points = tuple(map(float, range(count)))
    axis = figures.Axis("x", "count")
    data = table(points, text("x", lambda row: str(row)))
    drawn = figures.lines([figures.Curve("a", points, points)], axis, axis)
    return Chart("c", "Title", drawn, data, "Caption", repeats=repeats)


def test_fewer_than_three_points_are_a_table() -> None:
    whole = chart(3)
    assert feature_sections._sparse_as_tables(whole) == [whole]
    kinds = [type(block) for block in feature_sections._sparse_as_tables(chart(2))]
    assert kinds == [Heading, Sentence, Table]
    assert feature_sections._sparse_as_tables(chart(2, repeats=True)) == []


def test_regions_of_tables_have_names_of_their_own() -> None:
    empty = table(("a",), text("x", lambda row: row))
    html = html_output.render(
        "t", "s", [Section("x", "X", (empty, empty)), Section("y", "Y", (empty,))]
    )
    assert [html.count(f'aria-label="{name}"') for name in ("X, 1", "X, 2", "Y, 1")] == [1, 1, 1]
