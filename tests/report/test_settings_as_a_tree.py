"""Tests that the table of results prints the settings of a sweep as a tree."""

from __future__ import annotations

from tests.report import made

from nephoscope.core.model import RunResult, RunSummary
from nephoscope.report import html_output, markdown_output
from nephoscope.report.blocks import Table
from nephoscope.report.sections import results


def _swept(targets: tuple[str, ...] = ("local",)) -> RunResult:
    metrics = tuple(
        made.metric("cpu.pi", "pi_digits_per_s", digits / threads, "per_s", target=target,
                    factors={"digits": digits, "threads": threads, "repeats": 1}, headline=True)
        for target in targets for digits in (10000, 500, 2000) for threads in (2, 1)
    )  # fmt: skip
    single = made.metric("cpu.pi", "pi_time_ns", 7.0, "ns", factors={"threads": 4}, headline=True)
    return RunResult(run=RunSummary(), metrics=(*metrics, single), findings=(), invalid=())


def _names(result: RunResult) -> list[str]:
    section = results.build(result)
    assert section is not None
    table = next(block for block in section.blocks if isinstance(block, Table))
    assert all(len(row) == len(table.columns) for row in table.rows)
    return [str(row[0]) if row[1] else f"[{row[0]}]" for row in table.rows]


def test_the_parameter_with_the_fewest_levels_is_the_outer_one_and_numbers_are_aligned() -> None:
    assert _names(_swept()) == [
        "[cpu.pi digits: repeats 1]",
        "[  1 thread]",
        "    digits   500",
        "    digits  2000",
        "    digits 10000",
        "[  2 threads]",
        "    digits   500",
        "    digits  2000",
        "    digits 10000",
        "cpu.pi time: 4 threads",
    ]


def test_targets_are_levels_too() -> None:
    names = _names(_swept(("web", "db")))
    assert names[1:4] == ["[  db]", "[    1 thread]", "      digits   500"]


def test_the_page_and_markdown_keep_the_indent() -> None:
    section = results.build(_swept())
    assert section is not None
    page = html_output.render("A run", "", [section])
    figure_space = "\N{FIGURE SPACE}"
    assert f'<th scope="row">{figure_space * 4}digits {figure_space}2000</th>' in page
    assert "| &nbsp;&nbsp;&nbsp;&nbsp;digits 2000 |" in markdown_output.render("A run", [section])


def test_names_from_outside_stay_on_their_line() -> None:
    metrics = tuple(
        made.metric("x", "y\x1b[2J\nz", 1.0, "ns", factors={"a\n\x1bb": n}, headline=True)
        for n in (1, 2)
    )
    names = _names(RunResult(run=RunSummary(), metrics=metrics, findings=(), invalid=()))
    assert len(names) == 3
    assert all(name.isprintable() for name in names)
