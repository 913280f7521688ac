"""The JSON documents of `nephoscope study`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.cli.kit.documents import Rows
from nephoscope.features.studies.agreements import AgreementFigure


@dataclass(frozen=True, slots=True)
class StudyResults:
    """A study's results: published and measured values side by side, and its conclusions."""

    name: str
    runs: tuple[str, ...]
    warnings: Mapping[str, tuple[str, ...]]
    comparisons: Rows
    tables: Rows
    emulated: Rows
    predictions: Rows
    measured_and_simulated: Rows
    figures: Rows
    conclusions: Rows


@dataclass(frozen=True, slots=True)
class StudyDocument(StudyResults):
    """A study: its publication, its parts, published numbers and what was measured here.

    contents: every table, figure and experiment of the study: its name, title, whether it runs
    here (state), and by what or why not (explanation).
    """

    title: str
    authors: tuple[str, ...]
    year: int
    venue: str
    question: str
    parts: Rows
    contents: Rows
    printed_tables: tuple[Any, ...]
    missing_tables: Any
    numbers: Rows
    agreements: tuple[AgreementFigure, ...]


@dataclass(frozen=True, slots=True)
class StudyRun(StudyResults):
    """A study that was repeated now. scale: of its experiments."""

    scale: str
