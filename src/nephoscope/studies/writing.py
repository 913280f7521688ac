"""The comparison as text, and as files beside a run's report."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nephoscope import units
from nephoscope.errors import StoreError
from nephoscope.model import Estimate
from nephoscope.studies.comparing import Outcome
from nephoscope.studies.shelf import Shelf
from nephoscope.studies.theirs import Figure


def told_theirs(outcome: Outcome) -> str:
    """Their figure: '1.022 times [1.018, 1.027], n 100 (Table 3.2)'."""
    figure = outcome.figure
    if figure.value is None:
        return f"{' > '.join(figure.order)} ({figure.source})"
    value = _told(figure.value, figure.low, figure.high, outcome.unit)
    return f"{value}, {_told_n(figure)} ({figure.source})"


def told_ours(outcome: Outcome) -> str:
    """Our figure with interval and n, or that there is none."""
    if outcome.steps:
        order = outcome.figure.order
        return "; ".join(
            f"{one} over {other} {_told_estimate(step, 'times')}"
            for one, other, step in zip(order, order[1:], outcome.steps, strict=False)
        )
    return _told_estimate(outcome.estimate, outcome.unit) if outcome.estimate else "none"


def markdown(
    shelf: Shelf, run_id: str, outcomes: Sequence[Outcome], warnings: Sequence[str] = ()
) -> str:
    """The comparison as a page; warnings: what the run said of the machine it found."""
    study = shelf.study
    lines = [
        f"# Ours beside {shelf.name}",
        "",
        f"{', '.join(study.authors)}: {study.title} ({study.year}). Run {run_id}.",
        *(f"\n> {warning}" for warning in warnings),
    ]
    for outcome in outcomes:
        lines += [
            "",
            f"## {outcome.claim}",
            "",
            f"**{outcome.mark.value}** ({outcome.part}/{outcome.id}, held against theirs "
            f"{outcome.ground})",
            "",
            f"* theirs: {told_theirs(outcome)}",
            f"* ours: {told_ours(outcome)}",
            f"* {outcome.sentence}",
            *(f"* of theirs: {note}" for note in outcome.figure.notes),
        ]
    return "\n".join(lines) + "\n"


def write(
    shelf: Shelf,
    run_id: str,
    outcomes: Sequence[Outcome],
    directory: Path,
    warnings: Sequence[str] = (),
) -> Path:
    """Writes study.md and study.json into a run's report folder; returns the path of study.md."""
    document = {
        "study": shelf.name,
        "run": run_id,
        "warnings": list(warnings),
        "comparisons": [outcome.to_json() for outcome in outcomes],
    }
    page = directory / "study.md"
    texts = {
        page: markdown(shelf, run_id, outcomes, warnings),
        directory / "study.json": json.dumps(finite(document), indent=2, ensure_ascii=False) + "\n",
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            aside = path.with_name(f".{path.name}.part")
            aside.write_text(text, encoding="utf-8")
            os.replace(aside, path)
    except OSError as error:
        raise StoreError(
            f"Cannot write the comparison to '{directory}': {error.strerror or error}.",
            f"Free some space, then run `nephoscope study show {shelf.name}`.",
        ) from error
    return page


def finite(value: Any) -> Any:
    """The value with numbers that JSON lacks as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list) else value


def _told_n(figure: Figure) -> str:
    return "n not given" if figure.n is None else f"n {figure.n}"


def _told_estimate(estimate: Estimate, unit: str) -> str:
    return f"{_told(estimate.value, estimate.low, estimate.high, unit)}, n {estimate.n}"


def _told(value: float, low: float | None, high: float | None, unit: str) -> str:
    digits = 4
    text = f"{units.format_number(value, digits)} {unit}".rstrip()
    if low is None and high is None:
        return f"{text}, no interval"
    bounds = ["?" if one is None else units.format_number(one, digits) for one in (low, high)]
    return f"{text} [{', '.join(bounds)}]"
