"""The formats that are imported: one list, from which recognition, help and docs follow.

To add one: a reader that returns Figures, a function that recognises its files by marks that no
other format has, and its line in FORMATS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.core.reading import jsonstream
from nephoscope.core.reading.phoronix import is_json as is_phoronix_json
from nephoscope.core.records import dataclass
from nephoscope.store.imports import (
    code_benchmarks,
    fio,
    fortio,
    hdr_log,
    hyperfine,
    iperf3,
    k6,
    k6_points,
    not_read,
    phoronix,
    pkb,
    server_reports,
    spare_cores,
    sysbench,
    tool_reports,
    unixbench,
)
from nephoscope.store.imports.rows import ImportedFigures
from nephoscope.store.imports.source import DATABASE, Source

Recognise = Callable[[Source], bool]
Read = Callable[[Source, Mapping[str, str]], ImportedFigures]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of result files.

    prefix: of the names of its benchmarks. tool: its name. files: what to import, for the docs.
    trials: what becomes a trial, for the docs. recognise: whether a file has its marks. read: its
    figures that meet conditions (the caller checks them again); ValueError for a broken file.
    reads_json: whether it is JSON. may_be_parallel: whether several files may well be of parallel
    generators. signed: whether its quantities may be negative.
    """

    prefix: str
    tool: str
    files: str
    trials: str
    recognise: Recognise
    read: Read
    reads_json: bool = False
    may_be_parallel: bool = False
    signed: bool = False


def _json(is_one: Callable[[Mapping[str, Any]], bool]) -> Recognise:
    """Returns whether one of the JSON objects of a file has the marks."""

    def recognise(source: Source) -> bool:
        if source.content == DATABASE:
            return False
        values = [value for _, value in source.documents.values[:1000]]
        return any(isinstance(value, dict) and is_one(value) for value in values)

    return recognise


def _text(is_one: Callable[[str], bool]) -> Recognise:
    """Returns whether a file that is not JSON has the marks in its text."""

    def recognise(source: Source) -> bool:
        return source.content != DATABASE and is_one(source.text)

    return recognise


def _plain(read: Callable[[Source], ImportedFigures]) -> Read:
    return lambda source, _: read(source)


def _is_pkb(source: Source) -> bool:
    return source.content != DATABASE and any(
        pkb.is_sample(sample)
        for _, value in source.documents.values[:1000]
        for sample in jsonstream.objects(value)
    )


def _is_iperf3(document: Mapping[str, Any]) -> bool:
    return iperf3.is_iperf3(document) or iperf3.is_stream(document)


def _is_phoronix(source: Source) -> bool:
    return source.content != DATABASE and source.text.lstrip().startswith("<")


def _read_marked(name: str, source: Source, _: Mapping[str, str]) -> ImportedFigures:
    return tool_reports.read_with(name, source.text)


_GENERATORS = frozenset({"h2load", "httperf", "siege", "sockperf.tcp", "sockperf.udp", "nuttcp"})

