"""Tables on the terminal: no word is broken, whatever the width."""

from __future__ import annotations

import pytest

from nephoscope.core.reading.column_widths import column_widths
from nephoscope.report import terminal_output
from nephoscope.report.blocks import Section
from nephoscope.report.columns import number, table, text

LONG = "https://shop.example/checkout/with/a/long/path"


def shown(rows: tuple[tuple[str, ...], ...], width: int) -> list[str]:
    listed = table(
        rows,
        text("service", lambda row: row[0]),
        text("objective", lambda row: row[1]),
        number("budget used", lambda row: row[2]),
        number("credit", lambda row: row[3]),
    )
    section = Section("s", "Rows", (listed,))
    lines = terminal_output.render("Title", [section], colour=False, width=width).splitlines()
    assert max(map(len, lines)) <= width
    return lines


def words(lines: list[str]) -> set[str]:
    return set(" ".join(lines).split())


@pytest.mark.parametrize("width", [60, 79, 200])
@pytest.mark.parametrize("service", ["shop", LONG])
def test_no_word_is_broken(width: int, service: str) -> None:
    row = (service, "availability at least 99.99 %", "4398.1 %", "123.46 USD; loss 2850.00")
    lines = shown((row, row), width)
    assert set(" ".join(row).split()) <= words(lines)


def test_a_row_whose_words_have_no_room_is_a_list() -> None:
    row = (LONG, "availability at least 99.99 %", "4398.1 %", "")
    lines = shown((row, row), 70)
    start = next(number for number, line in enumerate(lines) if LONG in line)
    assert lines[start : start + 4] == [
        f"  service      {LONG}",
        "  objective    availability at least 99.99 %",
        "  budget used  4398.1 %",
        "",
    ]
    assert sum(LONG in line for line in lines) == 2


def test_lines_of_a_list_keep_their_order_whatever_their_length() -> None:
    row = (LONG, "at least 99.99 %", "4398.1 % and\nrising", "0 USD")
    lines = shown((row,), 55)
    start = lines.index("  service")
    assert lines[start:] == [
        "  service",
        f"  {LONG}",
        "  objective    at least 99.99 %",
        "  budget used  4398.1 % and",
        "               rising",
        "  credit       0 USD",
    ]


def test_numbers_keep_their_units_before_text_is_wrapped() -> None:
    row = ("shop", "availability at least 99.99 %", "4398.1 %", "123.46 USD")
    lines = shown((row,), 50)
    assert any("4398.1 %" in line and "123.46 USD" in line for line in lines)


def test_widths() -> None:
    assert column_widths([4, 30], [4, 8], 40) == [4, 30]
    assert column_widths([4, 30], [4, 8], 20) == [4, 16]
    assert column_widths([20, 20], [5, 5], 30) == [15, 15]
    assert column_widths([10, 26, 26], [5, 7, 7], 52) == [10, 21, 21]
    assert column_widths([4, 30], [4, 8], 11) is None
