"""Files that are not imported: what they seem to be, and what to export instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nephoscope.store.imports.source import DATABASE, Source

_TEXTS: tuple[tuple[str, str], ...] = (
    (
        r"\A\s*(?:provider|vendor),type,(?=.*\bmachine_start\b)",
        "it is a table of launches; `nephoscope launches FILE` reads it",
    ),
    (
        r"\A\s*command,mean,stddev,median,user,system,min,max",
        "it is the CSV export of hyperfine, which lacks the single executions; use --export-json",
    ),
    (
        r"^\| *Command *\| *Mean \[|^Benchmark #?[0-9]+: |^ *Time \(mean ± σ\)",
        "it is a table or the screen output of hyperfine, which lacks the single executions; use "
        "--export-json",
    ),
    (
        r"^\[ *ID\] +Interval +Transfer",
        "it is the text output of iperf3 or iperf, which is rounded; run iperf3 with --json",
    ),
    (
        r"^fio-[0-9]+\.[0-9]+|^ +(?:read|write) ?: IOPS=|^[0-9];fio-",
        "it is the text output of fio, which is rounded; run fio with --output-format=json",
    ),
    (
        r"^ *http_req_duration\.*:|^ *iterations\.*: +[0-9]",
        "it is the screen output of k6, which is rounded; run k6 with --summary-export=FILE",
    ),
    (
        r"^name,iterations,real_time,cpu_time|^Benchmark +Time +CPU +Iterations",
        "it is the text output of Google Benchmark; use --benchmark_out_format=json",
    ),
    (
        r"^-+ benchmark:? .*[0-9] tests",
        "it is the screen output of pytest-benchmark; use --benchmark-json=FILE",
    ),
    (
        r"^={3,} *SET *={3,}|^[A-Z_]+ ?(?:\([^)\n]{0,80}\))?: [0-9.]+ requests per second",
        "it is the screen output of redis-benchmark; run it with --csv",
    ),
    (
        r"^ALL STATS$|^Type +Ops/sec +",
        "it is the screen output of memtier_benchmark; run it with --json-out-file=FILE",
    ),
    (
        r"^Doing (?:.* for [0-9]+s on|[0-9]+ )|^The 'numbers' are in 1000s of bytes",
        "it is the screen output of `openssl speed`; run it with -mr",
    ),
)
_BEGINNING_OF_JSON = re.compile(r'\s*(?:\{\s*["}]|\{\Z|\[\s*[][{"0-9-])')
"""Text may begin with a bracket, too."""
_SHOWN_KEYS = 8


def reason(source: Source, tools: str) -> str:
    """Returns why a file is not imported; tools: names of all whose files are."""
    if source.content.startswith(b"PK\x03\x04"):
        return "it is a ZIP archive; unpack it, and import the files in it"
    if source.content == DATABASE:
        return "it is a database of SQLite"
    text = source.text
    if not text.strip():
        return "it is empty; name a file with results"
    content = source.documents
    objects = [value for _, value in content.values if isinstance(value, dict)]
    if objects:
        return _of_object(objects[0], tools)
    for pattern, words in _TEXTS:
        if re.search(pattern, text[:1_000_000], re.MULTILINE):
            return words
    is_json = _BEGINNING_OF_JSON.match(text) is not None
    if is_json and not content.values and content.cut_off_at is not None:
        return (
            f"the JSON ends in the middle, on line {content.cut_off_at}: the file was cut off, "
            "because the tool was killed or the copy is not whole"
        )
    if is_json and not content.values and content.problems:
        line, problem = content.problems[0]
        return f"line {line}: {problem}"
    seen = "JSON without any object" if content.values else _kind_of(text)
    return f"it is {seen}, and no report of a tool that is known: {tools}"


def _of_object(document: Mapping[str, Any], tools: str) -> str:
    keys = document.keys()
    if {"type", "data", "metric"} <= keys or document.get("type") in ("Metric", "Point"):
        return (
            "it has the single points of k6, which are not imported; write a summary with "
            "--summary-export"
        )
    if {"x_values", "results"} <= keys:
        return (
            "it is a data file of flent, whose series are not imported; import the reports of the "
            "tools that it ran (`iperf3 --json`)"
        )
    if {"status", "data"} <= keys:
        return (
            "it seems to be an answer of Prometheus, which is not imported; `nephoscope sla` reads "
            "it"
        )
    names = ", ".join(f"'{str(key)[:30]}'" for key in list(keys)[:_SHOWN_KEYS]) or "no keys"
    more = ", …" if len(keys) > _SHOWN_KEYS else ""
    return (
        f"it is a JSON object with the keys {names}{more}, and no report of a tool that is known: "
        f"{tools}"
    )


def _kind_of(text: str) -> str:
    first = next(line for line in text.splitlines() if line.strip())
    for separator in (",", ";", "\t"):
        cells = [cell.strip().strip('"') for cell in first.split(separator)]
        if len(cells) > 2 and all(re.fullmatch(r"[A-Za-z][\w .()/%-]{0,30}", c) for c in cells):
            column_names = ", ".join(cells[:_SHOWN_KEYS])
            more = ", …" if len(cells) > _SHOWN_KEYS else ""
            return f"a table with the columns {column_names}{more}"
    return "text"
