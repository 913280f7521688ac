"""A study's census of CPU models, repeated on rented machines or taken from stored ones.

Hardware of another cloud at another time reproduces no share. What can be reproduced, in kind, is
that one type has several models, and that they differ in speed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nephoscope.cli.kit import output
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural
from nephoscope.features.census import command as censuses
from nephoscope.features.census import section as models
from nephoscope.features.census.analysis import RelativeSpeed
from nephoscope.features.census.records import Census, InstanceType
from nephoscope.features.cloud.choice import CloudChoice
from nephoscope.features.cloud.study_records import (
    ShareComparison,
    StatementOutcome,
    StudyCensusResult,
)
from nephoscope.features.studies.catalogue import ReferenceStudy
from nephoscope.features.studies.census_request import StudyCensusOptions, StudyCensusRequest
from nephoscope.features.studies.comparison.rules import Judgement, Mark, Range, in_kind
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.report.blocks import Block, Heading, Section, Sentence
from nephoscope.report.columns import number, table, text
from nephoscope.store import Store, StoredRun

if TYPE_CHECKING:
    from nephoscope.features.cloud.census import CensusSpec

CONFIDENCE = 0.95
_GROUND = (
    "in kind: other hardware, rented {when} from {clouds}, where the study counted machines of "
    "{year}. No share of it can be reproduced or contradicted by that"
)


def carry_out(study: ReferenceStudy, request: StudyCensusRequest) -> int:
    """Rents or reads the machines, and prints both censuses; returns the exit code."""
    published = censuses.of_study(study.name, CONFIDENCE)
    store = Store(request.store)
    if request.wanted.census_runs:
        planned, code = None, 0
        runs = [store.open(name) for name in request.wanted.census_runs]
    else:
        made = _rented(request, store)
        if made is None:
            return 0
        runs, planned, code = made
    measured = censuses.of_runs(runs, store, CONFIDENCE)
    result = shares(study, published, measured, runs, planned)
    present(result, section(study, result), as_json=request.as_json)
    return code


def _rented(request: StudyCensusRequest, store: Store) -> tuple[list[StoredRun], int, int] | None:
    """Returns the runs of a census on rented machines, how many were planned, and the exit code;
    None for a preview."""
    from nephoscope.features.cloud import census_command

    wanted = request.wanted
    campaign = census_command.campaign_of(
        CloudChoice(wanted.provider, wanted.endpoint, wanted.profile),
        _spec(wanted),
        store,
        fresh=request.fresh,
        dry_run=wanted.dry_run,
    )
    if campaign is None:
        return None
    missing = campaign.planned - len(campaign.measured)
    if missing:
        output.warn(
            f"{len(campaign.measured)} of {plural(campaign.planned, 'planned machine')} were "
            f"measured. {campaign.stopped}"
        )
    return campaign.runs, campaign.planned, census_command.INCOMPLETE if missing else 0


def _spec(wanted: StudyCensusOptions) -> CensusSpec:
    from nephoscope.features.cloud.census import CensusSpec

    return CensusSpec(
        CloudSettings(wanted.provider, wanted.endpoint, wanted.profile),
        wanted.region,
        tuple(dict.fromkeys(wanted.types)),
        tuple(dict.fromkeys(wanted.zones)),
        wanted.image,
        wanted.count or 1,
        at_once=16,
        money=wanted.money,
        currency=wanted.currency,
    )


def shares(
    study: ReferenceStudy,
    published: Census,
    measured: Census,
    runs: Sequence[StoredRun],
    planned: int | None,
) -> StudyCensusResult:
    """Returns both censuses side by side. Raises UsageError for runs without rented machines."""
    rented = [entry for run in runs for entry in run.manifest.rented.values()]
    if not rented:
        names = ", ".join(run.id for run in runs)
        raise UsageError(
            f"No machine of {names} was rented, so that nothing is known of a cloud.",
            "Name runs of `nephoscope cloud census` or `nephoscope cloud fleet`.",
        )
    clouds = tuple(sorted({f"{entry['provider']} in {entry['region']}" for entry in rented}))
    shares: dict[tuple[str, str, str], ShareComparison] = {}
    statements: list[StatementOutcome] = []
    for kind in measured.kinds:
        reference = _reference(study, published, kind.name)
        for source, entry in (("published", reference), ("measured", kind)):
            for model in entry.models:
                shares[source, entry.name, model.model] = ShareComparison(
                    source, entry.name, model.model, model.count, model.share
                )
        statements += _statements(reference, kind)
    days = sorted({_day(run) for run in runs})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    ground = _GROUND.format(when=when, clouds=" and ".join(clouds), year=study.definition.year)
    return StudyCensusResult(
        study.name,
        ground,
        clouds,
        tuple(run.id for run in runs),
        planned,
        measured.machines,
        tuple(shares.values()),
        tuple(statements),
        measured,
    )


def _day(run: StoredRun) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(run.started_s))


def _reference(study: ReferenceStudy, published: Census, name: str) -> InstanceType:
    """Returns the published type of the same name, else the study's main one."""
    by_name = {kind.name: kind for kind in published.kinds}
    census = study.definition.census
    main = census.reference_type if census is not None else ""
    published_type = by_name.get(name) or by_name.get(main)
    if published_type is None:
        raise UsageError(
            f"{study.name} has no type that stands beside {name}.",
            "Add `reference_type` to the census of its study.yaml.",
        )
    return published_type


