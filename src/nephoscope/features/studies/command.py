"""`nephoscope study list|show|run`: the reference studies, compared with runs of their plans."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import MEASURES, Document, Query, command, group
from nephoscope.cli.kit.documents import Rows
from nephoscope.cli.kit.named import Named
from nephoscope.cli.kit.options import argument
from nephoscope.features.studies import terminal
from nephoscope.features.studies.available_hosts import without_missing_platforms
from nephoscope.features.studies.census_request import (
    StudyCensusOptions,
    StudyCensusRequest,
    is_asked_for,
    performer,
)

if TYPE_CHECKING:
    from nephoscope.features.studies.catalogue import ReferenceStudy
    from nephoscope.features.studies.comparison.conclusions import ConclusionOutcome
    from nephoscope.features.studies.comparison.part_result import PartResult
    from nephoscope.features.studies.definition.study import Part
    from nephoscope.measure.plans import Plan
    from nephoscope.store import Store, StoredRun


def _names(context: click.Context) -> list[str]:
    from nephoscope.features.studies import catalogue

    return [known.name for known in catalogue.load_all()]


STUDY = Named(names=_names)


@dataclass(frozen=True, slots=True)
class Studies:
    """Published studies with their parts and the last run of each."""

    studies: Rows


@group()
def study() -> None:
    """Reproduce the five reference studies."""


@dataclass(frozen=True, slots=True)
class _StudyListArguments:
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    study,
    prints=Document("studies", Studies),
    requests=Query(),
    examples=(
        "",
        "--json",
    ),
)
def list_(args: _StudyListArguments) -> None:
    """List the studies: parts, published numbers, last run."""
    from nephoscope.features.studies import catalogue
    from nephoscope.store import Store

    runs = Store(args.store)
    rows = [_row(known, runs) for known in catalogue.load_all()]
    if args.as_json:
        output.document({"studies": rows})
        return
    for row in rows:
        output.say(terminal.list_entry(row) + "\n")
    output.say("`nephoscope study show NAME` prints the numbers, `study run NAME` measures.")


@dataclass(frozen=True, slots=True)
class _StudyShowArguments:
    name: str = argument(STUDY)
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    study,
    prints=Document("study", ".features.studies.documents:StudyDocument"),
    requests=Query(),
    examples=(
        "zhuang-2012",
        "delgado-2010",
    ),
)
def show(args: _StudyShowArguments) -> None:
    """Print the published results of NAME beside those measured here."""
    from nephoscope.features.studies import catalogue
    from nephoscope.store import Store

    reference = catalogue.load(args.name)
    parts = _compared(reference, Store(args.store))
    conclusions = _conclusions(reference, parts)
    if args.as_json:
        output.document(_document(reference, parts, conclusions))
    else:
        compared = terminal.comparison(reference, parts, conclusions)
        output.say(f"{terminal.published(reference)}\n\n{compared}")


@dataclass(frozen=True, slots=True)
class _StudyRunArguments:
    name: str = argument(STUDY)
    scale: str = options.option(
        "--scale",
        click.Choice(["small", "paper"]),
        "Scale of the experiment: minutes on two CPUs, or as published.",
        default="small",
    )
    parts: Sequence[str] = options.repeated(
        "--part", "PART", "Part of the study to run [default: all]."
    )
    census: StudyCensusOptions = options.group(StudyCensusOptions)
    seed: int | None = options.SEED
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    as_json: bool = options.JSON
    fresh: bool = options.FRESH


@command(
    study,
    prints={
        "": Document("study_run", ".features.studies.documents:StudyRun"),
        "--provider": Document("study_census", ".features.cloud.study_records:StudyCensusResult"),
    },
    requests=MEASURES,
    examples=(
        "zhuang-2012",
        "delgado-2010 --part isolation",
    ),
)
def run(args: _StudyRunArguments) -> int:
    """Repeat the experiments of NAME and compare the results.

    With --provider the study's census of CPU models alone is repeated, on machines that are rented
    for it; --from takes a stored census instead.
    """
    # A part that fails does not keep the others from being measured; the exit code is the worst.
    from nephoscope.core.errors import Interrupted, NephoscopeError
    from nephoscope.features.studies import catalogue
    from nephoscope.features.studies.report import section
    from nephoscope.store import Store

    study = catalogue.load(args.name)
    if is_asked_for(args.census, args.parts, args.scale):
        request = StudyCensusRequest(args.census, args.store, args.as_json, args.fresh)
        return performer()(study, request)
    chosen = [study.part(part) for part in args.parts] or [
        part for part in study.definition.parts if part.plan
    ]
    # Every plan is read before anything is measured.
    plans = [
        (part, _seeded(catalogue.plan_of(study, part, args.scale), args.seed)) for part in chosen
    ]
    measured: dict[str, PartResult] = {}
    runs = Store(args.store)
    code, began = 0, time.monotonic()
    for number, (part, plan) in enumerate(plans, 1):
        output.log(f"{study.name}, {part.name} ({number} of {len(plans)}): {part.title}")
        plan, missing = without_missing_platforms(plan)
        if missing:
            output.log(missing)
        try:
            result, is_valid = _measured(study, part, plan, runs, fresh=args.fresh)
            measured[result.run] = result
            code = code or (0 if is_valid else measuring.NOTHING_VALID)
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
    if args.as_json:
        document = section.document_of(results, conclusions)
        output.document({"name": study.name, "scale": args.scale, **document})
    else:
        output.say(terminal.comparison(study, results, conclusions))
        output.say("\n" + terminal.summary(results, time.monotonic() - began))
    if all_parts:
        path = section.write(study, all_parts, runs.path / "studies" / study.name, conclusions)
        output.log(f"All parts: {path}")
    return code


def _seeded(plan: Plan, seed: int | None) -> Plan:
    return plan if seed is None else plan.model_copy(update={"seed": seed})


def _measured(
    study: ReferenceStudy, part: Part, plan: Plan, store: Store, *, fresh: bool
) -> tuple[PartResult, bool]:
    """Returns the comparison of a new run of the part, and whether a trial of it is valid."""
    from nephoscope.features.studies.comparison.part_result import compare_part
    from nephoscope.features.studies.report import section

    stored = measuring.executed(plan, store, fresh=fresh)
    result = measuring.reported(stored)
    part_result = compare_part(study, part, result, terminal.warnings(stored))
    path = section.write(study, [part_result], stored.report_path)
    output.log(f"Comparison: {path}")
    return part_result, result.run.trials.valid > 0


def _compared(
    study: ReferenceStudy, store: Store, known: Mapping[str, PartResult] | None = None
) -> list[PartResult]:
    """Compares the newest run of each part; `known`: results that exist already, by run."""
    from nephoscope.features.studies.comparison.part_result import compare_part
    from nephoscope.results import analyse_run

    results = []
    for part in study.definition.parts:
        stored = _last_run(study.plan_names(part), store)
        if stored is not None and known and stored.id in known:
            results.append(known[stored.id])
        elif stored is not None:
            result, warnings = analyse_run.build(stored), terminal.warnings(stored)
            results.append(compare_part(study, part, result, warnings))
    return results


def _conclusions(study: ReferenceStudy, parts: Sequence[PartResult]) -> list[ConclusionOutcome]:
    from nephoscope.features.studies.comparison.conclusions import conclude

    outcomes = [outcome for part in parts for outcome in part.outcomes]
    return conclude(study.definition, outcomes)


def _last_run(plan_names: Sequence[str], store: Store) -> StoredRun | None:
    """The newest run of those plans that was measured to the end."""
    from nephoscope.store import FINISHED, MEASURED

    complete = [
        stored
        for stored in store.runs()
        if stored.manifest.plan_name in plan_names and stored.state in (FINISHED, MEASURED)
    ]
    return max(complete, key=lambda each: float(each.manifest.created_at), default=None)


def _row(study: ReferenceStudy, store: Store) -> dict[str, Any]:
    from nephoscope.features.studies.definition.contents import counts

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
            {"name": part.name, "title": part.title, "available": not part.not_yet}
            for part in about.parts
        ],
        "contents": counts(study.contents),
        "last_run": last.id if last else None,
    }


def _document(
    study: ReferenceStudy, parts: Sequence[PartResult], conclusions: Sequence[ConclusionOutcome]
) -> dict[str, Any]:
    from nephoscope.core import documents
    from nephoscope.features.studies import agreements
    from nephoscope.features.studies.report import section

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
        "contents": [
            {
                "name": entry.name,
                "title": entry.title,
                "state": entry.state,
                "explanation": entry.explanation,
            }
            for entry in study.contents
        ],
        "printed_tables": study.tables,
        "missing_tables": study.missing,
        "numbers": study.numbers,
        "agreements": agreements.figures(study),
    }
    values: dict[str, Any] = documents.to_json(document)
    return {**values, **section.document_of(parts, conclusions)}
