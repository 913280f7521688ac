"""Routes of stored runs: list, result, report, trials, comparison, and the live stream."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Response
from fastapi.responses import StreamingResponse

from nephoscope.core.errors import UsageError
from nephoscope.httpd.responses import Refusal
from nephoscope.serve.dashboard import Shared, json_response, respond
from nephoscope.serve.lab_topology import LabTopology
from nephoscope.serve.measured import MAX_RUNS, Lines
from nephoscope.serve.openapi import (
    RunList,
    RunSearch,
    Samples,
    StartedRun,
    TrialPage,
    answers_with,
)
from nephoscope.serve.overview import Overview, reported_runs, trend_runs
from nephoscope.serve.queries import run_of
from nephoscope.serve.run_metrics import RunMetrics
from nephoscope.serve.trends import PARTIAL, Trends
from nephoscope.store.index import IndexedRun
from nephoscope.store.selection import Selection, day_s, labels

router = APIRouter(prefix="/api/v1")

Names = Annotated[list[str], Query(max_length=50)]
Text = Annotated[str, Query(max_length=500)]


@router.get("/overview", **answers_with(Overview))
async def overview(shared: Shared) -> Response:
    """Returns the targets with their health and last findings, and the newest runs."""
    return respond(await shared.overview())


@router.get("/runs", **answers_with(RunList))
async def runs(
    shared: Shared,
    state: Names = [],  # noqa: B006 - FastAPI copies defaults
    target: Names = [],  # noqa: B006
    benchmark: Names = [],  # noqa: B006
    label: Names = [],  # noqa: B006
    plan: Names = [],  # noqa: B006
    factor: Names = [],  # noqa: B006
    kind: Names = [],  # noqa: B006
    text: Text = "",
    since: Text = "",
    until: Text = "",
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """Lists runs, newest first.

    factor: what the plan varies, for example `resource` in isolation experiments. kind: of a
    target, for example `lab`. text: part of an id, a plan, a target or a label.
    """
    snapshot = await shared.snapshot()
    selection = Selection(
        labels=labels(label),
        targets=frozenset(target),
        benchmarks=frozenset(benchmark),
        states=frozenset(state),
        since_s=day_s("since", since or None),
        until_s=day_s("until", until or None),
    )
    is_any = selection == Selection()
    wanted = text.casefold()
    rows = [
        run.row
        for run in snapshot.runs
        if (not wanted or wanted in run.words)
        and (not plan or run.row.plan in plan)
        and (not factor or not {*factor}.isdisjoint(run.factors))
        and (not kind or not {*kind}.isdisjoint(run.kinds.values()))
        and (is_any or run.meets(selection))
    ]
    return json_response(
        {
            "store": shared.settings.store.address,
            "runs": rows[offset : offset + limit],
            "total": len(rows),
            "offset": offset,
            "complete": snapshot.is_complete,
        }
    )


@router.get("/runs/{run}/result", **answers_with("result"))
async def result(run: str, shared: Shared) -> Response:
    """Returns the result of a run: estimates with intervals, findings, analyses."""
    return await shared.report_of("result", run)


@router.get("/runs/{run}/metrics", **answers_with(RunMetrics))
async def metrics(run: str, shared: Shared) -> Response:
    """Returns the headline results of a run, and all metrics by group, under the report's names."""
    return await shared.report_of("metrics", run)


@router.get("/runs/{run}/report.html", **answers_with(None, "text/html"))
async def report(run: str, shared: Shared) -> Response:
    """Returns the report of a run as a page that stands alone."""
    return await shared.report_of("report", run)


@router.get("/runs/{run}/capacity", **answers_with(RunSearch))
async def capacity(run: str, shared: Shared) -> Response:
    """Returns the stored search of `nephoscope capacity` to which a run belongs."""
    return await shared.of_run("capacity", run)


@router.get("/runs/{run}/lab", **answers_with(LabTopology))
async def lab(run: str, shared: Shared) -> Response:
    """Returns the lab of a run: hosts, switches, links with what holds on them, what is varied."""
    return await shared.of_run("lab", run)


@router.get("/runs/{run}/journal", **answers_with("journal"))
async def journal(run: str, shared: Shared) -> Response:
    """Returns the event log of a run."""
    return await shared.of_run("journal", run)


