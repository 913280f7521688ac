"""The JSON reports of hyperfine, iperf3, fio and k6."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nephoscope.model import Better
from nephoscope.store.imports.rows import Figures, Row, number
from nephoscope.store.imports.units import Unit

Document = Mapping[str, Any]

_NS = Unit("ns", 1.0, Better.LOWER)
_MS = Unit("ns", 1e6, Better.LOWER)
_SECONDS = Unit("ns", 1e9, Better.LOWER)
_BITS_PER_S = Unit("bits_per_s", 1.0, Better.HIGHER)
_BYTES_PER_S = Unit("bytes_per_s", 1.0, Better.HIGHER)
_PER_S = Unit("per_s", 1.0, Better.HIGHER)
_COUNT = Unit("count", 1.0, Better.NONE)
_FAILURES = Unit("count", 1.0, Better.LOWER)
_BYTES = Unit("bytes", 1.0, Better.LOWER)
_PERCENT = Unit("ratio", 0.01, Better.NONE)
_FAILED_PERCENT = Unit("ratio", 0.01, Better.LOWER, share=True)
_SHARE = Unit("ratio", 1.0, Better.NONE, share=True)
_PLAIN = Unit("none", 1.0, Better.NONE)

_IN_SEQUENCE = (
    "hyperfine measures one command after the other, so that a slow change of the machine looks "
    "like a difference between commands."
)
_IPERF3_TOTAL = (
    "iperf3's total of a run is imported as one value; its intervals of a second depend on one "
    "another."
)
_SUMMARY = "{} reports a summary of a run: its single values, and with them their order, are lost."


def hyperfine(document: Document) -> Figures:
    """Returns the executions of each command (`--export-json`)."""
    rows: list[Row] = []
    for result in _mappings(document["results"], "results"):
        parameters = _mapping(result.get("parameters") or {}, "parameters")
        factors = {"command": str(result["command"]), **_texts(parameters)}
        codes = _list(result.get("exit_codes") or [], "exit_codes")
        for index, seconds in enumerate(_list(result.get("times"), "times")):
            place = f"Execution {index + 1} of '{factors['command']}'"
            code = codes[index] if index < len(codes) else 0
            if code != 0:
                raise ValueError(f"{place} ended with exit code {code}")
            value = number(seconds, "times")
            rows.append(Row(place, "command", "wall_ns", value, _SECONDS, factors, headline=True))
        for index, size in enumerate(
            _list(result.get("memory_usage_byte") or [], "memory_usage_byte")
        ):
            place = f"Execution {index + 1} of '{factors['command']}'"
            value = number(size, "memory_usage_byte")
            rows.append(Row(place, "command", "max_rss_bytes", value, _BYTES, factors))
    return Figures("hyperfine", rows, (_IN_SEQUENCE,))


def iperf3(document: Document) -> Figures:
    """Returns the totals of a run (`--json`)."""
    if document.get("error"):
        raise ValueError(f"iperf3 reports the error '{document['error']}'")
    start, end = _mapping(document["start"], "start"), _mapping(document["end"], "end")
    test = _mapping(start.get("test_start"), "test_start")
    at_s = number(_mapping(start.get("timestamp"), "timestamp").get("timesecs"), "timesecs")
    keys = ("protocol", "num_streams", "reverse", "bidir", "blksize", "target_bitrate")
    factors = {key: str(test[key]) for key in keys if key in test}
    name = str(test.get("protocol", "TCP")).lower()

    def row(metric: str, value: Any, unit: Unit, *, headline: bool = False) -> Row:
        figure = number(value, metric)
        return Row("The total", name, metric, figure, unit, factors, headline=headline, at_s=at_s)

    rows = []
    for key in ("sum_sent", "sum_received", "sum", "sum_sent_bidir_reverse"):
        for field, unit, headline in (
            ("bits_per_second", _BITS_PER_S, key in ("sum_received", "sum")),
            ("retransmits", _FAILURES, False),
            ("jitter_ms", _MS, False),
            ("lost_percent", _FAILED_PERCENT, False),
        ):
            total = end.get(key)
            if isinstance(total, dict) and field in total:
                rows.append(row(f"{key}_{_UNITLESS[field]}", total[field], unit, headline=headline))
    for side, value in _mapping(end.get("cpu_utilization_percent") or {}, "cpu").items():
        if side.endswith("_total"):
            rows.append(row(f"cpu_{side.removesuffix('_total')}_ratio", value, _PERCENT))
    return Figures("iperf3", rows, (_IPERF3_TOTAL,))


_UNITLESS = {
    "bits_per_second": "bits_per_s",
    "retransmits": "retransmits_count",
    "jitter_ms": "jitter_ns",
    "lost_percent": "lost_ratio",
}


def fio(document: Document) -> Figures:
    """Returns rates and latencies of each job and direction (`--output-format=json`)."""
    at_s = None if (at := document.get("timestamp")) is None else number(at, "timestamp")
    common = _mapping(document.get("global options") or {}, "global options")
    rows: list[Row] = []
    for job in _mappings(document["jobs"], "jobs"):
        name = str(job.get("jobname", "job"))
        if job.get("error"):
            raise ValueError(f"fio's job '{name}' ended with error {job['error']}")
        options = {**common, **_mapping(job.get("job options") or {}, "job options")}
        keys = ("rw", "bs", "iodepth", "numjobs", "ioengine", "direct", "size", "rate_iops")
        factors = {key: str(options[key]) for key in keys if key in options}
        for direction in ("read", "write", "trim"):
            figures = job.get(direction)
            if isinstance(figures, dict) and figures.get("total_ios"):
                rows += _fio_rows(name, direction, figures, factors, at_s)
    return Figures("fio", rows, (_SUMMARY.format("fio"),))


def _fio_rows(
    job: str, direction: str, figures: Document, factors: Mapping[str, str], at_s: float | None
) -> Iterator[Row]:
    place = f"Job '{job}', {direction}"

    def row(metric: str, value: Any, unit: Unit, *, headline: bool = False) -> Row:
        metric = f"{direction}_{metric}"
        figure = number(value, metric)
        return Row(place, job, metric, figure, unit, factors, headline=headline, at_s=at_s)

    yield row("operations_per_s", figures.get("iops"), _PER_S, headline=True)
    yield row("bytes_per_s", figures.get("bw_bytes"), _BYTES_PER_S)
    for kind in ("lat", "clat"):
        times = figures.get(f"{kind}_ns")
        if not isinstance(times, dict):
            continue
        for key in ("mean", "max"):
            if times.get(key):
                yield row(f"{kind}_{key}_ns", times[key], _NS)
        for percentile, value in _mapping(times.get("percentile") or {}, "percentile").items():
            try:
                label = f"{float(percentile):g}".replace(".", "_")
            except ValueError:
                raise ValueError(
                    f"{place}: the percentile '{percentile:.40}' is no number"
                ) from None
            if label in ("50", "90", "95", "99", "99_9", "99_99"):
                yield row(f"{kind}_p{label}_ns", value, _NS)


_K6_TIMES = ("http_req_", "ws_", "grpc_", "iteration_duration", "group_duration", "browser_")
_K6_FAILURES = ("http_req_failed", "browser_http_req_failed")
_K6_PLAIN = (*_K6_FAILURES, "browser_web_vital_cls")
"""Metrics with a prefix of times that are none."""


def k6(document: Document) -> Figures:
    """Returns the metrics of a summary (`--summary-export`, or the data of `handleSummary`)."""
    rows: list[Row] = []
    for name, metric in _mapping(document["metrics"], "metrics").items():
        metric = _mapping(metric, name)
        values = _mapping(metric.get("values", metric), name)
        contains = metric.get("contains")
        base = name.partition("{")[0]  # without the tags of a submetric
        known = base.startswith(_K6_TIMES) and base not in _K6_PLAIN
        unit = _MS if contains == "time" or (contains is None and known) else _PLAIN
        for key, value in values.items():
            if key == "thresholds":
                continue
            yielded = _k6_unit(base, key, unit, of_rate="passes" in values)
            place, main = f"Metric '{name}'", (name, key) in _K6_HEADLINES
            figure = number(value, f"{name}.{key}")
            rows.append(Row(place, "k6", f"{name}.{key}", figure, yielded, {}, headline=main))
    return Figures("k6", rows, (_SUMMARY.format("k6"),))


_K6_HEADLINES = {
    ("http_reqs", "rate"),
    ("http_req_duration", "med"),
    ("http_req_duration", "p(95)"),
}


def _k6_unit(name: str, key: str, unit: Unit, *, of_rate: bool) -> Unit:
    """Returns the unit of a figure. of_rate: of a metric of k6's type Rate, which is a share."""
    if name in ("data_sent", "data_received"):
        return {"rate": _BYTES_PER_S}.get(key, Unit("bytes", 1.0, Better.NONE))
    if key in ("count", "passes", "fails"):
        return _COUNT
    if of_rate and key in ("rate", "value"):
        return _SHARE._replace(better=Better.LOWER) if name in _K6_FAILURES else _SHARE
    return _PER_S if key == "rate" else unit


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"'{what}' is missing or no object")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"'{what}' is missing or no list")
    return value


def _mappings(value: Any, what: str) -> list[dict[str, Any]]:
    return [_mapping(item, what) for item in _list(value, what)]


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in values.items()}
