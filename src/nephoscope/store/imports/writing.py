"""The finished run that is made of imported figures."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.catalog import BenchmarkSpec, MetricSpec
from nephoscope.core.documents import to_json
from nephoscope.core.format_versions import PLAN
from nephoscope.core.model import Sample, Setting, Shape, TrialKey, TrialRecord, TrialStatus
from nephoscope.store.imports import copies
from nephoscope.store.imports.rows import ImportedFigures, ImportedRow
from nephoscope.store.imports.source import Source
from nephoscope.store.manifest import FINISHED
from nephoscope.store.run import StoredRun
from nephoscope.store.store import Store, spec_json

TARGET = "imported"

_NOT_CHECKED = (
    "The imported figures have no system counters, so that no trial was checked for interference "
    "by other programs or by the hypervisor."
)
_SINGLE = (
    "Each figure was measured once: there are no intervals. Import the files of several runs "
    "together."
)
_NAMED = 3
_MAX_CHARACTERS = 160
"""Characters of a reason, which may contain names out of the file."""
_FILES_NAMED = 6


def left_out_sentence(left_out: Sequence[str]) -> str:
    """Returns how many records were left out, with the first ones by name; '' for none."""
    if not left_out:
        return ""
    count = len(left_out)
    more = f"; and {count - _NAMED:,} more" if count > _NAMED else ""
    records = "1 record was" if count == 1 else f"{count:,} records were"
    named = "; ".join(
        sentence if len(sentence) <= _MAX_CHARACTERS else f"{sentence[:_MAX_CHARACTERS]}…"
        for sentence in left_out[:_NAMED]
    )
    return f"{records} left out: {named}{more}."


def write_run(
    sources: Sequence[Source],
    figures: ImportedFigures,
    prefix: str,
    settings: Mapping[str, Any],
    store: Store,
) -> StoredRun:
    """Writes a finished run. Rows of one group are repetitions, in order of time: rounds 1, 2, …

    settings: how the files were imported, for the manifest.
    """
    stated = [row.at_s for row in figures.rows if row.at_s is not None]
    started = min(stated or [source.changed_at_s for source in sources])
    groups: dict[tuple[str, ...], list[ImportedRow]] = {}
    # Sorting keeps the order of the files for rows of one time, or of none.
    for row in sorted(figures.rows, key=lambda row: started if row.at_s is None else row.at_s):
        groups.setdefault(row.group, []).append(row)
    specs = _specs(figures, prefix)
    of_settings = [
        Setting(index, _benchmark(prefix, rows[0].test), {}, rows[0].factors, 0.0)
        for index, rows in enumerate(groups.values())
    ]
    name = f"import-{prefix.replace('.', '-')}"
    names = [source.path.name for source in sources]
    files = ", ".join(names[:_FILES_NAMED])
    files += f" and {len(names) - _FILES_NAMED} more" if len(names) > _FILES_NAMED else ""
    values = {
        "plan": {
            "version": PLAN.version,
            "name": name,
            "targets": [{"name": TARGET, "kind": "local"}],
            "benchmarks": [{"benchmark": benchmark} for benchmark in specs],
        },
        "plan_hash": "",
        "plan_name": name,
        "question": f"Results of {figures.tool}, read from {files}",
        "seed": 0,
        "probe": None,
        "protocol": None,
        "targets": [{"name": TARGET, "kind": "imported"}],
        "settings": to_json(of_settings),
        "specs": [spec_json(spec) for spec in specs.values()],
        "confidence": 0.95,
        "margin": 0.03,
        "budget_s": None,
        "state": FINISHED,
        "started_at": started,
        "finished_at": max(stated, default=started),
        "imported_from": ", ".join(str(source.path) for source in sources),
        "imported": {
            "at": time.time(),
            "tool": figures.tool,
            "time_from": "content" if stated else "mtime",
            "files": copies.description(sources),
            "left_out": len(figures.left_out),
            "settings": dict(settings),
        },
        "run_uris": sorted({row.run for row in figures.rows}),
        "refused": _sentences(figures, groups.values(), states_time=bool(stated)),
    }
    with store.new(name, values) as run:
        numbered = (
            (setting, number, row)
            for setting, rows in zip(of_settings, groups.values(), strict=True)
            for number, row in enumerate(rows, start=1)
        )
        run.store_all(
            [
                (
                    _record(setting, number, row, position, started),
                    _samples(row),
                    specs[setting.benchmark],
                    (),
                )
                for position, (setting, number, row) in enumerate(numbered)
            ]
        )
        run.event({"event": "imported", "file": files, "figures": len(figures.rows)})
        run.finish(FINISHED)
    return run


def _sentences(figures: ImportedFigures, groups: Any, *, states_time: bool) -> list[str]:
    """Returns what the files do not tell, and what was left out of them."""
    left_out = left_out_sentence(figures.left_out)
    sentences = [*([left_out] if left_out else []), _NOT_CHECKED, *figures.missing]
    if not states_time:
        sentences.append("No time stamp in the file; the time of its last change is used.")
    if all(len(rows) == 1 for rows in groups):
        sentences.append(_SINGLE)
    return sentences


def _samples(row: ImportedRow) -> list[Sample]:
    """Returns the value of a row, or the values of its histogram with their counts."""
    if row.histogram is None:
        return [Sample(row.metric, row.figure)]
    counts = sorted(row.histogram.counts.items())
    return [Sample(row.metric, value * row.unit.factor, count) for value, count in counts if count]


def _benchmark(prefix: str, test: str) -> str:
    return f"{prefix}.{test}" if test else prefix


def _record(
    setting: Setting, round_number: int, row: ImportedRow, position: int, started: float
) -> TrialRecord:
    run = f", run {row.run}" if row.run else ""
    return TrialRecord(
        key=TrialKey(round_number, setting.index, TARGET),
        benchmark=setting.benchmark,
        params={},
        factors=setting.factors,
        status=TrialStatus.VALID,
        reasons=(),
        position=position,
        started_at=started if row.at_s is None else row.at_s,
        elapsed_ns=0,
        counters={},
        notes=(f"{row.place} of the imported file{run}.",),
    )


def _specs(figures: ImportedFigures, prefix: str) -> dict[str, BenchmarkSpec]:
    """A declaration for each test, made from its rows; its first metric is a headline for want."""
    metrics: dict[str, dict[str, MetricSpec]] = {}
    mains = {row.test for row in figures.rows if row.headline}
    for row in figures.rows:
        of_test = metrics.setdefault(_benchmark(prefix, row.test), {})
        if row.metric not in of_test:
            of_test[row.metric] = MetricSpec(
                id=row.metric,
                unit=row.unit.unit,
                better=row.unit.better,
                shape=Shape.SCALAR if row.histogram is None else Shape.HISTOGRAM,
                headline=row.headline or (row.test not in mains and not of_test),
                doc=f"As {figures.tool} reported it.",
                share=row.unit.share,
            )
    return {
        name: BenchmarkSpec(
            id=name,
            summary=f"{figures.tool}: {name.removeprefix(f'{prefix}.')}",
            params=(),
            metrics=tuple(of_test.values()),
            overhead="",
            source=figures.tool,
            two_sided=False,
            page="",
        )
        for name, of_test in metrics.items()
    }
