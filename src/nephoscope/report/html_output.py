"""Blocks as one HTML page that opens anywhere: no network, no second file.

Every text passes `markup.escape`. Figures travel as JSON in a script element that the
browser does not run, the drawing library compressed in another one. A content security policy
forbids every load and every script but that of this page and the library, which it knows by their
hash: text from a machine could not run if it got through.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from nephoscope.report import drawing, markdown_output, markup
from nephoscope.report.blocks import Chart, Section

PLOTLY = "plotly-cartesian-4.1.1.min.js.gz"
"""The drawing library (static/README.md)."""

_CONTROLS = "controls.js"
_OWN = ("marks.js", "charts.js", "page.js")
_LIBRARY = ("plotly.js", "page.js")
"""Scripts of every page, of one whose figures `drawing.draws`, and of one with the library."""
MAX_COPIED_CHARACTERS = 60_000
"""Of a page's text for the clipboard; GitHub takes 65,536 in a comment."""


def render(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The whole report. Charts are drawn by a script; their tables stand without it."""
    charts = [block for part in sections for block in part.blocks if isinstance(block, Chart)]
    figures, packed, names = "", "", [_CONTROLS]
    hashes: list[str] = []
    if charts:
        own = all(drawing.draws(chart.figure) for chart in charts)
        packed, hashes = ("", []) if own else _library()
        names += _OWN if own else _LIBRARY
        figures = safe_json({chart.id: chart.figure for chart in charts})
    script = "".join(map(_script, names))
    scripts = markup.Scripts(safe_json(_copied(title, subtitle, sections)), figures, packed, script)
    policy = _policy([_hash(script.encode()), *hashes])
    style = _asset("page.css")
    return markup.page(title, subtitle, sections, policy=policy, style=style, scripts=scripts)


def _copied(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Returns the open sections as Markdown, as many of the first ones as a comment holds."""
    open_sections = [section for section in sections if not section.folded]
    heading, *parts = markdown_output.parts_of(title, open_sections)
    texts = [f"{heading}\n\n{markdown_output.escape(subtitle)}"]
    for part in parts:
        if len(texts) > 1 and sum(map(len, texts)) + len(part) > MAX_COPIED_CHARACTERS:
            break
        texts.append(part)
    return "\n\n".join(texts) + "\n"


def safe_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


@lru_cache(maxsize=4)
def _asset(name: str) -> str:
    return resources.files("nephoscope.report").joinpath("templates", name).read_text("utf-8")


def _script(name: str) -> str:
    # Within JavaScript these spellings mean the same, and the second cannot end the element.
    text = re.sub(r"</(script)", r"<\\/\1", _asset(name), flags=re.IGNORECASE)
    return text.replace("<!--", r"<\!--")


@lru_cache(maxsize=1)
def _library() -> tuple[str, list[str]]:
    """Returns the compressed drawing library as text, and the hash of what the page makes of it."""
    packed = resources.files("nephoscope.report").joinpath("static", PLOTLY).read_bytes()
    return base64.b64encode(packed).decode(), [_hash(gzip.decompress(packed))]


def _hash(script: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"


def _policy(hashes: Sequence[str]) -> str:
    allowed = " ".join(hashes) or "'none'"
    # The drawing library sets styles from its script, which a hash cannot cover.
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
