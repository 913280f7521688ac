"""Blocks as one HTML page that opens anywhere: no network, no second file.

Every text passes the template's autoescape. Figures travel as JSON in a script element that the
browser does not run. A content security policy forbids every load and every script but the two
of this page, which it knows by their hash: text from a machine could not run if it got through.
"""

from __future__ import annotations

import base64
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
from nephoscope.report.blocks import Chart, Section

PLOTLY = "plotly-cartesian-4.1.1.min.js"
"""The drawing library (static/README.md)."""


def render(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The whole report. Charts are drawn by a script; their tables stand without it."""
    charts = [block for part in sections for block in part.blocks if isinstance(block, Chart)]
    scripts = [_asset("static", PLOTLY), _asset("templates", "page.js")] if charts else []
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            subtitle=subtitle,
            sections=sections,
            style=Markup(_asset("templates", "page.css")),
            figures=Markup(safe_json({chart.id: chart.figure for chart in charts})),
            scripts=[Markup(script) for script in scripts],
            policy=_policy(scripts),
        )
    )


def safe_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


@lru_cache(maxsize=4)
def _asset(folder: str, name: str) -> str:
    path = resources.files("nephoscope.report").joinpath(folder, name)
    text = path.read_text(encoding="utf-8")
    # Within JavaScript these spellings mean the same, and the second cannot end the element.
    if name.endswith(".js"):
        text = re.sub(r"</(script)", r"<\\/\1", text, flags=re.IGNORECASE)
        text = text.replace("<!--", r"<\!--")
    return text


def _policy(scripts: Sequence[str]) -> str:
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in scripts
    )
    allowed = hashes or "'none'"
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
    environment.tests["strip"] = lambda cell: not isinstance(cell, str)
    return environment
