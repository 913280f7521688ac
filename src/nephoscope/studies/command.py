"""`nephoscope study list|show|run`: the reference studies, compared with runs of their plans."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.commands import output
from nephoscope.commands.measuring import NOTHING_VALID
from nephoscope.studies import text

if TYPE_CHECKING:
    from nephoscope.plans import Plan
    from nephoscope.store import Store, StoredRun
    from nephoscope.studies import ConclusionOutcome, Part, PartResult, ReferenceStudy


def list_(*, store: Path | None, as_json: bool) -> int:
    """Prints every study: parts, how many numbers it published, its last run here."""
    from nephoscope import studies
    from nephoscope.store import Store

    runs = Store(store)
    rows = [_row(study, runs) for study in studies.load_all()]
    if as_json:
        output.document({"studies": rows})
        return 0
    for row in rows:
        output.say(text.list_entry(row) + "\n")
    output.say("`nephoscope study show NAME` prints the numbers, `study run NAME` measures.")
    return 0


def show(name: str, *, store: Path | None, as_json: bool) -> int:
    """Prints a study's numbers as printed, and the comparison where a run exists."""
    from nephoscope import studies
    from nephoscope.store import Store

    study = studies.load(name)
    parts = _compared(study, Store(store))
    conclusions = _conclusions(study, parts)
    if as_json:
        output.document(_document(study, parts, conclusions))
        return 0
    output.say(f"{text.published(study)}\n\n{text.comparison(study, parts, conclusions)}")
    return 0


def run(
    name: str,
    *,
    scale: str,
    parts: Sequence[str],
    store: Path | None,
    seed: int | None,
    as_json: bool,
    fresh: bool,
) -> int:
    """Measures the parts that have a plan, one after the other, and prints the comparison.

    A part that fails does not keep the others from being measured; the exit code is the worst.
    """
    from nephoscope import studies
    from nephoscope.errors import Interrupted, NephoscopeError
    from nephoscope.store import Store

    study = studies.load(name)
    chosen = [study.part(part) for part in parts] or [
        part for part in study.definition.parts if part.plan
    ]
    # Every plan is read before anything is measured.
    plans = [(part, _seeded(studies.plan_of(study, part, scale), seed)) for part in chosen]
    measured: dict[str, PartResult] = {}
    runs = Store(store)
    code, began = 0, time.monotonic()
    for number, (part, plan) in enumerate(plans, 1):
        output.log(f"{study.name}, {part.name} ({number} of {len(plans)}): {part.title}")
        try:
            stored, result = _measured(study, part, plan, runs, fresh=fresh)
            measured[stored.id] = result
            code = code or (0 if _has_valid_trials(stored) else NOTHING_VALID)
        except Interrupted:
            raise
        except NephoscopeError as error:
            if len(plans) == 1:
                raise
            code = max(
                code, output.complain(f"{study.name}, {part.name}: {error}", error.exit_code)
            )
    # Earlier runs of the other parts belong to the study's page and conclusions too.
    all_parts = _compared(study, runs, measured)
    conclusions = _conclusions(study, all_parts)
    results = list(measured.values())
    if as_json:
        document = studies.document_of(results, conclusions)
        output.document({"name": study.name, "scale": scale, **document})
    else:
        output.say(text.comparison(study, results, conclusions))
        output.say("\n" + text.summary(results, time.monotonic() - began))
    if all_parts:
        page = studies.write(study, all_parts, runs.path / "studies" / study.name, conclusions)
        output.log(f"All parts: {page}")
    return code


def _seeded(plan: Plan, seed: int | None) -> Plan:
    return plan if seed is None else plan.model_copy(update={"seed": seed})


def _measured(
    study: ReferenceStudy, part: Part, plan: Plan, store: Store, *, fresh: bool
) -> tuple[StoredRun, PartResult]:
    from nephoscope import capabilities, runs, studies
    from nephoscope.commands import measuring

    stored = measuring.executed(plan, store, fresh=fresh)
    result = measuring.finished(capabilities.build(stored))
    capabilities.write(result, stored.report_path)
    part_result = studies.compare_part(study, part, result, text.warnings(stored))
    page = studies.write(study, [part_result], stored.report_path)
    runs.mark_reported(stored)
    output.log(f"Report: {stored.report_path / 'report.html'}\nComparison: {page}")
    return stored, part_result


def _has_valid_trials(stored: StoredRun) -> bool:
    from nephoscope.store import counts

    return any(counts(record) for record in stored.records())


def _compared(
    study: ReferenceStudy, store: Store, known: Mapping[str, PartResult] | None = None
) -> list[PartResult]:
    """Compares the newest run of each part; `known`: results that exist already, by run."""
    from nephoscope import capabilities, studies

    results = []
    for part in study.definition.parts:
        stored = _last_run(study.plan_names(part), store)
        if stored is not None and known and stored.id in known:
            results.append(known[stored.id])
        elif stored is not None:
            result, warnings = capabilities.build(stored), text.warnings(stored)
            results.append(studies.compare_part(study, part, result, warnings))
    return results


def _conclusions(study: ReferenceStudy, parts: Sequence[PartResult]) -> list[ConclusionOutcome]:
    from nephoscope import studies

    outcomes = [outcome for part in parts for outcome in part.outcomes]
    return studies.conclude(study.definition, outcomes)


def _last_run(plan_names: Sequence[str], store: Store) -> StoredRun | None:
    """The newest run of those plans that was measured to the end."""
    from nephoscope.store import FINISHED, MEASURED

    complete = [
        stored
        for stored in store.runs()
        if stored.manifest.get("plan_name") in plan_names and stored.state in (FINISHED, MEASURED)
    ]
    return max(complete, key=lambda each: float(each.manifest.get("created_at", 0)), default=None)


def _row(study: ReferenceStudy, store: Store) -> dict[str, Any]:
    about = study.definition
    names = [name for part in about.parts for name in study.plan_names(part)]
    last = _last_run(names, store)
    return {
        "name": study.name,
        "title": about.title,
        "authors": list(about.authors),
        "year": about.year,
        "numbers": len(study.numbers),
        "parts": [
            {"name": part.name, "title": part.title, "available": bool(part.plan)}
            for part in about.parts
        ],
        "last_run": last.id if last else None,
    }


def _document(
    study: ReferenceStudy, parts: Sequence[PartResult], conclusions: Sequence[ConclusionOutcome]
) -> dict[str, Any]:
    from nephoscope import studies

    about = study.definition
    fields = {"title", "authors", "year", "venue", "question"}
    document = {
        "name": study.name,
        **about.model_dump(include=fields),
        "parts": [
            part.model_dump(include={"name", "title", "section"})
            | {"not_yet": part.not_yet or None}
            for part in about.parts
        ],
        "printed_tables": study.tables,
        "missing_tables": study.missing,
        "numbers": study.numbers,
    }
    values: dict[str, Any] = studies.as_json(document)
    return {**values, **studies.document_of(parts, conclusions)}
