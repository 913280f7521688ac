"""Tables of the command line: as wide as they are in a pipe, within the columns of a terminal."""

from __future__ import annotations

import warnings

import pytest

from nephoscope.cli.kit import output
from nephoscope.core.errors import UnreadableRun

HEAD = ("name", "title", "n")
ROWS = [
    ("availability", "a share of the slots of a period in which the service works", "7"),
    ("loss", "", "12345"),
]


def test_a_table_in_a_pipe_has_a_line_for_each_row() -> None:
    first, *rest = output.table(HEAD, ROWS, right=(2,)).splitlines()
    assert len(rest) == len(ROWS)
    assert first.startswith("name          title ")
    assert rest[0].endswith("service works      7")


@pytest.mark.parametrize("columns", ["41", "60"])
def test_words_stay_whole_on_a_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", columns)
    text = output.table(HEAD, ROWS, right=(2,))
    assert max(map(len, text.splitlines())) < int(columns)
    assert sorted(text.split()) == sorted(" ".join([*HEAD, *map(" ".join, ROWS)]).split())
    assert len(text.splitlines()) > len(ROWS) + 1


def test_a_table_that_fits_nowhere_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = output.table(("a", "b"), [("x" * 90, "y z")])
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert output.table(("a", "b"), [("x" * 90, "y z")]) == plain


def test_paragraphs_keep_words_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "41")
    output.paragraph("One sentence of twelve words is longer than a narrow terminal is wide.")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert len(lines) == 2


def test_runs_that_are_left_out_are_named_once_and_the_first_of_many(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with output.unreadable_runs_named():
        for number in (1, 1, 2, 3, 4, 5):
            warnings.warn(f"Run {number} is damaged.", UnreadableRun, stacklevel=1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [f"nephoscope: Run {number} is damaged." for number in (1, 2, 3)]
    assert lines[3:] == [
        "nephoscope: More runs cannot be read. `nephoscope verify` names each of them."
    ]


def test_a_cell_with_line_breaks_forges_no_row() -> None:
    """A run's label may come from a stranger's store."""
    text = output.table(["RUN", "LABELS"], [["one", "a=x\nforged  b=y\u2028z\r\nw"]])
    assert text.splitlines() == ["RUN  LABELS", "one  a=x forged  b=y z w"]
