"""Blocks as one HTML page that opens anywhere: no network, no second file.

Every text passes the template's autoescape. Figures travel as JSON in a script element that the
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

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nephoscope.report import sparklines, wording
from nephoscope.report.blocks import Chart, Linked, Section, Strip

PLOTLY = "plotly-cartesian-4.1.1.min.js.gz"
"""The drawing library (static/README.md)."""


def render(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The whole report. Charts are drawn by a script; their tables stand without it."""
    charts = [block for part in sections for block in part.blocks if isinstance(block, Chart)]
    packed, library_hash = _library() if charts else ("", "")
    script = _script("page.js") if charts else ""
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            subtitle=subtitle,
            sections=sections,
            style=Markup(_asset("page.css")),
            figures=Markup(safe_json({chart.id: chart.figure for chart in charts})),
            script=Markup(script),
            library=Markup(packed),
            policy=_policy([_hash(script.encode()), library_hash] if charts else []),
        )
    )


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
def _library() -> tuple[str, str]:
    """Returns the compressed drawing library as text, and the hash of what the page makes of it."""
    packed = resources.files("nephoscope.report").joinpath("static", PLOTLY).read_bytes()
    return base64.b64encode(packed).decode(), _hash(gzip.decompress(packed))


def _hash(script: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"


def _policy(hashes: Sequence[str]) -> str:
    allowed = " ".join(hashes) or "'none'"
    # The drawing library sets styles from its script, which a hash cannot cover.
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("nephoscope.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["kind"] = lambda block: type(block).__name__.lower()
    environment.filters["aligned"] = wording.aligned
    environment.filters["points"] = sparklines.as_svg_points
    environment.tests["strip"] = lambda cell: isinstance(cell, Strip)
    environment.tests["linked"] = lambda cell: isinstance(cell, Linked)
    return environment
