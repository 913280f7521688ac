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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nephoscope.core.documents import to_json
from nephoscope.core.errors import NephoscopeError
from nephoscope.core.model import RunResult, factors_key
from nephoscope.features.comparison.result import ComparisonRules, Comparisons
from nephoscope.features.comparison.stored import of_stored_runs
from nephoscope.report import html_output, report_files
from nephoscope.report.blocks import Chart, Section
from nephoscope.report.feature_sections import build_all
from nephoscope.results import analyse_run
from nephoscope.store import Store, StoredRun, default_path
from nephoscope.store.export import factor_columns, flat_table
from nephoscope.store.objects.address import folder_of

__all__ = ["Comparison", "NephoscopeError", "Plot", "Run", "RunStore", "open_store"]


def open_store(path: Path | str | None = None) -> RunStore:
    """Returns the store in a folder; without one, the store that the command line uses.

    path: also the address of a store on object storage, such as `s3://bucket/prefix`.
    """
    return RunStore(folder_of(path) if path is not None else default_path())


class RunStore:
    """A folder of stored runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._store = Store(path)

    def runs(self) -> pa.Table:
        """Returns one row for each readable run, oldest first.

        Columns: id, plan, question, state, created_at, finished_at (UTC), targets, benchmarks.
        """
        rows = [_run_row(run) for run in self._store.runs()]
        return pa.Table.from_pylist(rows, schema=_RUNS)

    def run(self, name: str = "latest") -> Run:
        """Returns the run of an id, of the unique beginning of an id, or `latest`."""
        return Run(self._store.open(name))

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
        rules = ComparisonRules(margin=margin, confidence=confidence, metrics=frozenset(metrics))
        names = [a] if b is None else [a, b]
        # The command in `next_step` names the store where the command line would take another.
        folder = None if self.path == default_path() else self.path
        return Comparison(of_stored_runs(self._store, names, rules, folder=folder))


class Run:
    """One stored run."""

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
                **_values(record, "position", "benchmark", "reasons", "attempt"),
                **_values(record.key, "round", "target"),
                "trial": record.key.name,
                "warmup": record.key.round < 1,
                "status": record.status.value,
                "started_at": round(record.started_at * 1e6),
                "elapsed_s": record.elapsed_ns / 1e9,
                "counters": json.dumps(dict(record.counters), sort_keys=True),
            }
            for record in records
        ]
        return _with_factors(rows, _TRIALS, [record.factors for record in records])

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
                **_values(line, "benchmark", "metric", "target", "headline", "warnings"),
                **_values(line.estimate, *_ESTIMATE, "effective_n", "method", "note"),
                "better": line.better.value,
                "consistency": line.consistency.word,
                "robust_cv": line.consistency.robust_cv,
            }
            for line in lines
        ]
        return _with_factors(rows, _ESTIMATES, [line.factors for line in lines])

    def findings(self) -> pa.Table:
        """Returns one row for each finding, the most severe first.

        Columns: id, severity, sentence, evidence, next_step.
        """
        return pa.Table.from_pylist(to_json(self.result().findings), schema=_FINDINGS)

    def plots(self) -> list[Plot]:
        """Returns the charts of the report in its order."""
        blocks = (block for section in build_all(self.result()) for block in section.blocks)
        return [Plot(block) for block in blocks if isinstance(block, Chart)]

    def document(self) -> dict[str, Any]:
        """Returns the document that `nephoscope show --json` prints."""
        return report_files.document(self.result())

    def result(self, confidence: float | None = None) -> RunResult:
        """Returns the analysis of the run, computed once for each confidence."""
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

    def table(self) -> pa.Table:
        """Returns one row for each metric at each setting that both sides have.

        The ratio is B / A. Columns: benchmark, metric, title, headline, a, b, design, verdict,
        sentence, ratio, low, high, confidence, n_a, n_b, p, warnings, `factor_<name>`.
        """
        rows = []
        for line in self._lines:
            comparison = line.comparison
            # The estimate that carried the verdict, so that row and sentence agree.
            values = _values(line.ratio, *_ESTIMATE) if line.ratio is not None else {}
            rows.append(
                {
                    **values,
                    **_values(line, "benchmark", "metric", "title", "a", "b", "design"),
                    "headline": line.is_headline,
                    **_values(comparison, "n_a", "n_b", "p", "warnings"),
                    "ratio": values.get("value"),
                    "verdict": comparison.verdict.word,
                    "sentence": comparison.verdict.sentence,
                }
            )
        return _with_factors(rows, _COMPARED, [line.factors for line in self._lines])


@dataclass(frozen=True)
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

    def to_html(self) -> str:
        """Returns a page with this chart alone, which opens without network (about 1 MB)."""
        return html_output.render(self.title, "", [Section(self.id, self.title, (self._chart,))])

    def _repr_html_(self) -> str:
        """Returns the chart for a notebook; the frame keeps its script apart from the notebook."""
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="560" frameborder="0"></iframe>'


_TIME = pa.timestamp("us", "UTC")
_TEXTS = pa.list_(pa.string())


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


def _texts(*names: str) -> dict[str, pa.DataType]:
    return dict.fromkeys(names, pa.string())


_INTERVAL = {"low": pa.float64(), "high": pa.float64()}
_RUNS = _schema(
    **_texts("id", "plan", "question", "state"),
    created_at=_TIME,
    finished_at=_TIME,
    targets=_TEXTS,
    benchmarks=_TEXTS,
)
_TRIALS = _schema(
    trial=pa.string(),
    position=pa.int64(),
    round=pa.int64(),
    warmup=pa.bool_(),
    **_texts("target", "benchmark", "status"),
    reasons=_TEXTS,
    started_at=_TIME,
    elapsed_s=pa.float64(),
    attempt=pa.int64(),
    counters=pa.string(),
)
_ESTIMATES = _schema(
    **_texts("benchmark", "metric", "target"),
    headline=pa.bool_(),
    better=pa.string(),
    value=pa.float64(),
    **_INTERVAL,
    unit=pa.string(),
    confidence=pa.float64(),
    n=pa.int64(),
    effective_n=pa.float64(),
    **_texts("method", "note", "consistency"),
    robust_cv=pa.float64(),
    warnings=_TEXTS,
)
_FINDINGS = _schema(**_texts("id", "severity", "sentence"), evidence=_TEXTS, next_step=pa.string())
_COMPARED = _schema(
    **_texts("benchmark", "metric", "title"),
    headline=pa.bool_(),
    **_texts("a", "b", "design", "verdict", "sentence"),
    ratio=pa.float64(),
    **_INTERVAL,
    confidence=pa.float64(),
    n_a=pa.int64(),
    n_b=pa.int64(),
    p=pa.float64(),
    warnings=_TEXTS,
)


def _run_row(run: StoredRun) -> dict[str, Any]:
    manifest = run.manifest
    finished = manifest.finished_at
    return {
        "id": run.id,
        "plan": str(manifest.plan_name or ""),
        "question": str(manifest.question or ""),
        "state": run.status,
        "created_at": round(float(manifest.created_at or 0) * 1e6),
        "finished_at": None if finished is None else round(float(finished) * 1e6),
        "targets": list(manifest.target_names),
        "benchmarks": sorted(manifest.benchmarks),
    }


_ESTIMATE = ("value", "low", "high", "unit", "confidence", "n")


def _values(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _with_factors(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema, factors: Sequence[Mapping[str, Any]]
) -> pa.Table:
    """Returns the rows as a table with one column for each factor behind the others."""
    table = pa.Table.from_pylist(list(rows), schema=schema)
    for name, column in factor_columns(
        [json.loads(factors_key(factor)) for factor in factors]
    ).items():
        table = table.append_column(name, column)
    return table
