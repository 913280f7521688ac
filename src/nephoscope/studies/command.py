"""`nephoscope study list|show|run`: the reference studies, and ours beside theirs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.commands import output
from nephoscope.commands.measuring import NOTHING_VALID
from nephoscope.studies import text

if TYPE_CHECKING:
    from nephoscope.plans import Plan
    from nephoscope.store import Store, StoredRun
    from nephoscope.studies import Concluded, Outcome, Part, PartResult, Shelf


def list_(*, store: Path | None, as_json: bool) -> int:
    """Prints every study: parts, how many numbers it published, its last run here."""
    from nephoscope import studies
    from nephoscope.store import Store

    place = Store(store)
    rows = [_row(shelf, place) for shelf in studies.load_all()]
    if as_json:
        output.document({"studies": rows})
        return 0
    for row in rows:
        output.say(text.entry(row) + "\n")
    output.say("`nephoscope study show NAME` prints the numbers, `study run NAME` measures ours.")
    return 0


def show(name: str, *, store: Path | None, as_json: bool) -> int:
    """Prints a study's numbers as they stand, and ours beside them where a run exists."""
    from nephoscope import studies
    from nephoscope.store import Store

    shelf = studies.load(name)
    found = _compared(shelf, Store(store))
    concluded = studies.conclude(shelf.study, _outcomes(found))
    if as_json:
        output.document(_document(shelf, found, concluded))
        return 0
    output.say(f"{text.page(shelf)}\n\n{text.beside(shelf, found, concluded)}")
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
    """Measures the parts that exist here, one after the other, and prints the comparison.

    A part that fails does not keep the others from being measured; the exit code is the worst.
    """
    from nephoscope import studies
    from nephoscope.errors import Interrupted, NephoscopeError
    from nephoscope.store import Store

    shelf = studies.load(name)
    chosen = [shelf.part(part) for part in parts] or [p for p in shelf.study.parts if p.plan]
    # Every plan is read before anything is measured.
    plans = [(part, _seeded(studies.plan_of(shelf, part, scale), seed)) for part in chosen]
    found: list[PartResult] = []
    known: dict[str, PartResult] = {}
    place = Store(store)
    code, nothing, began = 0, False, time.monotonic()
    for number, (part, plan) in enumerate(plans, 1):
        output.log(f"{shelf.name}, {part.name} ({number} of {len(plans)}): {part.title}")
        try:
            stored, one = _measured(shelf, part, plan, place, fresh=fresh)
            found.append(one)
            known[stored.id] = one
            nothing |= not _valid(stored)
        except Interrupted:
            raise
        except NephoscopeError as error:
            if len(plans) == 1:
                raise
            told = output.complain(f"{shelf.name}, {part.name}: {error}", error.exit_code)
            code = max(code, told)
    # What was measured earlier of the other parts belongs to the study's page and conclusions too.
    whole = _compared(shelf, place, known)
    concluded = studies.conclude(shelf.study, _outcomes(whole))
    if as_json:
        output.document(_run_document(shelf, scale, found, concluded))
    else:
        output.say(text.beside(shelf, found, concluded))
        output.say("\n" + text.summary(found, time.monotonic() - began))
    if whole:
        page = studies.write(shelf, whole, place.path / "studies" / shelf.name, concluded)
        output.log(f"All parts: {page}")
    return code or (NOTHING_VALID if nothing else 0)


def _seeded(plan: Plan, seed: int | None) -> Plan:
    return plan if seed is None else plan.model_copy(update={"seed": seed})


def _measured(
    shelf: Shelf, part: Part, plan: Plan, store: Store, *, fresh: bool
) -> tuple[StoredRun, PartResult]:
    from nephoscope import capabilities, runs, studies
    from nephoscope.commands import measuring

    stored = measuring.executed(plan, store, fresh=fresh)
    result = measuring.finished(capabilities.build(stored))
    capabilities.write(result, stored.report_path)
    one = studies.beside(shelf, part, result, text.warnings(stored))
    page = studies.write(shelf, [one], stored.report_path)
    runs.mark_reported(stored)
    output.log(f"Report: {stored.report_path / 'report.html'}\nComparison: {page}")
    return stored, one


def _valid(stored: StoredRun) -> bool:
    from nephoscope.store import counts

    return any(counts(record) for record in stored.records())


def _compared(
    shelf: Shelf, store: Store, known: Mapping[str, PartResult] | None = None
) -> list[PartResult]:
    """The newest run of each part that is here, compared anew; `known` are those that just were,
    by their run."""
    from nephoscope import capabilities, studies

    found = []
    for part in shelf.study.parts:
        stored = _last_run(shelf.plan_names(part), store)
        if stored is not None and known and stored.id in known:
            found.append(known[stored.id])
        elif stored is not None:
            told = text.warnings(stored)
            found.append(studies.beside(shelf, part, capabilities.build(stored), told))
    return found


def _outcomes(found: Sequence[PartResult]) -> list[Outcome]:
    return [outcome for one in found for outcome in one.outcomes]


def _last_run(plan_names: Sequence[str], store: Store) -> StoredRun | None:
    """The newest run of those plans that measured something to the end."""
    from nephoscope.store import FINISHED, MEASURED

    mine = [
        stored
        for stored in store.runs()
        if stored.manifest.get("plan_name") in plan_names and stored.state in (FINISHED, MEASURED)
    ]
    return max(mine, key=lambda stored: float(stored.manifest.get("created_at", 0)), default=None)


def _row(shelf: Shelf, store: Store) -> dict[str, Any]:
    names = [name for part in shelf.study.parts for name in shelf.plan_names(part)]
    last = _last_run(names, store)
    return {
        "name": shelf.name,
        "title": shelf.study.title,
        "authors": list(shelf.study.authors),
        "year": shelf.study.year,
        "numbers": len(shelf.numbers),
        "parts": [
            {"name": part.name, "title": part.title, "here": bool(part.plan)}
            for part in shelf.study.parts
        ],
        "last_run": last.id if last else None,
    }


def _document(
    shelf: Shelf, found: Sequence[PartResult], concluded: Sequence[Concluded]
) -> dict[str, Any]:
    from nephoscope.studies import document_of
    from nephoscope.studies.writing import finite

    study = shelf.study
    document: dict[str, Any] = {
        "name": shelf.name,
        "title": study.title,
        "authors": list(study.authors),
        "year": study.year,
        "venue": study.venue,
        "question": study.question,
        "parts": [
            {"name": p.name, "title": p.title, "section": p.section, "not_yet": p.not_yet or None}
            for p in study.parts
        ],
        "tables": [table.model_dump() for table in shelf.tables],
        "lost": [lost.model_dump() for lost in shelf.lost],
        "numbers": [asdict(number) for number in shelf.numbers],
        **document_of(found, concluded),
    }
    return dict(finite(document))


def _run_document(
    shelf: Shelf, scale: str, found: Sequence[PartResult], concluded: Sequence[Concluded]
) -> dict[str, Any]:
    from nephoscope.studies import document_of
    from nephoscope.studies.writing import finite

    document = {"name": shelf.name, "scale": scale, **document_of(found, concluded)}
    return dict(finite(document))
