"""Builds the tables of headline metrics, with all other metrics in a folded table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Factors, MetricResult, RunResult, factors_key
from nephoscope.core.naming import common_factors
from nephoscope.core.setting_tree import tree_of
from nephoscope.report import selection, wording
from nephoscope.report.blocks import Block, Heading, Section, Sentence, Strip
from nephoscope.report.columns import estimate, label, table, text
from nephoscope.results import names

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

_INDENT = "  "
"""Of settings below the name of their metric."""
MAX_OPEN = 100
"""Rows of a group that are not folded away."""

_DRAWINGS = (
    "The small charts show the values of all trials in order of execution, scaled to "
    "at least ±10 % around the median."
)


def build(result: RunResult) -> Section | None:
    """The tables of headline metrics, grouped, and one of everything else."""
    if not result.metrics:
        nothing = "No valid results; see Excluded trials for the reasons."
        return Section("results", "Results", (Sentence(nothing),))
    headline = [metric for metric in result.metrics if metric.headline] or list(result.metrics)
    # By identity: two lines may be equal in all that a comparison sees.
    steps = selection.ladder_steps(result, headline)
    headline = [metric for metric in headline if steps.get(id(metric)) != ""]
    headline_ids = {id(metric) for metric in headline}
    rest = [metric for metric in result.metrics if id(metric) not in headline_ids]
    levels = sorted({metric.estimate.confidence for metric in result.metrics})
    level = wording.joined(map(wording.percent, levels))
    how_to_read = (
        f"Median of n trials with its {level} confidence interval. CV is the "
        "robust coefficient of variation between trials (1.4826 MAD / median); ▲ marks one that "
        "is above 10 % with its whole interval."
    )
    blocks: list[Block] = [Sentence(how_to_read), Sentence(_DRAWINGS, roomy=True)]
    ordered = selection.natural_order(headline)
    for title, metrics in groupby(ordered, key=lambda m: wording.group_of(m.benchmark)):
        own = list(metrics)
        blocks += [Heading(title), *_table("", own[:MAX_OPEN], result, steps)]
        if own[MAX_OPEN:]:
            more = f"{len(own) - MAX_OPEN} more metrics"
            blocks += _table(more, own[MAX_OPEN:], result, steps, collapsed=True)
    if rest:
        ordered = selection.natural_order(rest)
        blocks += _table("Other metrics", ordered, result, {}, collapsed=True)
    return Section("results", "Results", tuple(blocks))


def _table(
    title: str,
    metrics: Sequence[MetricResult],
    result: RunResult,
    steps: Mapping[int, str],
    *,
    collapsed: bool = False,
) -> list[Block]:
    """A table, and below it the reasons to doubt the rows that are marked.

    A metric of several settings is a heading with its settings as a tree below it.
    """
    targets = len(selection.target_names(result))
    common = _common(metrics)
    marks = _Marks()
    tree = _Tree.of(metrics, common, targets)

    def name(metric: MetricResult) -> str:
        step = steps.get(id(metric), "")
        return f"{tree.labels[id(metric)]}{f' ({step})' if step else ''}{marks.of(metric)}"

    notes = [
        f"Common settings of {wording.clean(benchmark)}: {shared}"
        for benchmark, own in common.items()
        if (shared := wording.factors_text(own))
    ]
    caption = ". ".join(part for part in (title, *notes) if part)
    rows = table(
        tree.metrics,
        label("metric", name),
        *estimate("value", lambda metric: metric.estimate, widths=(8, 12, 3.5)),
        text("CV", lambda row: wording.consistency_text(row.consistency), width=11),
        text(
            "trials in order",
            lambda row: Strip(row.trial_values if len(row.trial_values) > 1 else ()),
            roomy=True,
            width=8.5,
        ),
        caption=caption,
        collapsed=collapsed,
        headings=tree.headings,
    )
    return [rows, *map(Sentence, marks.notes())]


class _Tree:
    """Metrics in order of their rows, what names them, and the headings above some of them."""

    def __init__(self) -> None:
        self.metrics: list[MetricResult] = []
        self.labels: dict[int, str] = {}
        """By id() of a metric."""
        self.headings: dict[int, list[str]] = {}
        """By index of the metric below them."""

    @classmethod
    def of(
        cls, metrics: Sequence[MetricResult], common: Mapping[str, Factors], targets: int
    ) -> _Tree:
        """Returns a tree of the settings of each metric that has several, and a row of others."""
        tree = cls()
        for own in group_by(metrics, lambda metric: (metric.benchmark, metric.metric)).values():
            title = wording.full_name(own[0].benchmark, own[0].metric)
            left_out = common.get(own[0].benchmark, {})
            if len(own) == 1:
                setting = wording.setting_text(own[0], targets, leave_out=left_out)
                tree._add(own[0], f"{title}: {setting}" if setting else title)
            else:
                tree._add_settings(title, own, left_out, targets)
        return tree

    def _add_settings(
        self, title: str, metrics: Sequence[MetricResult], left_out: Factors, targets: int
    ) -> None:
        settings = [
            {**({"target": metric.target} if targets > 1 else {}), **metric.factors}
            for metric in metrics
        ]
        shared = wording.factors_text(common_factors(settings), leave_out=left_out)
        self._add_heading(f"{title}: {shared}" if shared else title)
        for line in tree_of(settings):
            words = f"{_INDENT}{line.label}"
            if line.index is None:
                self._add_heading(words)
            else:
                self._add(metrics[line.index], words)

    def _add(self, metric: MetricResult, label: str) -> None:
        self.metrics.append(metric)
        self.labels[id(metric)] = label

    def _add_heading(self, text: str) -> None:
        self.headings.setdefault(len(self.metrics), []).append(text)


class _Marks:
    """Numbers the reasons to doubt a table's rows; those that differ in their numbers are one."""

    def __init__(self) -> None:
        self._reasons: dict[str, tuple[str, str]] = {}

    def of(self, metric: MetricResult) -> str:
        """Returns the marks of a row: '' without a doubt, else as ' ¹'."""
        marks = ""
        for reason in names.doubts(metric):
            kind = re.sub(r"\d[\d.,]*", "#", reason)
            mark = str(len(self._reasons) + 1).translate(_RAISED)
            marks += self._reasons.setdefault(kind, (mark, reason))[0]
        return f" {marks}" if marks else ""

    def notes(self) -> Iterator[str]:
        """Yields a note for each mark."""
        yield from (f"{mark} {wording.clean(reason)}" for mark, reason in self._reasons.values())


def _common(metrics: Sequence[MetricResult]) -> dict[str, dict[str, Any]]:
    """Per benchmark the factors that all its lines share, where it has several settings."""
    return {
        benchmark: common_factors([metric.factors for metric in own])
        for benchmark, own in group_by(metrics, lambda metric: metric.benchmark).items()
        if len({factors_key(metric.factors) for metric in own}) > 1
    }
