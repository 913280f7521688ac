"""The report section of the toy feature."""

from __future__ import annotations

from nephoscope.core.model import RunResult
from nephoscope.report.blocks import Section, Sentence
from toy.records import Extremes


def build(result: RunResult) -> Section | None:
    """Returns the section; None where the run has no such values."""
    found = result.part(Extremes)
    if found is None:
        return None
    text = f"From {found.smallest:g} to {found.largest:g}."
    return Section("toy", "Extremes", (Sentence(text),))
