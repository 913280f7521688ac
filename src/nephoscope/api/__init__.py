"""The public Python interface: stored runs as tables, comparisons and plots, for notebooks.

Every table is a `pyarrow.Table`; `.to_pandas()` turns it into a data frame where pandas is
installed. What has no underscore here stays compatible within a major version; other modules of
this package may change. Failures are raised as `NephoscopeError`, whose text is one sentence with
the next step.

    from nephoscope.api import open_store

    run = open_store().run("latest")
    run.estimates().to_pandas()
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nephoscope.api.history import MetricHistory, metric_history
from nephoscope.api.tables import (
    COMPARED,
    ESTIMATE,
    ESTIMATES,
    FINDINGS,
    TRIALS,
    runs_table,
    values,
    with_factors,
)
from nephoscope.core.documents import to_json
from nephoscope.core.errors import NephoscopeError, StoreError, UsageError
from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.comparison.result import ComparisonRules, Comparisons
from nephoscope.features.comparison.stored import of_stored_runs
from nephoscope.report import html_output, notebook_html, report_files, summary, wording
from nephoscope.report.blocks import Chart, Section
from nephoscope.report.feature_sections import build_all
from nephoscope.results import analyse_run
from nephoscope.stats.statistics.values import known_confidence
from nephoscope.store import Store, StoredRun, default_path
from nephoscope.store.export import flat_table
from nephoscope.store.objects.address import folder_of

__all__ = [
    "Comparison",
    "Estimate",
    "MetricHistory",
    "NephoscopeError",
    "Plot",
    "Run",
    "RunStore",
    "open_store",
]


_FINDINGS_SHOWN = 5
_HEADLINES_SHOWN = 20
_LINES_SHOWN = 30


def open_store(path: Path | str | None = None) -> RunStore:
    """Returns the store in a folder; without one, the store that the command line uses.

    path: also the address of a store on object storage, such as `s3://bucket/prefix`.
    """
    if path is None:
        return RunStore(default_path())
    if not isinstance(path, str | Path):
        raise UsageError(f"{path!r} is no folder.", "Name the folder or address of a store.")
    folder = folder_of(path)
    # A mistyped folder would be a store without runs.
    if isinstance(folder, Path) and not folder.is_dir():
        raise StoreError(f"There is no store at {folder}.", "Name a folder that has runs.")
    return RunStore(folder)


class RunStore:
    """A folder of stored runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._store = Store(path)

    def runs(self) -> pa.Table:
        """Returns one row for each readable run, oldest first.

        Columns: id, plan, question, state, created_at, finished_at (UTC), targets, benchmarks, and
        `label_<name>` for each label.
        """
        return runs_table(self._store.runs())

    def run(self, name: str = "latest") -> Run:
        """Returns the run of an id, of the unique beginning of an id, or `latest`."""
        return Run(self._store.open(str(name)))

    def compare(
        self,
        a: str,
        b: str | None = None,
        *,
        margin: float = 0.03,
        confidence: float = 0.95,
        metrics: Iterable[str] = (),
    ) -> Comparison:
        """Compares two runs, or two targets of one run, as `nephoscope compare A B` does.

        a, b: RUN or RUN:TARGET; `a` alone compares its targets with the first one. margin: largest
        relative difference that counts as equivalent. metrics: names to compare; all if empty.
        """
        known_confidence(confidence)
        rules = ComparisonRules(margin=margin, confidence=confidence, metrics=frozenset(metrics))
        names = [a] if b is None else [a, b]
        # The command in `next_step` names the store where the command line would take another.
        folder = None if self.path == default_path() else self.path
        return Comparison(of_stored_runs(self._store, names, rules, folder=folder))

    def history(
        self,
        metric: str,
        *,
        targets: Iterable[str] = (),
        benchmarks: Iterable[str] = (),
        labels: Mapping[str, str] | None = None,
        confidence: float = 0.95,
        margin: float = 0.03,
    ) -> MetricHistory:
        """Returns a metric over the runs with its change points, as `nephoscope history` does.

        targets, benchmarks, labels: only runs with these; all if empty. margin: relative change
        for the worse that is no regression.
        """
        return metric_history(
            self._store,
            metric,
            targets=tuple(targets),
            benchmarks=tuple(benchmarks),
            labels=dict(labels or {}),
            confidence=confidence,
            margin=margin,
        )

    def __repr__(self) -> str:
        return f"<RunStore {self.path}>"