@router.get("/runs/{run}/trials", **answers_with(TrialPage))
async def trials(
    run: str,
    shared: Shared,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """Returns the trials of a run in the order of execution, excluded ones with the reasons."""
    return await shared.of_run("trials", run, offset=offset, limit=limit)


@router.get("/runs/{run}/samples", **answers_with(Samples))
async def samples(
    run: str, shared: Shared, benchmark: Text, metric: Text, target: Text, factors: Text = "{}"
) -> Response:
    """Returns the samples of a metric in every trial of a run."""
    line = {"benchmark": benchmark, "metric": metric, "target": target, "factors": factors}
    return await shared.of_run("samples", run, **line)


@router.get("/runs/{run}/events", **answers_with(None, "text/event-stream"))
async def events(
    run: str, shared: Shared, last_event_id: Annotated[str, Header(max_length=100)] = ""
) -> StreamingResponse:
    """Streams a run in progress: status, journal, trials with their values and gaps, the end."""
    stored = shared.stored(await shared.run(run))
    shared.live.check_capacity()
    return StreamingResponse(
        shared.live.stream(stored, last_event_id), media_type="text/event-stream"
    )


@router.get("/compare", **answers_with("compare"))
async def compare(
    shared: Shared,
    a: Text,
    b: Names = [],  # noqa: B006
    margin: Annotated[float, Query(gt=0, lt=1)] = 0.03,
    confidence: Annotated[float, Query(gt=0.5, lt=0.9999)] = 0.95,
    metric: Names = [],  # noqa: B006
) -> Response:
    """Compares each `b` with `a`, runs or RUN:TARGET; `a` alone compares its targets."""
    store = shared.settings.store.path
    if not a:
        raise UsageError("compare: 'a' is empty.", "Name a run, and a second one as 'b'.")
    names = [run_of(name, store) for name in (a, *b) if name]
    runs = [await shared.run(name.partition(":")[0]) for name in names]
    version = None if any(run.process is not None for run in runs) else _versions(runs)
    arguments = {"names": names, "margin": margin, "confidence": confidence, "metrics": metric}
    # The variance between runs comes from further runs of the store.
    version = version and (*version, (await shared.snapshot()).total)
    return await shared.analysed("compare", arguments, version)


def _versions(runs: Sequence[IndexedRun]) -> tuple[Any, ...]:
    return tuple(run.signature for run in runs)


@router.get("/lines", **answers_with(Lines))
async def lines(shared: Shared, target: Text = "") -> Response:
    """Lists the metrics that the newest runs of a target (of each, without one) measured."""
    snapshot = await shared.snapshot()
    reported = reported_runs(snapshot, shared.settings.store)
    ids = {name for own in ([target] if target else reported) for name in reported.get(own, ())}
    chosen = [run for run in snapshot.runs if run.row.id in ids][:MAX_RUNS]
    arguments = {"runs": [run.row.id for run in chosen]}
    return await shared.analysed("lines", arguments, _versions(chosen))


@router.get("/trends", **answers_with(Trends, statuses=(200, PARTIAL)))
async def trends(shared: Shared) -> Response:
    """Returns the headline results of each target over its newest runs, with the last change.

    None, and status 202, while a run is measured that the analysis would disturb.
    """
    if not await shared.may_analyse():
        return json_response(Trends((), complete=False), PARTIAL)
    snapshot = await shared.snapshot()
    chosen = trend_runs(snapshot)
    arguments = {
        "runs": {target: [run.row.id for run in runs] for target, runs in chosen.items()},
        "reported": reported_runs(snapshot, shared.settings.store),
        "labels": sorted({name for run in snapshot.runs for name in run.row.labels}),
    }
    version = tuple(_versions(runs) for runs in chosen.values())
    async with shared.trends:
        return await shared.analysed("trends", arguments, version)


@router.post("/runs", status_code=202, **answers_with(StartedRun, statuses=(202,)))
async def start(
    shared: Shared,
    plan: Annotated[str | None, Body(max_length=500)] = None,
    survey: Annotated[str | None, Body(max_length=20)] = None,
) -> Response:
    """Starts a run of a plan in the folder of files, or a survey; needs `--allow-runs`."""
    _check_allowed(shared)
    return json_response({"run": await shared.launcher.start(plan, survey)}, 202)


@router.post("/runs/{run}/stop", **answers_with("stopped"))
async def stop(run: str, shared: Shared) -> Response:
    """Stops a run that is measured on this machine and keeps its trials; needs `--allow-runs`."""
    from nephoscope.measure.runs import stop as stopping

    _check_allowed(shared)
    stored = shared.stored(await shared.run(run))
    return json_response(await asyncio.to_thread(stopping.stop, stored))


def _check_allowed(shared: Shared) -> None:
    if not shared.settings.allow_runs:
        raise Refusal(
            403, "This server only reads.", "Start it with --allow-runs to start and stop runs."
        )
