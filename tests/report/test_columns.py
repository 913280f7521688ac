"""Tables by columns: how a value reads, groups of rows, and that no table is built otherwise."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import nephoscope
from nephoscope.core.model import Estimate
from nephoscope.report import html_output, markdown_output, terminal_output
from nephoscope.report.blocks import Linked, Section, Strip
from nephoscope.report.columns import (
    cell,
    count,
    estimate,
    estimates_table,
    fact_table,
    number,
    ratio,
    spread,
    table,
    text,
)

_SOURCES = Path(nephoscope.__file__).parent
_STRIP = Strip((1.0, 2.0))
_ESTIMATE = Estimate(2.5e6, 2.4e6, 2.6e6, 0.95, 12, "ns", "median")


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "", "–"),
        (None, "ns", "–"),
        (0, "ns", "0 ns"),
        (2_500_000, "ns", "2.50 ms"),
        (0.25, "ratio", "25.0 %"),
        (_ESTIMATE, "", "2.50 ms"),
        (True, "", "yes"),
        (False, "", "no"),
        (1234, "", "1234"),
        ("text", "ns", "text"),
        (_STRIP, "", _STRIP),
    ],
)
def test_the_type_of_a_value_decides_how_it_reads(value: object, unit: str, shown: object) -> None:
    assert cell(value, unit) == shown


def test_each_column_reads_its_own_field() -> None:
    estimates = {"a": _ESTIMATE, "b": None}
    listed = table(
        estimates,
        text("name", str),
        *estimate("value", estimates.get),
        count("count", lambda name: 12_345),
        caption="Two",
    )
    assert [column.title for column in listed.columns] == [
        "name",
        "value",
        "interval",
        "n",
        "count",
    ]
    assert listed.rows == (
        ("a", "2.50 ms", "[2.40, 2.60]", "12", "12,345"),
        ("b", "–", "", "–", "12,345"),
    )
    assert listed.caption == "Two"
    assert [column.numeric for column in listed.columns] == [False, True, True, True, True]
    ratios = table(
        estimates,
        *ratio("ratio", estimates.get, lambda name: len(name)),
        *spread(("first", "second"), lambda name: (0.5, None), "ratio"),
    )
    assert [column.title for column in ratios.columns[2:]] == ["n", "first", "second"]
    assert ratios.rows == (
        ("2500000", "[2400000, 2600000]", "1", "50.0 %", "–"),
        ("–", "none", "1", "50.0 %", "–"),
    )


def test_a_group_is_named_in_its_first_row() -> None:
    rows = [("a", "x", 1), ("a", "x", 2), ("a", "y", 3), ("b", "y", 4)]
    columns = (
        text("group", lambda row: row[0]),
        text("part", lambda row: row[1]),
        number("value", lambda row: row[2]),
    )
    assert table(rows, *columns, grouped=1).rows == (
        ("a", "x", "1"),
        ("", "x", "2"),
        ("", "y", "3"),
        ("b", "y", "4"),
    )
    assert table(rows, *columns, grouped=2).rows == (
        ("a", "x", "1"),
        ("", "", "2"),
        ("a", "y", "3"),
        ("b", "y", "4"),
    )


def test_facts_and_estimates_are_tables_of_pairs() -> None:
    assert fact_table([("kernel", "6.1")]).rows == (("kernel", "6.1"),)
    assert not any(column.title for column in fact_table([]).columns)
    assert estimates_table([("a", _ESTIMATE)], "what").rows == (
        ("a", "2.50 ms", "[2.40, 2.60]", "12"),
    )


def test_every_table_is_built_by_columns() -> None:
    """Headings in one tuple and cells in another drift apart."""
    built = [
        f"{path.relative_to(_SOURCES)}:{node.lineno}"
        for path in _SOURCES.rglob("*.py")
        if "blocks import" in (source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Table", "Column")
        and path != _SOURCES / "report" / "columns.py"
    ]
    assert built == []


def test_cells_link_to_each_other_in_every_form() -> None:
    rows = [("cost", "7 <USD>"), ("rate", "9")]
    shown = table(
        rows,
        text("figure", lambda row: Linked(row[1], id=f"input-{row[0]}")),
        text("from", lambda row: Linked(links=(("1", f"input-{row[0]}"), ("2", "x")))),
    )
    section = Section("links", "Links", (shown,))
    page = html_output.render("t", "s", [section])
    assert '<th scope="row" id="input-cost">7 &lt;USD&gt;' in page
    assert '<a href="#input-cost">1</a>, <a href="#x">2</a>' in page
    markdown = markdown_output.render("t", [section])
    assert '<a id="input-cost"></a>7 ' in markdown
    assert "[1](#input-cost), [2](#x)" in markdown
    terminal = terminal_output.render("t", [section], colour=False, width=80)
    assert "1, 2" in terminal
