"""`nephoscope study list|show|run`: the reference studies, and ours beside theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.commands import output, study_text
from nephoscope.commands.measuring import NOTHING_VALID

if TYPE_CHECKING:
    from nephoscope.plans import Plan
    from nephoscope.store import Store, StoredRun
    from nephoscope.studies import Outcome, Part, Shelf

    _Compared = tuple[StoredRun, list[Outcome]]


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
        output.say(study_text.entry(row) + "\n")
    output.say("`nephoscope study show NAME` prints the numbers, `study run NAME` measures ours.")
    return 0


def show(name: str, *, store: Path | None, as_json: bool) -> int:
    """Prints a study's numbers as they stand, and ours beside them where a run exists."""
    from nephoscope import studies
    from nephoscope.store import Store

    shelf = studies.load(name)
    found = _compared(shelf, Store(store))
    if as_json:
        output.document(_document(shelf, found))
        return 0
    output.say(f"{study_text.page(shelf)}\n\n{study_text.comparisons(shelf, found)}")
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
    found: list[_Compared] = []
    code = 0
    for part, plan in plans:
        try:
            found.append(_measured(shelf, part, plan, Store(store), fresh=fresh))
        except Interrupted:
            raise
        except NephoscopeError as error:
            if len(plans) == 1:
                raise
            told = output.complain(f"{shelf.name}, {part.name}: {error}", error.exit_code)
            code = max(code, told)
    if as_json:
        output.document(_run_document(shelf, scale, found))
    else:
        output.say(study_text.comparisons(shelf, found))
    return code or (0 if all(_valid(stored) for stored, _ in found) else NOTHING_VALID)


def _seeded(plan: Plan, seed: int | None) -> Plan:
    return plan if seed is None else plan.model_copy(update={"seed": seed})


def _measured(shelf: Shelf, part: Part, plan: Plan, store: Store, *, fresh: bool) -> _Compared:
    from nephoscope import report, results, runs, studies
    from nephoscope.commands import measuring

    output.log(f"{shelf.name}, {part.name}: {part.title}")
    stored = measuring.executed(plan, store, fresh=fresh)
    result = measuring.finished(results.build(stored))
    report.write(result, stored.report_path)
    outcomes = studies.compare(shelf, part, result)
    page = studies.write(
        shelf, stored.id, outcomes, stored.report_path, study_text.warnings(stored)
    )
    runs.mark_reported(stored)
    output.log(f"Report: {stored.report_path / 'report.html'}\nComparison: {page}")
    return stored, outcomes


def _valid(stored: StoredRun) -> bool:
    from nephoscope.store import counts

    return any(counts(record) for record in stored.records())


def _compared(shelf: Shelf, store: Store) -> list[_Compared]:
    """The newest run of each part that is here, compared anew."""
    from nephoscope import results, studies

    found = []
    for part in shelf.study.parts:
        stored = _last_run(shelf.plan_names(part), store)
        if stored is not None:
            found.append((stored, studies.compare(shelf, part, results.build(stored))))
    return found


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


def _document(shelf: Shelf, found: Sequence[_Compared]) -> dict[str, Any]:
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
        **_found(found),
    }
    return dict(finite(document))


def _run_document(shelf: Shelf, scale: str, found: Sequence[_Compared]) -> dict[str, Any]:
    from nephoscope.studies.writing import finite

    return dict(finite({"name": shelf.name, "scale": scale, **_found(found)}))


def _found(found: Sequence[_Compared]) -> dict[str, Any]:
    return {
        "runs": [stored.id for stored, _ in found],
        "warnings": {stored.id: study_text.warnings(stored) for stored, _ in found},
        "comparisons": [one.to_json() for _, outcomes in found for one in outcomes],
    }
