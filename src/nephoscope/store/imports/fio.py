"""Reports of fio (`--output-format=json`): versions 2 and 3, client and server, one or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from nephoscope.store.imports.parts import merge_parts
from nephoscope.store.imports.rows import (
    BYTES_PER_S,
    COUNT,
    NS,
    PER_S,
    US,
    ImportedFigures,
    ImportedRow,
    Merge,
    mapping,
    mappings,
    number,
    number_or_none,
)
from nephoscope.store.imports.source import Source

_OPTIONS = ("rw", "bs", "iodepth", "numjobs", "ioengine", "direct", "size", "rate_iops")
_SYNCS = ("fsync", "fdatasync", "sync_file_range")
_DIRECTIONS = ("read", "write", "trim", "mixed")
_PERCENTILES = ("50", "90", "95", "99", "99_9", "99_99")
_KIB = 1024.0
_SAME_START_S = 3.0
"""fio states its time and its duration in whole seconds."""

_SUMMARY = (
    "fio reports a summary of a run: its single values, and with them their order, are lost.",
    "Of fio's report, submission latency (slat), minima, standard deviations, the rates of "
    "intervals (bw_min, iops_min, …), depths, CPU use and disk utilisation are not imported.",
)


def is_fio(document: Mapping[str, Any]) -> bool:
    """States whether a JSON object is a report of fio."""
    jobs = document.get("jobs") or document.get("client_stats")
    return "fio version" in document and isinstance(jobs, list)


def read(source: Source) -> ImportedFigures:
    """Returns rates and latencies of each job and direction. ValueError where there is none."""
    figures = ImportedFigures("fio", missing=list(_SUMMARY))
    reports = [value for _, value in source.documents.values if _is_report(value)]
    runs = _runs(reports)
    if len(reports) > len(runs):
        figures.missing.append(
            f"The file has {len(reports)} reports (--status-interval): the last one of each run is "
            "its result."
        )
    spans = []
    for number_of_run, report in enumerate(runs, start=1):
        where = f"Run {number_of_run}: " if len(runs) > 1 else ""
        spans.append(_read_report(report, where, figures))
    if len(spans) == 1:
        figures.span = spans[0]
    return figures


def _is_report(value: Any) -> bool:
    return isinstance(value, dict) and is_fio(value)


def _runs(reports: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the last report of each run: those of one run have one start."""
    runs: list[Mapping[str, Any]] = []
    starts: list[float | None] = []
    for report in reports:
        span = _span(report)
        start = span[0] if span else None
        last = starts[-1] if starts else None
        if runs and (start is None or last is None or abs(start - last) <= _SAME_START_S):
            runs[-1], starts[-1] = report, last if last is not None else start
        else:
            runs.append(report)
            starts.append(start)
    return runs


def _span(report: Mapping[str, Any]) -> tuple[float, float] | None:
    """Returns (begin, end) of a run; fio's time is that of the report, at its end."""
    end_s = number_or_none(report.get("timestamp"))
    if end_s is None:
        return None
    jobs = report.get("jobs") or report.get("client_stats") or []
    seconds = [number_or_none(job.get("elapsed")) for job in jobs if isinstance(job, dict)]
    elapsed_s = max((value for value in seconds if value is not None), default=None)
    return None if elapsed_s is None else (max(end_s - elapsed_s, 0.0), end_s)


class _Job(NamedTuple):
    name: str
    host: str
    generation: str
    factors: Mapping[str, str]
    values: Mapping[str, Any]
    keeps_percentiles: bool


def _read_report(
    report: Mapping[str, Any], where: str, figures: ImportedFigures
) -> tuple[float, float] | None:
    """Adds the figures of a report; returns when it was measured."""
    at = report.get("timestamp")
    at_s = None if at is None else number(at, "timestamp")
    common = mapping(report.get("global options") or {}, "global options")
    entries = report.get("jobs") or report.get("client_stats")
    clones: dict[tuple[Any, ...], list[_Job]] = {}
    for values in mappings(entries, "jobs"):
        job = _job(values, common)
        key = (job.name, job.host, job.generation, tuple(sorted(job.factors.items())))
        clones.setdefault(key, []).append(job)
    not_imported: set[str] = set()
    for jobs in clones.values():
        _add_job(jobs, where, at_s, figures, not_imported)
    if not_imported:
        ranks = ", ".join(sorted(not_imported, key=lambda text: float(text.replace("_", "."))))
        figures.missing.append(f"fio's percentiles {ranks} are not imported.")
    return _span(report)


def _job(values: Mapping[str, Any], common: Mapping[str, Any]) -> _Job:
    options = {**common, **mapping(values.get("job options") or {}, "job options")}
    factors = {key: str(options[key]) for key in (*_OPTIONS, *_SYNCS) if key in options}
    host = str(values.get("hostname") or "")
    if host:
        factors["host"] = host
    waits = "stonewall" in options or "wait_for_previous" in options
    return _Job(
        name=str(values.get("jobname", "job")),
        host=host,
        # Jobs that wait for those before them ran later; all others at the same time.
        generation=str(values.get("groupid", "")) if waits else "",
        factors=factors,
        values=values,
        keeps_percentiles="percentile_list" in options,
    )


