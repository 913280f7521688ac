"""The tables of a data set: what was measured, on what, with the meaning of each column.

Unit, description and direction of a metric are those of its declaration, as the run has it. The
columns that every table has are described here, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nephoscope.catalog import BenchmarkSpec, MetricSpec
from nephoscope.core.model import Better, Shape
from nephoscope.core.records import dataclass
from nephoscope.results.analyse_run import moment_text
from nephoscope.results.names import percentile_metric
from nephoscope.stats import facts
from nephoscope.stats.statistics import histograms
from nephoscope.store import StoredRun, query
from nephoscope.store.export import FACTOR_PREFIX

if TYPE_CHECKING:
    import pyarrow as pa

QUANTILES = (0.5, 0.9, 0.99)
"""Of the histogram of a trial; samples have it whole."""

TEXT, INTEGER, NUMBER, TRUTH, MOMENT = "string", "integer", "number", "boolean", "datetime"
"""Types of columns, in the words of Table Schema."""


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column: name, type (of TEXT and its like), description, unit ('' without one), direction
    of a metric that is better."""

    name: str
    type: str
    description: str
    unit: str = ""
    better: Better = Better.NONE


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table of a data set. rows: empty for the samples, which an export writes."""

    name: str
    description: str
    columns: tuple[DataColumn, ...]
    rows: Sequence[Sequence[Any]] = ()


_RUN = DataColumn("run", TEXT, "Identifier of the run: one execution of a plan.")
_TARGET = DataColumn("target", TEXT, "Name of the measured machine, or of all load generators.")
_ROUND = DataColumn(
    "round",
    INTEGER,
    "Round, from 1: within it every setting is measured once; 0 and below: warm-up.",
)
_SAMPLE_COLUMNS = {
    column.name: column
    for column in (
        _RUN,
        DataColumn("trial", TEXT, "Name of the trial: round, setting and target."),
        DataColumn("position", INTEGER, "Place of the trial in the order of execution, from 0."),
        _ROUND,
        DataColumn("warmup", TRUTH, "Whether the trial is a warm-up, which no result includes."),
        DataColumn("status", TEXT, "valid, invalid (measured, but excluded by a rule) or failed."),
        _TARGET,
        DataColumn("benchmark", TEXT, "Benchmark that took the sample."),
        DataColumn("metric", TEXT, "Metric of the sample; the table of metrics describes it."),
        DataColumn("unit", TEXT, "Unit of the value."),
        DataColumn("better", TEXT, "Which values are better: higher, lower or none."),
        DataColumn("value", NUMBER, "Value, in the unit of its row."),
        DataColumn("count", INTEGER, "How often the value was seen: more than 1 in histograms."),
        DataColumn("at_ns", INTEGER, "Time since the trial began.", "ns"),
        DataColumn("recorded", TRUTH, "Whether the target answered from a recording."),
    )
}


def samples_table(runs: Sequence[StoredRun], schema: pa.Schema) -> DataTable:
    """Returns the description of an export. schema: of its columns, see `store.export`."""
    own = [_SAMPLE_COLUMNS[name] for name in schema.names if name in _SAMPLE_COLUMNS]
    columns = (*own, *_factor_columns(runs, schema).values())
    text = "All samples in the order of execution, one a row, warm-up and excluded trials included."
    return DataTable("samples", text, columns)


def tables(runs: Sequence[StoredRun], schema: pa.Schema) -> Iterator[DataTable]:
    """Yields the other tables: the runs, the metrics, and the trials of each benchmark."""
    yield _runs_table(runs)
    yield _metrics_table(runs)
    factors = _factor_columns(runs, schema)
    rows: dict[str, list[tuple[StoredRun, query.TrialMetric]]] = {}
    for run in runs:
        for row in (*query.trial_medians(run), *query.histograms(run)):
            rows.setdefault(row.benchmark, []).append((run, row))
    for benchmark, own in sorted(rows.items()):
        yield _trials_table(benchmark, own, factors)


def _runs_table(runs: Sequence[StoredRun]) -> DataTable:
    columns = (
        _RUN,
        _TARGET,
        DataColumn("plan", TEXT, "Name of the plan."),
        DataColumn("started_at", MOMENT, "When measuring began (UTC)."),
        DataColumn("finished_at", MOMENT, "When measuring ended (UTC)."),
        DataColumn("nephoscope", TEXT, "Version of the program that measured."),
        DataColumn("seed", INTEGER, "Random seed of the order of trials."),
        *(DataColumn(name, kind, text, unit) for name, kind, text, unit, _ in _FACTS),
    )
    rows = []
    for run in runs:
        manifest = run.manifest
        for target in manifest.target_names:
            known = manifest.fingerprints.get(target) or {}
            rows.append(
                (
                    *(run.id, target, manifest.plan_name or ""),
                    *(moment_text(manifest.started_at), moment_text(manifest.finished_at)),
                    *(manifest.nephoscope, manifest.seed),
                    *(read(known) for *_, read in _FACTS),
                )
            )
    return DataTable("runs", "Runs and the machines that they measured.", columns, rows)


def _cpus(known: Any) -> int | None:
    allowed = facts.items(known, "topology.allowed_cpus")
    return None if allowed is None else len(allowed)


_FACTS: tuple[tuple[str, str, str, str, Any], ...] = (
    ("cpu_model", TEXT, "Model of the CPU.", "", lambda known: facts.text(known, "cpu.model")),
    ("cpus", INTEGER, "Number of CPUs that a process may use.", "count", _cpus),
    (
        *("memory_bytes", INTEGER, "Memory of the machine.", "bytes"),
        lambda known: facts.fact(known, "memory.total_bytes"),
    ),
    (
        "kernel",
        TEXT,
        "Release of the kernel.",
        "",
        lambda known: facts.text(known, "kernel.release"),
    ),
    (
        *("hypervisor", TEXT, "Hypervisor that the machine shows; empty where unknown.", ""),
        lambda known: facts.text(known, "hypervisor.name"),
    ),
)
"""Name, type, description, unit and reader of the facts of a machine."""


def _metrics_table(runs: Sequence[StoredRun]) -> DataTable:
    columns = (
        DataColumn("benchmark", TEXT, "Identifier of the benchmark."),
        DataColumn("metric", TEXT, "Name of the metric."),
        DataColumn("unit", TEXT, "Unit of its values."),
        DataColumn("better", TEXT, "Which values are better: higher, lower or none."),
        DataColumn("shape", TEXT, "scalar, histogram (values with counts) or series (over time)."),
        DataColumn("description", TEXT, "What the metric is."),
    )
    rows = {
        (spec.id, metric.id): (
            *(spec.id, metric.id, metric.unit, metric.better.value),
            *(metric.shape.value, metric.doc),
        )
        for run in runs
        for spec in _specs(run)
        for metric in spec.metrics
        if metric.shape is not Shape.DOCUMENT
    }
    return DataTable("metrics", "The metrics of the benchmarks.", columns, list(rows.values()))


class _TrialId(NamedTuple):
    run: str
    round: int
    target: str
    factors: str


def _trials_table(
    benchmark: str,
    rows: Sequence[tuple[StoredRun, query.TrialMetric]],
    every_factor: Mapping[str, DataColumn],
) -> DataTable:
    """Returns a row for each trial that counts, a column for each metric or percentile."""
    metrics: dict[str, DataColumn] = {}
    values: dict[_TrialId, dict[str, Any]] = {}
    levels: set[str] = set()
    for run, row in rows:
        spec = run.spec(benchmark).metric(row.metric)
        trial = _TrialId(run.id, row.round, row.target, row.factors)
        levels |= json.loads(row.factors).keys()
        for column, value in _values(spec, row):
            metrics.setdefault(column.name, column)
            values.setdefault(trial, {})[column.name] = value
    factors = {name: every_factor[name] for name in sorted(levels)}
    columns = (_RUN, _ROUND, _TARGET, *factors.values(), *metrics.values())
    content = []
    for trial, own in sorted(values.items()):
        of_trial = json.loads(trial.factors)
        content.append(
            (
                *(trial.run, trial.round, trial.target),
                *(_level(of_trial.get(name)) for name in factors),
                *(own.get(name) for name in metrics),
            )
        )
    name = f"trials-{benchmark.replace('.', '-').replace('_', '-')}"
    summary = rows[0][0].spec(benchmark).summary
    text = (
        f"{summary}: one row for each trial that counts; metrics over time are among the samples."
    )
    return DataTable(name, text, columns, content)


def _level(level: Any) -> Any:
    return level if level is None or isinstance(level, str | int | float) else json.dumps(level)


def _values(
    spec: MetricSpec, row: query.TrialMetric
) -> Iterator[tuple[DataColumn, float | int | None]]:
    """Yields the columns of a metric, with their values of one trial."""
    if isinstance(row, query.TrialValue):
        yield DataColumn(spec.id, NUMBER, spec.doc, spec.unit, spec.better), row.value
        return
    assert isinstance(row, query.TrialHistogram)
    for q in QUANTILES:
        name = percentile_metric(spec.id, spec.unit, q)
        text = f"{100 * q:g}th percentile of: {spec.doc}"
        value = (
            histograms.quantile_of_counts(row.values, row.counts, q) if row.counts.sum() else None
        )
        yield DataColumn(name, NUMBER, text, spec.unit, spec.better), value
    text = f"Number of values of: {spec.doc}"
    yield DataColumn(f"{spec.id}_count", INTEGER, text, "count"), int(row.counts.sum())


def _specs(run: StoredRun) -> Iterator[BenchmarkSpec]:
    for stored in run.manifest.specs:
        yield run.spec(str(stored["id"]))


def _factor_columns(runs: Sequence[StoredRun], schema: pa.Schema) -> dict[str, DataColumn]:
    """Returns a column for each factor, described as the parameter of its name where it is one."""
    docs: dict[str, tuple[str, str]] = {}
    for run in runs:
        for spec in _specs(run):
            for param in spec.params:
                docs.setdefault(param.id, (param.doc, param.unit))
    columns = {}
    for field in schema:
        if field.name.startswith(FACTOR_PREFIX):
            name = field.name.removeprefix(FACTOR_PREFIX)
            doc, unit = docs.get(name, ("Level of a factor on which the value depends.", ""))
            kind = _KINDS[str(field.type)]
            columns[name] = DataColumn(field.name, kind, doc, "" if kind == TEXT else unit)
    return columns


_KINDS = {"string": TEXT, "int64": NUMBER, "double": NUMBER}
"""Type of a factor's column in an export -> type of a column. Readers of Parquet make floats of
whole numbers that may be missing, as factors may."""