FORMATS: tuple[Format, ...] = (
    Format(
        *("spare-cores", "Spare Cores", "the SQLite database of `sparecores-data`"),
        "each score; factors `vendor`, `server` and its configuration",
        lambda source: source.content == DATABASE,
        spare_cores.read,
    ),
    Format(
        *("phoronix", "Phoronix Test Suite", "`composite.xml`, or `result-file-to-json`"),
        "each run of a test; factors `system` and `arguments`",
        lambda source: _is_phoronix(source) or _json(is_phoronix_json)(source),
        _plain(phoronix.read),
    ),
    Format(
        *("fio", "fio", "`--output-format=json` of versions 2 and 3, also of clients"),
        "rates and latencies of each job and direction; the clones of a job are summed",
        _json(fio.is_fio),
        _plain(fio.read),
        reads_json=True,
        may_be_parallel=True,
    ),
    Format(
        *("iperf3", "iperf3", "`--json` or `--json-stream`"),
        "the totals of a run; factor `direction`",
        _json(_is_iperf3),
        _plain(iperf3.read),
        reads_json=True,
        may_be_parallel=True,
    ),
    Format(
        *("k6", "k6", "`--summary-export`, also machine-readable; the data of `handleSummary`"),
        "each value of the summary",
        _json(k6.is_k6),
        _plain(k6.read),
        reads_json=True,
        may_be_parallel=True,
    ),
    Format(
        *("k6", "k6", "`--out json` and `--out csv`"),
        "the histogram of each time, and counts",
        lambda source: _text(k6_points.is_csv)(source) or _text(k6_points.is_json)(source),
        _plain(k6_points.read),
        may_be_parallel=True,
    ),
    Format(
        *("fortio", "fortio", "`-json`"),
        "the histogram of latencies, rate and counts",
        _json(fortio.is_fortio),
        _plain(fortio.read),
        reads_json=True,
        may_be_parallel=True,
    ),
    Format(
        *("hdrhistogram", "HdrHistogram", "interval logs (`.hlog`, V2), with `--value-unit`"),
        "the histogram of all intervals; factor `tag`",
        _text(hdr_log.is_hdr_log),
        _plain(hdr_log.read),
        may_be_parallel=True,
    ),
    Format(
        *("memtier", "memtier_benchmark", "`--json-out-file`"),
        "the totals of each run (`-x`)",
        _json(server_reports.is_memtier),
        _plain(server_reports.read_memtier),
        reads_json=True,
        may_be_parallel=True,
    ),
    Format(
        *("google-benchmark", "Google Benchmark", "`--benchmark_out_format=json`"),
        "each repetition; factor `name`",
        _json(code_benchmarks.is_google_benchmark),
        _plain(code_benchmarks.read_google_benchmark),
        reads_json=True,
    ),
    Format(
        *("pytest-benchmark", "pytest-benchmark", "`--benchmark-json`"),
        "each round (with `--benchmark-save-data`); factor `name`",
        _json(code_benchmarks.is_pytest_benchmark),
        _plain(code_benchmarks.read_pytest_benchmark),
        reads_json=True,
    ),
    Format(
        *("hyperfine", "hyperfine", "`--export-json`"),
        "each execution of a command",
        _json(hyperfine.is_hyperfine),
        _plain(hyperfine.read),
        reads_json=True,
    ),
    Format(
        *("pkb", "PerfKit Benchmarker", "`perfkitbenchmarker_results.json`, or an array of it"),
        "each sample; samples that differ in nothing but the run are repetitions",
        _is_pkb,
        _plain(pkb.read),
        reads_json=True,
        signed=True,  # offsets of clocks
    ),
    Format(
        *("sysbench", "sysbench", "its output, of versions 0.4 to 1.1"),
        "each figure of a report; several reports may follow one another",
        _text(sysbench.is_sysbench),
        _plain(sysbench.read),
    ),
    Format(
        *("unixbench", "UnixBench", "its output"),
        "results and indexes of each run; factors `copies` and `test`",
        _text(unixbench.is_unixbench),
        _plain(unixbench.read),
    ),
    Format(
        *("wrk", "wrk", "its output, also of wrk2"),
        "each report",
        _text(server_reports.is_wrk),
        _plain(server_reports.read_wrk),
        may_be_parallel=True,
    ),
    Format(
        *("ab", "ab", "its output"),
        "each report",
        _text(server_reports.is_ab),
        _plain(server_reports.read_ab),
        may_be_parallel=True,
    ),
    Format(
        *("redis-benchmark", "redis-benchmark", "its output with `--csv`"),
        "each command; factor `command`",
        _text(server_reports.is_redis_benchmark),
        _plain(server_reports.read_redis_benchmark),
        may_be_parallel=True,
    ),
    *(
        Format(
            *(name, ADAPTERS[name].spec.tool or name, "its output"),
            "the report, as its adapter reads it",
            _text(partial(tool_reports.is_report, name)),
            partial(_read_marked, name),
            may_be_parallel=name in _GENERATORS,
        )
        for name in tool_reports.MARKS
    ),
)


def recognise(source: Source) -> Format:
    """Returns the format of a file. ValueError that says what was seen, and what there is."""
    format_ = next((format_read for format_read in FORMATS if format_read.recognise(source)), None)
    if format_ is None:
        raise ValueError(not_read.reason(source, ", ".join(tools())))
    return format_


def tools() -> list[str]:
    """Returns the names of all tools whose files are imported, in order of the alphabet."""
    return sorted({format_read.tool for format_read in FORMATS}, key=str.lower)


def table() -> str:
    """Returns the table of formats, as the docs have it; tools with the same words share a row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for format_read in FORMATS:
        of_row = rows.setdefault((format_read.files, format_read.trials), [])
        of_row += [] if format_read.tool in of_row else [format_read.tool]
    lines = [
        f"| {', '.join(names)} | {files} | {trials} |" for (files, trials), names in rows.items()
    ]
    return "\n".join(["| tool | file | trials |", "|---|---|---|", *lines])