class Run:
    """One stored run. A notebook shows its headline results."""

    def __init__(self, stored: StoredRun) -> None:
        self._stored = stored
        self._results: dict[float | None, RunResult] = {}

    @property
    def id(self) -> str:
        """Returns the run's id."""
        return self._stored.id

    @property
    def state(self) -> str:
        """Returns `finished`, `running`, `interrupted`, … as `nephoscope runs` prints it."""
        return self._stored.status

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Returns the plan, seed, versions, targets and settings of the run."""
        return self._stored.manifest.stored

    @property
    def labels(self) -> Mapping[str, str]:
        """Returns the labels of the run."""
        return self._stored.labels

    def headlines(self) -> Mapping[str, Estimate]:
        """Returns the headline results by name, as the report's first screen has them."""
        chosen = summary.headline_figures(self.result(), _HEADLINES_SHOWN)
        several = len(self._stored.manifest.targets) > 1
        return {
            ", ".join(filter(None, (metric.target if several else "", label, setting))): (
                metric.estimate
            )
            for label, setting, metric in chosen
        }

    def __repr__(self) -> str:
        return f"<Run {self.id}, {self.state}>"

    def _repr_html_(self) -> str:
        """Returns the headline results and the findings for a notebook."""
        headlines = self.headlines().items()
        rows = [(name, *wording.estimate_cells(estimate)) for name, estimate in headlines]
        findings = [finding.sentence for finding in self.result().findings[:_FINDINGS_SHOWN]]
        return notebook_html.table(
            repr(self)[1:-1], ("", "value", "interval", "n"), rows, below=findings
        )

    def samples(self) -> pa.Table:
        """Returns every sample in the order of execution, as `nephoscope export` writes them.

        Warm-up and invalid trials are included; `warmup` and `status` tell them apart.
        """
        return flat_table(self._stored)

    def trials(self) -> pa.Table:
        """Returns one row for each trial in the order of execution, with its outcome.

        Columns: trial, position, round, warmup, target, benchmark, status, reasons, started_at,
        elapsed_s, attempt, counters (JSON text), `factor_<name>`.
        """
        records = self._stored.records()
        rows = [
            {
                **values(record, "position", "benchmark", "reasons", "attempt"),
                **values(record.key, "round", "target"),
                "trial": record.key.name,
                "warmup": record.key.round < 1,
                "status": record.status.value,
                "started_at": round(record.started_at * 1e6),
                "elapsed_s": record.elapsed_ns / 1e9,
                "counters": json.dumps(dict(record.counters), sort_keys=True),
            }
            for record in records
        ]
        return with_factors(rows, TRIALS, [record.factors for record in records])

    def estimates(self, *, confidence: float | None = None) -> pa.Table:
        """Returns one row for each metric at each setting, with its confidence interval.

        confidence: of the intervals; the plan's unless given. `low` and `high` are null where no
        interval exists; `note` has the reason.
        Columns: benchmark, metric, target, headline, better, value, low, high, unit, confidence, n,
        effective_n, method, note, consistency, robust_cv, warnings, `factor_<name>`.
        """
        lines = self.result(confidence).metrics
        rows = [
            {
                **values(line, "benchmark", "metric", "target", "headline", "warnings"),
                **values(line.estimate, *ESTIMATE, "effective_n", "method", "note"),
                "better": line.better.value,
                "consistency": line.consistency.word,
                "robust_cv": line.consistency.robust_cv,
            }
            for line in lines
        ]
        return with_factors(rows, ESTIMATES, [line.factors for line in lines])

    def findings(self) -> pa.Table:
        """Returns one row for each finding, the most severe first.

        Columns: id, severity, sentence, evidence, next_step.
        """
        return pa.Table.from_pylist(to_json(self.result().findings), schema=FINDINGS)

    def plots(self) -> list[Plot]:
        """Returns the charts of the report in its order."""
        blocks = (block for section in build_all(self.result()) for block in section.blocks)
        return [Plot(block) for block in blocks if isinstance(block, Chart)]

    def document(self) -> dict[str, Any]:
        """Returns the document that `nephoscope show --json` prints."""
        return report_files.document(self.result())

    def result(self, confidence: float | None = None) -> RunResult:
        """Returns the analysis of the run, computed once for each confidence."""
        if confidence is not None:
            known_confidence(confidence)
        if confidence not in self._results:
            self._results[confidence] = analyse_run.build(self._stored, confidence=confidence)
        return self._results[confidence]