def _statements(reference: InstanceType, kind: InstanceType) -> Iterator[StatementOutcome]:
    names = f"{len(reference.models)} in {plural(reference.machines, 'machine')}"
    mark, reason = _several(reference, kind)
    yield StatementOutcome(
        kind.name,
        "Several CPU models stand behind one type",
        f"{names} of {reference.name}",
        f"{len(kind.models)} in {plural(kind.machines, 'machine')}",
        mark,
        reason,
    )
    printed = [speed for bench in reference.benches for speed in bench.speeds]
    if not printed:
        return
    most = max(speed.ratio.value for speed in printed)
    for bench in kind.benches:
        fastest = bench.speeds[0]
        mark, reason = Mark.NOT_COMPARABLE, "one model alone was measured"
        if len(bench.speeds) > 1:
            ratio = fastest.ratio
            mark, reason = Mark.NOT_COMPARABLE, "too few machines for an interval"
            if ratio.low is not None and ratio.high is not None:
                judged: Judgement = in_kind(
                    most, Range(ratio.low, ratio.high), neutral=1, negligible=0.02
                )
                mark, reason = judged
        yield StatementOutcome(
            kind.name,
            f"The models of one type differ in speed: fastest over slowest, {bench.label}",
            f"up to {most:.3g} times in {reference.name}",
            _ratio(bench.speeds),
            mark,
            reason,
        )


def _several(reference: InstanceType, kind: InstanceType) -> Judgement:
    if len(kind.models) > 1:
        return Mark.IN_KIND, "a second model was seen; that needs no interval"
    most = 100 * (kind.unseen_at_most or 1.0)
    return (
        Mark.NOT_COMPARABLE,
        f"one model was seen, and all others together may have up to {most:.0f} % of the machines",
    )


def _ratio(speeds: Sequence[RelativeSpeed]) -> str:
    if len(speeds) < 2:
        return "one model"
    ratio = speeds[0].ratio
    bounds = (
        f", {ratio.low:.3g} to {ratio.high:.3g}"
        if ratio.low is not None and ratio.high is not None
        else ", no interval"
    )
    return f"{ratio.value:.3g} times{bounds} (n = {ratio.n})"


def section(study: ReferenceStudy, result: StudyCensusResult) -> Section:
    """Returns the page: the statements, the shares of both, and the whole census."""
    lead = (
        f"{study.name}, hardware: {plural(result.measured, 'machine')} of "
        f"{' and '.join(result.clouds)} beside {study.definition.title}. Ground: {result.ground}."
    )
    blocks: list[Block] = [
        Sentence(lead, lead=True),
        Heading("Statements of the study"),
        table(
            result.statements,
            text("type", lambda row: row.instance_type),
            text("statement", lambda row: row.claim),
            text("published", lambda row: row.published),
            text("measured", lambda row: row.measured),
            text("mark", lambda row: f"{row.mark}: {row.reason}"),
        ),
        Heading("Shares of CPU models"),
        table(
            result.shares,
            text("source", lambda row: row.source),
            text("type", lambda row: row.instance_type),
            text("model", lambda row: row.model),
            number("machines", lambda row: row.count),
            number("share", lambda row: f"{100 * row.share.value:.0f} %"),
            number("95 % interval", _interval),
            number("n", lambda row: row.share.n),
        ),
        *models.section(result.census).blocks[1:],
    ]
    return Section("study-census", "CPU models beside those of the study", tuple(blocks))


def _interval(row: ShareComparison) -> str:
    low, high = row.share.low, row.share.high
    return "–" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f} %"
