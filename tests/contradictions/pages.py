"""Contradictions within an HTML page: those of its text, row by row and paragraph by paragraph."""

from __future__ import annotations

from html.parser import HTMLParser

from tests.contradictions.texts import of_text

_BLOCKS = {"p", "tr", "li", "h1", "h2", "h3", "h4", "figcaption", "summary", "dt", "dd", "div"}
_UNREAD = {"script", "style", "svg", "template"}


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = [""]
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._unread += tag in _UNREAD
        if tag in _BLOCKS:
            self.blocks.append("")
        elif tag in ("td", "th"):
            self.blocks[-1] += " "

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in _UNREAD
        if tag in _BLOCKS:
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.blocks[-1] += data


def of_page(html: str) -> list[str]:
    """Returns the contradictions of a rendered HTML page."""
    text = _Text()
    text.feed(html)
    blocks = (" ".join(block.split()) for block in text.blocks)
    return [found for block in dict.fromkeys(blocks) if block for found in of_text(block)]
