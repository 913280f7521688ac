"""A small table as HTML, for the cell of a notebook: no script and no style of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from nephoscope.core.reading.printable import printable


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    below: Iterable[str] = (),
) -> str:
    """Returns a table with a caption above and sentences below; every text is escaped."""
    titles = "".join(f"<th>{_cell(title)}</th>" for title in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    sentences = "".join(f"<p>{_cell(text)}</p>" for text in below)
    return (
        f"<p><b>{_cell(caption)}</b></p><table><thead><tr>{titles}</tr></thead>"
        f"<tbody>{body}</tbody></table>{sentences}"
    )


def _cell(text: str) -> str:
    return escape(printable(text))
