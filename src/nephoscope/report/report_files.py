"""From a result to files and to the terminal."""

from __future__ import annotations

import re
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any

from nephoscope.core import documents
from nephoscope.core.model import RunResult
from nephoscope.report import files, selection, wording
from nephoscope.report.feature_sections import build_all
from nephoscope.results import feature


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """The files of one report."""

    html: Path
    markdown: Path
    json: Path


def write(result: RunResult, directory: Path) -> ReportPaths:
    """Writes report.html, report.md and result.json into the directory, made if need be.

    Each file appears whole or not at all. Raises StoreError where they cannot be written.
    """
    paths = ReportPaths(
        directory / "report.html", directory / "report.md", directory / "result.json"
    )
    files.write(
        (paths.html, paths.markdown, paths.json),
        title(result),
        subtitle(result),
        build_all(result),
        document(result),
        "Free disk space or make the directory writable, then run `nephoscope show RUN`; "
        "no measurement is lost.",
    )
    return paths


def write_to(result: RunResult, path: Path) -> None:
    """Writes the report, or the card of an .svg file. Raises StoreError where it cannot."""
    from nephoscope.report import card

    step = "Name another file."
    if path.suffix == ".svg":
        files.write_text(path, card.render(result, title(result)), step)
        return
    files.write([path], title(result), subtitle(result), build_all(result), document(result), step)


def terminal(result: RunResult, *, colour: bool, width: int, full: bool = True) -> str:
    """Returns the text for a terminal, in lines of at most `width` columns.

    full: all sections; else one screen.
    """
    from nephoscope.report import first_screen, terminal_output

    if not full:
        return first_screen.render(title(result), result, colour=colour, width=width)
    return terminal_output.render(title(result), build_all(result), colour=colour, width=width)


def title(result: RunResult) -> str:
    """Returns the title of the report, with the name of the measured machine."""
    if result.metrics and all(metric.benchmark.startswith("sim.") for metric in result.metrics):
        return "Simulation report"
    names = [wording.clean(name) for name in selection.target_names(result)]
    host = wording.clean(result.run.host)
    if names == ["local"]:
        return f"Benchmark report: {host or 'this machine'}"
    if not names:
        return f"Run {wording.clean(result.run.id or 'without a name')}"
    where = f" on {host}" if host else ""
    return f"Benchmark report: {wording.named(names)}{where}"


_MINUTE = re.compile(r"^([\d-]{10})T(\d\d:\d\d)[:.\d]*(?:\+00:00|Z)$")
"""A time in UTC as runs store it: date, and hours with minutes."""


def subtitle(result: RunResult) -> str:
    """Returns plan, run id and start time."""
    run = result.run
    parts = [
        f"plan {wording.clean(run.plan)}" if run.plan else "",
        f"run {wording.clean(run.id)}" if run.id else "",
        wording.clean(_MINUTE.sub(r"\1 \2 UTC", run.started_at or "")),
    ]
    return " · ".join(part for part in parts if part)


def document(result: RunResult) -> dict[str, Any]:
    """Returns the document of `--json` (result.schema.json)."""
    parts: dict[str, Any] = dict.fromkeys(entry.name for entry in feature.analysed())
    parts |= {
        entry.name: documents.to_json(part)
        for entry, part in feature.contributing(result.parts)
        if entry.analyse
    }
    values: dict[str, Any] = documents.to_json(result)
    return documents.versioned({**values, **parts})


def document_record() -> type[Any]:
    """Returns the record of `document`: a result with the records of all features."""
    parts = [(entry.name, feature.load(entry.record) | None, None) for entry in feature.analysed()]
    record = make_dataclass("RunDocument", parts, bases=(RunResult,), frozen=True)
    record.__doc__ = "A run's result; null where a feature has nothing to state about it."
    return record


def result_schema() -> dict[str, Any]:
    """Returns the JSON Schema of `document`."""
    return documents.schema_of(document_record(), "Result of a Nephoscope run")
