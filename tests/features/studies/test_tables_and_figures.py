"""Tables filled, figures drawn and conclusions, from results whose numbers are made."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from nephoscope.core.model import MetricResult
from nephoscope.features.studies import catalogue
from nephoscope.features.studies.comparison import (
    conclusions,
    figures,
    part_result,
    side_by_side,
    tables,
)
from nephoscope.features.studies.comparison.rules import Mark
from nephoscope.features.studies.definition.layouts import FigureLayout, TableLayout
from nephoscope.features.studies.definition.selectors import MeasuredFigure, PublishedFigure
from nephoscope.features.studies.definition.study import Control, Part
from nephoscope.features.studies.report import charts, section, wording
from nephoscope.report import html_output
from nephoscope.stats.statistics import means

from .made import line, noisy, result

DELGADO = catalogue.load("delgado-2010")
TABLES = ("Table 3.2", "Table 3.3", "Table 3.4", "Table 4.2")
SHOWN = [
    (study, part)
    for study in catalogue.load_all()
    for part in study.definition.parts
    if part.tables or part.figures
]


def pi(level: float, beside: str, seed: int) -> MetricResult:
    return line("cpu.pi", "pi_time_ns", noisy(level, 0.01, seed), "victim", beside=beside)


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_of_the_tables_is_answered(name: str) -> None:
    (table,) = [one for one in DELGADO.tables if one.name == name]
    published = {number.cell for number in DELGADO.numbers if number.table == name}
    assert published == {(row, column) for row in table.rows for column in table.columns}
    answered = {
        number.cell
        for part in DELGADO.definition.parts
        for sheet in part.tables
        if sheet.table == name
        for row in sheet.rows
        for column in sheet.columns
        for number in tables.published_numbers(DELGADO, sheet, row, column)
    }
    assert answered == published


def test_tables_that_are_not_filled_belong_to_parts_that_say_why() -> None:
    filled = {sheet.table for part in DELGADO.definition.parts for sheet in part.tables}
    rest = {table.name for table in DELGADO.tables} - filled
    assert rest == {"Table 4.1"}  # what the simulation is given
    assert all(part.agreements for part in DELGADO.definition.parts if part.name == "sla")


@pytest.mark.parametrize(
    ("study", "part"), SHOWN, ids=[f"{study.name}-{part.name}" for study, part in SHOWN]
)
def test_what_is_not_in_a_run_is_told_cell_by_cell(
    study: catalogue.ReferenceStudy, part: Part
) -> None:
    one = part_result.compare_part(study, part, result())
    assert all(
        cell.measured is None and cell.absent for sheet in one.tables for cell in sheet.cells
    )
    assert all(curve.absent for picture in one.figures for curve in picture.curves)
    text = html_output.render("", "", section.sections(study, [one], ()))
    assert "the run has no valid trial" in text
    json.dumps(section.document_of([one], ()), allow_nan=False)


def test_a_cell_has_both_sides_with_interval_n_and_unit() -> None:
    made = result(pi(1e8, "none", 1), pi(1.2e8, "cpu", 2))
    sheet = part_result.compare_part(DELGADO, DELGADO.part("isolation"), made).tables[0]
    cells = {(cell.row, cell.column): cell for cell in sheet.cells}
    mean = cells["mean", "2 VM"]
    assert mean.unit == "ms"
    assert mean.measured is not None
    assert mean.measured.value == pytest.approx(120, rel=0.01)
    assert mean.measured.n == 20
    # Their interval of the mean: 1754.90 ± t(99) 41.47 / 10.
    assert (mean.published.low, mean.published.high) == pytest.approx((1746.67, 1763.13), abs=0.01)
    spread = cells["stdev relative", "1 VM"]
    assert spread.unit == "%"
    assert spread.published.low is not None
    assert spread.published.high is not None
    assert spread.published.low < spread.published.value < spread.published.high
    assert spread.measured is not None
    assert 0.5 < spread.measured.value < 2
    assert "n 100" in wording.published_cell(mean)
    assert "n 20" in wording.measured_cell(mean)


def test_sets_are_the_unit_on_both_sides() -> None:
    sets = [8.4e5, 8.5e5, 8.6e5, 8.5e5, 8.4e5, 8.6e5]
    made = result(
        line("net.rtt", "rtt_sent_mean_ns", sets, "client", beside="awake+send40"),
    )
    sheet = part_result.compare_part(DELGADO, DELGADO.part("shaping"), made).tables[0]
    (cell,) = [c for c in sheet.cells if (c.row, c.column) == ("sender 40 Mbps", "avg")]
    assert [one.text for one in cell.numbers] == ["0.847", "0.851", "0.847"]
    assert cell.published.n == 3
    assert cell.measured is not None
    assert cell.measured.n == 6
    expected = means.mean_t([one / 1e6 for one in sets], unit="")
    assert cell.measured.value == pytest.approx(expected.value)
    assert cell.measured.low == pytest.approx(expected.low)
    assert "n 6 sets" in wording.measured_cell(cell)


def test_curves_are_ratios_round_by_round_with_theirs_beside() -> None:
    base = noisy(1e5, 0.05, 3)
    made = result(
        line("net.rtt", "rtt_sent_p90_ns", base, "client", beside="awake"),
        line(
            "net.rtt", "rtt_sent_p90_ns", [x * 1.5 for x in base], "client", beside="awake+send45"
        ),
    )
    (picture,) = figures.fill_figures(DELGADO, DELGADO.part("shaping"), made)
    sends = next(curve for curve in picture.curves if curve.name == "the neighbour sends")
    assert sends.x == (45.0,)
    assert sends.y == pytest.approx((1.5,))
    assert len(sends.absent) == 2
    theirs = {(one.curve, one.x): one.value for one in picture.points}
    assert theirs["the neighbour sends", 45] == pytest.approx(1.32962, abs=1e-5)
    chart = charts.chart(picture)
    names = [trace.get("name", "") for trace in chart.figure["data"]]
    assert [name.startswith("published") for name in names] == [False, False, True, True]
    assert chart.figure["data"][2]["y"] == pytest.approx([1.23364, 1.32962], abs=1e-5)
    html_output.safe_json(chart.figure)


def test_samples_keep_the_order_of_measuring() -> None:
    values = [1e8, 3e8, 2e8, 1e8, 1e8, 1e8]
    made = result(line("cpu.pi", "pi_time_ns", values, "victim", beside="none"))
    picture = figures.fill_figures(DELGADO, DELGADO.part("isolation"), made)[0]
    assert picture.curves[0].y == pytest.approx((100, 300, 200, 100, 100, 100))
    assert picture.curves[1].absent


def outcome(name: str, mark: Mark) -> side_by_side.Outcome:
    part, _, which = name.partition("/")
    made = side_by_side.compare(DELGADO, DELGADO.part(part), result())
    (found,) = [one for one in made if one.id == which]
    return type(found)(
        found.part, found.id, found.claim, found.ground, found.unit, mark, "", found.published
    )


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([Mark.IN_NUMBER, Mark.IN_KIND, Mark.IN_KIND, Mark.IN_KIND], Mark.IN_KIND),
        ([Mark.IN_NUMBER, Mark.IN_KIND, Mark.CONTRADICTED, Mark.IN_KIND], Mark.CONTRADICTED),
        ([Mark.IN_NUMBER, Mark.NOT_COMPARABLE, Mark.IN_KIND, Mark.IN_KIND], Mark.NOT_COMPARABLE),
        ([Mark.IN_NUMBER], Mark.NOT_COMPARABLE),
    ],
)
def test_a_conclusion_stands_when_all_that_it_rests_on_does(
    marks: list[Mark], expected: Mark
) -> None:
    (conclusion,) = [one for one in DELGADO.definition.conclusions if one.id == "htb-latency"]
    known = [outcome(name, mark) for name, mark in zip(conclusion.comparisons, marks, strict=False)]
    found = {one.id: one for one in conclusions.conclude(DELGADO.definition, known)}["htb-latency"]
    assert found.mark is expected
    assert len(found.evidence) == 4


def test_nothing_measured_is_no_conclusion() -> None:
    assert conclusions.conclude(DELGADO.definition, []) == []


@pytest.mark.parametrize(
    ("loss", "mark"),
    [(0.02, Mark.IN_KIND), (0.0, Mark.CONTRADICTED)],
)
def test_a_direction_without_a_number_is_held_against_a_difference(loss: float, mark: Mark) -> None:
    part = DELGADO.part("jitter")
    kept = part.model_copy(update={"controls": ()})
    factors = {"direction": "up", "rate_bits_per_s": 40000000}
    lost = [loss * (1 + 0.01 * number) for number in range(8)]
    made = result(
        line("net.throughput", "loss_ratio", [0.0] * 8, "victim", beside="none", **factors),
        line("net.throughput", "loss_ratio", lost, "victim", beside="send45", **factors),
    )
    found = {one.id: one for one in side_by_side.compare(DELGADO, kept, made)}["loss-out"]
    assert found.mark is mark
    assert found.measured is not None
    assert found.measured.value == pytest.approx(100 * loss * 1.035, rel=0.01)
    assert found.published.direction == "more"


OURS = {"benchmark": "null", "metric": "null_ns"}
CURVES = {"a": {"factors": {"x": 1}}}


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: MeasuredFigure(**OURS, difference=True), "compare two"),
        (
            lambda: MeasuredFigure(benchmark="b", metric="rtt_p99_ns", statistic="mean"),
            "have no mean",
        ),
        (lambda: PublishedFigure(table="t", direction="more", cell=("a", "b")), "give one of"),
        (lambda: Control(claim="c", measured=MeasuredFigure(**OURS), within=0.1), "a ratio of"),
        (lambda: Control(claim="c", measured=MeasuredFigure(**OURS)), "give one of"),
        (
            lambda: TableLayout.model_validate(
                {
                    "table": "t",
                    "title": "t",
                    "measured": {**OURS, "numerator": {}, "denominator": {}},
                    "rows": {"r": {}},
                    "columns": {"c": {}},
                    "why": "w",
                }
            ),
            "one value",
        ),
        (
            lambda: FigureLayout.model_validate(
                {
                    "id": "d",
                    "figure": "f",
                    "title": "t",
                    "kind": "lines",
                    "measured": OURS,
                    "x": "x",
                    "y": "y",
                    "curves": CURVES,
                    "why": "w",
                }
            ),
            "need `factor`",
        ),
    ],
)
def test_what_is_half_said_is_refused(build: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        build()