def _add_job(
    jobs: Sequence[_Job],
    where: str,
    at_s: float | None,
    figures: ImportedFigures,
    unlisted: set[str],
) -> None:
    """Adds the figures of a job; several entries of it are its parallel clones (`numjobs`)."""
    name, several = jobs[0].name, len(jobs) > 1
    title = f"{where}Job '{name}'" + (f" on {jobs[0].host}" if jobs[0].host else "")
    errors = [job.values["error"] for job in jobs if job.values.get("error")]
    if errors:
        share = f"{len(errors)} of {len(jobs)} parallel jobs" if several else "the job"
        figures.left_out.append(f"{title}: {share} ended with error {errors[0]!s:.20}")
        return
    own = ImportedFigures("fio")
    parts: list[list[ImportedRow]] = []
    for job in jobs:
        before = len(own.rows)
        for direction in _DIRECTIONS:
            values = job.values.get(direction)
            if isinstance(values, dict) and _has_operations(values):
                _add_direction(own, job, title, direction, values, at_s, unlisted)
        _add_sync(own, job, title, at_s, unlisted)
        parts.append(own.rows[before:])
    if not any(parts):
        figures.left_out += own.left_out or [f"{title}: it did no I/O (0 operations)"]
        return
    figures.left_out += own.left_out
    if not several:
        figures.rows += parts[0]
        return
    merged = merge_parts(parts)
    figures.rows += [
        replace(row, place=f"{title}, {len(jobs)} parallel jobs") for row in merged.rows
    ]
    figures.missing.append(
        f"The {len(jobs)} entries of job '{name}' ran at the same time (numjobs={len(jobs)}): "
        f"their rates are summed, and count as one repetition.{merged.sentence}"
    )


def _has_operations(values: Mapping[str, Any]) -> bool:
    """States whether a job did anything in a direction; fio 2.0 does not count operations."""
    count = values["total_ios"] if "total_ios" in values else values.get("iops")
    return number_or_none(count) is not None


def _add_direction(
    figures: ImportedFigures,
    job: _Job,
    title: str,
    direction: str,
    values: Mapping[str, Any],
    at_s: float | None,
    unlisted: set[str],
) -> None:
    place = f"{title}, {direction}"
    common: dict[str, Any] = {"factors": job.factors, "at_s": at_s}
    add = figures.add
    name = f"{direction}_operations_per_s"
    add(place, job.name, name, values.get("iops"), PER_S, headline=True, **common)
    if "bw_bytes" in values:
        add(place, job.name, f"{direction}_bytes_per_s", values["bw_bytes"], BYTES_PER_S, **common)
    else:  # fio 2 has KiB per second only
        kib_per_s = BYTES_PER_S._replace(factor=_KIB)
        add(place, job.name, f"{direction}_bytes_per_s", values.get("bw"), kib_per_s, **common)
    weight = number_or_none(values.get("total_ios")) or 0.0
    for kind in ("lat", "clat"):
        _add_times(figures, job, place, f"{direction}_{kind}", values, kind, weight, at_s, unlisted)


def _add_sync(
    figures: ImportedFigures, job: _Job, title: str, at_s: float | None, unlisted: set[str]
) -> None:
    """Adds the times of fsync and fdatasync; `total_ios` of them is 0 in some versions."""
    values = job.values.get("sync")
    if not isinstance(values, dict):
        return
    times = values.get("lat_ns")
    count = number_or_none(times.get("N")) if isinstance(times, dict) else None
    count = count or number_or_none(values.get("total_ios"))
    if count is None:
        return
    place = f"{title}, sync"
    figures.add(
        place, job.name, "sync_operations_count", count, COUNT, factors=job.factors, at_s=at_s
    )
    _add_times(figures, job, place, "sync_lat", values, "lat", count, at_s, unlisted)


def _add_times(
    figures: ImportedFigures,
    job: _Job,
    place: str,
    prefix: str,
    values: Mapping[str, Any],
    kind: str,
    weight: float,
    at_s: float | None,
    unlisted: set[str],
) -> None:
    """Adds mean, maximum and percentiles; fio 2 states microseconds."""
    times, unit = values.get(f"{kind}_ns"), NS
    if times is None:
        times, unit = values.get(kind), US
    if not isinstance(times, dict):
        return
    common: dict[str, Any] = {"factors": job.factors, "at_s": at_s}
    for key, merge in (("mean", Merge.WEIGHTED_MEAN), ("max", Merge.MAXIMUM)):
        if times.get(key):
            figures.add(
                *(place, job.name, f"{prefix}_{key}_ns", times[key], unit),
                merge=merge,
                weight=weight,
                **common,
            )
    for label, value in _percentiles(times, place, figures):
        if label not in _PERCENTILES and not job.keeps_percentiles:
            unlisted.add(label)
            continue
        # What people run fio with fdatasync for.
        headline = prefix == "sync_lat" and label == "99"
        figures.add(
            *(place, job.name, f"{prefix}_p{label}_ns", value, unit), headline=headline, **common
        )


def _percentiles(
    times: Mapping[str, Any], place: str, figures: ImportedFigures
) -> Iterator[tuple[str, Any]]:
    """Yields rank and value; a rank that is no number is left out with a sentence."""
    for rank, value in mapping(times.get("percentile") or {}, "percentile").items():
        try:
            percent = float(rank)
        except ValueError:
            figures.left_out.append(f"{place}: the percentile '{rank:.40}' is no number")
            continue
        if 0 < percent <= 100:  # fio 2 pads its list with 0.00
            yield f"{percent:g}".replace(".", "_"), value
