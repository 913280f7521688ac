"""A result on one picture for a chat: machine, headline results, date, verdict and version (SVG).

One file without a font, a script or a link to another one. The width of a text is estimated from
its characters, on the safe side, since no font is read.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from nephoscope.core.model import RunResult
from nephoscope.report import summary, wording
from nephoscope.report.blocks import Tile
from nephoscope.report.markup import escape
from nephoscope.report.sections import findings

WIDTH = 1200
_MARGIN = 56
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_INK, _GREY, _LINE, _ACCENT = "#1a1d21", "#5c6470", "#dfe3e8", "#0b5cad"
_NARROW, _WIDE = 0.56, 1.05
"""Width of a letter over the size of the font: of DejaVu Sans, the widest of these, on average, and
of an East Asian one."""
_VALUE_X, _INTERVAL_X = 800, 1060
MAX_LINES = 3
"""Lines of a sentence; the rest is in the report."""


def render(result: RunResult, title: str) -> str:
    """Returns the picture as SVG text. title: that of the report."""
    canvas = _Canvas()
    canvas.text("NEPHOSCOPE", 17, colour=_ACCENT, weight=650)
    canvas.y += 14
    canvas.text(_clipped(title, 38, WIDTH - 2 * _MARGIN), 38, weight=650)
    canvas.y += 6
    for sentence in summary.described(result, 1):
        canvas.paragraph(sentence, 21, _GREY)
    canvas.y += 12
    for sentence in _verdict(result):
        canvas.paragraph(sentence, 25, _INK, weight=600)
    tiles = summary.headline_tiles(result, summary.MAX_TILES)
    if tiles:
        canvas.rows(tiles)
    canvas.y += 26
    canvas.paragraph(_origin(result), 18, _GREY)
    return canvas.document(f"{title}: headline results")


def _verdict(result: RunResult) -> list[str]:
    """Returns what a reader must know first: caveats, and the answer or the gravest finding."""
    stated = summary.caveats(result)
    answers = summary.answers(result)[:2]
    grave = [finding.sentence for finding in findings.ordered(result) if finding.is_grave][:1]
    if answers or grave:
        return [*stated, *(answers or grave)]
    return [*stated, f"No anomalies found in {wording.plural(len(result.metrics), 'metric')}."]


def _origin(result: RunResult) -> str:
    run = result.run
    date = (run.started_at or "")[:10]
    parts = (
        date,
        f"run {run.id}" if run.id else "",
        f"{100 * run.confidence:g} % confidence intervals",
        f"nephoscope {run.nephoscope}" if run.nephoscope else "",
    )
    return " · ".join(wording.clean(part) for part in parts if part)


def _width(text: str, size: float) -> float:
    """Returns an upper estimate of the width of a text in pixels."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return size * (_WIDE * wide + _NARROW * (len(text) - wide))


def _clipped(text: str, size: float, width: float) -> str:
    """Returns a text that fits into this width, with an ellipsis for its end."""
    if _width(text, size) <= width:
        return text
    while text and _width(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _wrapped(text: str, size: float, width: float) -> list[str]:
    """Returns the text in at most MAX_LINES lines of this width."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if not lines[-1] or _width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], " ".join(lines[MAX_LINES - 1 :])]
    return [_clipped(line, size, width) for line in lines]


class _Canvas:
    """Elements of the picture from top to bottom; y is where the next one begins."""

    def __init__(self) -> None:
        self.y = 40.0
        self._parts: list[str] = []

    def text(self, text: str, size: float, *, colour: str = _INK, weight: int = 400) -> None:
        """Writes one line at the left margin."""
        self.y += size * 1.3
        self._write(text, _MARGIN, self.y - size * 0.3, size, colour=colour, weight=weight)

    def paragraph(self, text: str, size: float, colour: str, *, weight: int = 400) -> None:
        """Writes a text in lines."""
        for line in _wrapped(text, size, WIDTH - 2 * _MARGIN):
            self.text(line, size, colour=colour, weight=weight)

    def rows(self, tiles: Sequence[Tile]) -> None:
        """Writes headline results as a table."""
        self.y += 26
        for title, x in (("value", _VALUE_X), ("interval", _INTERVAL_X), ("n", WIDTH - _MARGIN)):
            self._write(title, x, self.y, 17, colour=_GREY, anchor="end")
        self.y += 14
        for tile in tiles:
            self._rule()
            middle = self.y + 33
            label = f"{tile.label} ({tile.setting})" if tile.setting else tile.label
            value_from = _VALUE_X - _width(tile.value, 25) * 1.1
            self._write(_clipped(label, 20, value_from - _MARGIN), _MARGIN, middle, 20)
            self._write(tile.value, _VALUE_X, middle, 25, weight=650, anchor="end")
            interval = _clipped(tile.interval, 20, _INTERVAL_X - _VALUE_X - 16)
            self._write(interval, _INTERVAL_X, middle, 20, colour=_GREY, anchor="end")
            self._write(tile.n, WIDTH - _MARGIN, middle, 20, colour=_GREY, anchor="end")
            self.y += 50
        self._rule()

    def document(self, title: str) -> str:
        """Returns the whole file. title: for those who hear it."""
        height = round(self.y + 36)
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
                f'viewBox="0 0 {WIDTH} {height}" role="img" font-family="{escape(_FONT)}">',
                f"<title>{escape(title)}</title>",
                f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
                f'<rect width="{WIDTH}" height="8" fill="{_ACCENT}"/>',
                *self._parts,
                "</svg>\n",
            )
        )

    def _rule(self) -> None:
        self._parts.append(
            f'<path d="M{_MARGIN} {self.y:.1f}H{WIDTH - _MARGIN}" stroke="{_LINE}" fill="none"/>'
        )

    def _write(
        self,
        text: str,
        x: float,
        y: float,
        size: float,
        *,
        colour: str = _INK,
        weight: int = 400,
        anchor: str = "start",
    ) -> None:
        self._parts.append(
            f'<text x="{x:g}" y="{y:.1f}" font-size="{size:g}" font-weight="{weight}" '
            f'fill="{colour}" text-anchor="{anchor}">{escape(text)}</text>'
        )
