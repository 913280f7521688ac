"""Results of other tools as finished runs: the format is recognised by a file's content.

Each format has a reader that returns Figures, with sentences on what its files do not tell; rows.py
writes the run. Nothing is computed here: what a file lacks stays missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nephoscope.errors import UsageError
from nephoscope.reading import jsontext
from nephoscope.store.imports import json_reports, phoronix, pkb, spare_cores, sysbench
from nephoscope.store.imports.rows import DATABASE, Figures, Source, meets, problem_of, write_run
from nephoscope.store.run import StoredRun
from nephoscope.store.store import Store

_REPORTS: Mapping[str, tuple[frozenset[str], Callable[[Mapping[str, Any]], Figures]]] = {
    "hyperfine": (frozenset({"results"}), json_reports.hyperfine),
    "iperf3": (frozenset({"start", "end"}), json_reports.iperf3),
    "fio": (frozenset({"fio version", "jobs"}), json_reports.fio),
    "k6": (frozenset({"metrics"}), json_reports.k6),
}
"""JSON reports: prefix of benchmarks -> the keys that tell them apart, and their reader."""


def import_files(
    paths: Sequence[Path], store: Store, conditions: Mapping[str, str] | None = None
) -> StoredRun:
    """Reads files of one tool into a new finished run, all of them or none.

    conditions: `test`, `metric` or a factor -> the value that figures have to have. Raises
    UsageError that names the file, and the line where there are lines; StoreError for a file that
    cannot be read.
    """
    sources = [Source.read(path) for path in paths]
    parts = [_figures(source, conditions or {}) for source in sources]
    prefixes = {prefix for prefix, _ in parts}
    if len(prefixes) > 1:
        raise UsageError(
            f"These are files of several tools: {', '.join(sorted(prefixes))}.",
            "Import those of each tool by themselves.",
        )
    for source, (prefix, figures) in zip(sources, parts, strict=True):
        for row in figures.rows:
            # Among the samples of PerfKit Benchmarker are offsets of clocks, which have a sign.
            if problem := problem_of(row, from_zero=prefix != "pkb"):
                raise source.refused(f"{row.place}: {problem}")
    rows = [
        replace(row, place=f"{source.path.name}: {row.place}") if len(sources) > 1 else row
        for source, (_, figures) in zip(sources, parts, strict=True)
        for row in figures.rows
        if meets(row, conditions or {})
    ]
    if not rows:
        raise UsageError(
            f"{sources[0].path}: there are no figures to import.",
            "Check --where." if conditions else "Name a file with results.",
        )
    prefix, first = parts[0]
    return write_run(f"import-{prefix}", sources, replace(first, rows=rows), prefix, store)


def _figures(source: Source, conditions: Mapping[str, str]) -> tuple[str, Figures]:
    """Returns the prefix of the benchmarks of a file, and its figures."""
    try:
        if source.content == DATABASE:
            return "spare-cores", spare_cores.read(source, conditions)
        text = source.content.lstrip()
        if text.startswith(b"<"):
            return "phoronix", phoronix.read(source)
        if text.startswith(b"sysbench ") or b"\nsysbench " in text[:10_000]:
            return "sysbench", sysbench.read(source)
        if text.replace(b" ", b"", 1).startswith(b'{"type":"Metric"'):
            raise ValueError(
                "it has the single points of k6, which are not imported; write a summary with "
                "--summary-export"
            )
        document = _document(text)
        for prefix, (keys, read) in _REPORTS.items():
            if keys <= document.keys():
                return prefix, read(document)
    except (ValueError, KeyError) as error:
        reason = str(error) if isinstance(error, ValueError) else f"'{error.args[0]}' is missing"
        raise source.refused(reason) from error
    return "pkb", pkb.read(source)


def _document(text: bytes) -> Mapping[str, Any]:
    """The JSON object of a report; empty for anything else, such as a line for each sample."""
    # fio writes its warnings before it.
    start = 0 if text.startswith(b"{") else text.find(b"\n{") + 1
    try:
        value = jsontext.parse(text[start:], finite=False)  # each figure is checked by itself
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
