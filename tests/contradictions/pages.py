"""Contradictions within an HTML page: those of its text, row by row and paragraph by paragraph."""

from __future__ import annotations

import html as entities
import re

from tests.contradictions.texts import of_text

_UNREAD = re.compile(r"<(script|style|svg|template)\b.*?</\1>", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(
    r"</?(?:p|tr|li|h[1-6]|figcaption|summary|dt|dd|div|table|section|ul|ol)\b[^>]*>", re.IGNORECASE
)
_TAG = re.compile(r"<[^>]*>")


def text_of(html: str) -> str:
    """Returns the text of a page: a paragraph for each block, the cells of a row side by side."""
    blocks = _BLOCK.split(_UNREAD.sub("", html))
    texts = (" ".join(entities.unescape(_TAG.sub(" ", block)).split()) for block in blocks)
    return "\n\n".join(dict.fromkeys(text for text in texts if text))


def of_page(html: str) -> list[str]:
    """Returns the contradictions of a rendered HTML page."""
    return of_text(text_of(html))