class Comparison:
    """The comparison of two sides, with one verdict for each metric and setting.

    conclusion: the outcome of the headline results in one sentence. warnings: what to know about
    the whole comparison. next_step: the command that decides what stays open, or ''. differences:
    what differs between the environments, as (fact, of A, of B).
    """

    def __init__(self, comparisons: Comparisons) -> None:
        self._lines = comparisons.comparisons
        self.conclusion = comparisons.conclusion
        self.warnings = comparisons.warnings
        self.differences = [
            (difference.what, difference.a, difference.b) for difference in comparisons.differences
        ]
        self.next_step = comparisons.next_step

    def __repr__(self) -> str:
        return f"<Comparison: {self.conclusion}>"

    def _repr_html_(self) -> str:
        """Returns the conclusion and the verdicts of the headline results for a notebook."""
        chosen = [line for line in self._lines if line.is_headline] or self._lines
        rows = [
            (
                line.title,
                line.a,
                line.b,
                *wording.ratio_cells(line.ratio),
                line.comparison.verdict.word,
            )
            for line in chosen[:_LINES_SHOWN]
        ]
        left_out = len(self._lines) - len(rows)
        below = [*self.warnings, *filter(None, (self.next_step,))]
        if left_out:
            below.append(f"{wording.plural(left_out, 'other comparison')}: see table().")
        head = ("", "A", "B", "B / A", "interval", "n", "verdict")
        return notebook_html.table(self.conclusion, head, rows, below=below)

    def table(self) -> pa.Table:
        """Returns one row for each metric at each setting that both sides have.

        The ratio is B / A. Columns: benchmark, metric, title, headline, a, b, design, verdict,
        sentence, ratio, low, high, confidence, n_a, n_b, p, warnings, `factor_<name>`.
        """
        rows = []
        for line in self._lines:
            comparison = line.comparison
            # The estimate that carries the verdict, so that row and sentence agree.
            ratio = values(line.ratio, *ESTIMATE) if line.ratio is not None else {}
            rows.append(
                {
                    **ratio,
                    **values(line, "benchmark", "metric", "title", "a", "b", "design"),
                    "headline": line.is_headline,
                    **values(comparison, "n_a", "n_b", "p", "warnings"),
                    "ratio": ratio.get("value"),
                    "verdict": comparison.verdict.word,
                    "sentence": comparison.verdict.sentence,
                }
            )
        return with_factors(rows, COMPARED, [line.factors for line in self._lines])


@dataclass(frozen=True, repr=False)
class Plot:
    """A chart of the report. A notebook draws it where it is the value of a cell."""

    _chart: Chart

    @property
    def id(self) -> str:
        """Returns the name of the chart, unique in the report."""
        return self._chart.id

    @property
    def title(self) -> str:
        """Returns the title of the chart."""
        return self._chart.title

    @property
    def figure(self) -> dict[str, Any]:
        """Returns the plotly figure as plain data: `plotly.graph_objects.Figure(plot.figure)`."""
        return dict(self._chart.figure)

    def table(self) -> pa.Table:
        """Returns the data of the chart as texts, as the report prints them below it."""
        data = self._chart.table
        names = [column.title or str(number) for number, column in enumerate(data.columns)]
        rows = [dict(zip(names, map(str, row), strict=True)) for row in data.rows]
        return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in names]))

    def __repr__(self) -> str:
        return f"<Plot {self.id}: {self.title}>"

    def to_html(self) -> str:
        """Returns a page with this chart alone, which opens without network (about 1 MB)."""
        return html_output.render(self.title, "", [Section(self.id, self.title, (self._chart,))])

    def _repr_html_(self) -> str:
        """Returns the chart for a notebook; the frame keeps its script apart from the notebook."""
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="560" frameborder="0"></iframe>'
