"""The metrics of a run as its page shows them: headline results, then all by group and setting.

Names, settings and texts of values are those of the report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from nephoscope import catalog
from nephoscope.core.errors import StoreError
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Better, Consistency, Estimate, MetricResult, factors_key
from nephoscope.core.naming import common_factors, level_texts
from nephoscope.httpd.responses import RenderedResponse, failure
from nephoscope.report import selection, summary, wording
from nephoscope.results import names
from nephoscope.serve.answers import NOT_NOW, document, stored_result
from nephoscope.store import Store

MAX_HEADLINES = 12
"""Headline results of a page; of several targets together."""


@dataclass(frozen=True, slots=True)
class NamedEstimate:
    """An estimate under the name that the report gives it.

    run: that measured it. title: of the metric; setting: what distinguishes it from others of that
    title, in words. factors: the whole setting as JSON text, which addresses its history and
    samples. levels: factor -> its level in words, of the whole setting. value, interval, variation:
    as texts of the report. doubts: sentences on why a reader must doubt it.
    """

    run: str
    title: str
    setting: str
    benchmark: str
    metric: str
    target: str
    factors: str
    levels: Mapping[str, str]
    better: Better
    estimate: Estimate
    value: str
    interval: str
    variation: str
    headline: bool
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricTable:
    """A metric at all its settings, sizes and counts in ascending order.

    about: what its benchmark measures. setting: what all lines share, in words.
    """

    title: str
    about: str
    setting: str
    headline: bool
    lines: tuple[NamedEstimate, ...]


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """The metrics of a kind of benchmarks, such as 'Memory'. count: number of estimates."""

    title: str
    count: int
    tables: tuple[MetricTable, ...]


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """The metrics of a run. headlines: the results of the report's summary."""

    run: str
    targets: tuple[str, ...]
    headlines: tuple[NamedEstimate, ...]
    groups: tuple[MetricGroup, ...]


def metrics(store: Store, run: str, analyse: bool) -> RenderedResponse:
    """Returns the metrics of a run from its stored result, else from a new one.

    analyse: False where no new one may be made now.
    """
    stored = store.open(run)
    text = stored_result(stored)
    if text is not None:
        return document(of_metrics(run, read_metrics(run, json.loads(text))))
    if not analyse:
        return failure(503, *NOT_NOW)
    from nephoscope.results import analyse_run

    return document(of_metrics(run, analyse_run.build(stored).metrics))


def read_metrics(run: str, result: Mapping[str, Any]) -> tuple[MetricResult, ...]:
    """Returns the metrics in the document of a result. Raises StoreError where it has others."""
    stated = {field.name for field in fields(MetricResult)}
    try:
        return tuple(
            MetricResult(
                **{
                    **{name: value for name, value in line.items() if name in stated},
                    "better": Better(line["better"]),
                    "estimate": Estimate(**line["estimate"]),
                    "consistency": Consistency(**line["consistency"]),
                    "warnings": tuple(line["warnings"]),
                }
            )
            for line in result["metrics"]
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{run}: its result is of another version.", f"Run `nephoscope show {run}`."
        ) from error


def of_metrics(run: str, lines: Sequence[MetricResult]) -> RunMetrics:
    """Returns the headline results and the groups of these metrics."""
    targets = tuple(dict.fromkeys(line.target for line in lines))
    by_group = group_by(
        selection.natural_order(lines), lambda line: wording.group_of(line.benchmark)
    )
    return RunMetrics(
        run,
        targets,
        tuple(line for target in targets for line in headlines_of(run, lines, target))[
            :MAX_HEADLINES
        ],
        tuple(
            MetricGroup(title, len(own), tuple(_tables(run, own, len(targets))))
            for title, own in by_group.items()
        ),
    )


def headlines_of(run: str, lines: Iterable[MetricResult], target: str) -> list[NamedEstimate]:
    """Returns the headline results of a target, those of the report's summary."""
    own = [line for line in lines if line.target == target]
    return [named(run, title, setting, line) for title, setting, line in summary.choose(own)]


def named(run: str, title: str, setting: str, line: MetricResult) -> NamedEstimate:
    """Returns a metric under a title and a setting in words."""
    return NamedEstimate(
        run=run,
        title=title,
        setting=setting,
        benchmark=line.benchmark,
        metric=line.metric,
        target=line.target,
        factors=factors_key(line.factors),
        levels=level_texts(line.factors),
        better=line.better,
        estimate=line.estimate,
        value=wording.value_text(line.estimate),
        interval=wording.interval_text(line.estimate),
        variation=wording.consistency_text(line.consistency),
        headline=line.headline,
        doubts=tuple(map(wording.clean, names.doubts(line))),
    )


def _tables(run: str, lines: Sequence[MetricResult], targets: int) -> Iterable[MetricTable]:
    known = catalog.load().benchmarks
    for (benchmark, metric), own in group_by(
        lines, lambda line: (line.benchmark, line.metric)
    ).items():
        title = wording.full_name(benchmark, metric)
        spec = known.get(benchmark)
        shared = common_factors([line.factors for line in own]) if len(own) > 1 else {}
        yield MetricTable(
            title=title,
            about="" if spec is None else wording.clean(spec.summary),
            setting=wording.factors_text(shared),
            headline=any(line.headline for line in own),
            lines=tuple(
                named(run, title, wording.setting_text(line, targets, leave_out=shared), line)
                for line in own
            ),
        )
