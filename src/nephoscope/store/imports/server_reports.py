"""Reports of load generators for servers: wrk, ab, redis-benchmark, memtier_benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.store.imports import wrk2
from nephoscope.store.imports.rows import (
    BYTES_PER_S,
    FAILURES,
    MS,
    NS,
    PER_S,
    ImportedFigures,
    Merge,
    mapping,
    number_or_none,
)
from nephoscope.store.imports.source import Source
from nephoscope.store.imports.tool_reports import add_samples, parsed

_TIMES_NS = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_SIZES = {"B": 1.0, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}
_CLOSED_LOOP = (
    "{} sends in a closed loop: while the server stalls, nobody sends, so that a stall is one slow "
    "response for each connection."
)

_WRK = re.compile(r"^Running (\S+) test @ (\S+)$", re.MULTILINE)
_AB = re.compile(r"^This is ApacheBench, Version (\S+)", re.MULTILINE)


def is_wrk(text: str) -> bool:
    """States whether a text has a report of wrk or wrk2."""
    return bool(_WRK.search(text)) and "Thread Stats" in text


def is_ab(text: str) -> bool:
    """States whether a text has a report of ab."""
    return bool(_AB.search(text)) or bool(
        re.search(r"^Concurrency Level: +[0-9]+$", text, re.MULTILINE)
        and re.search(r"^Requests per second: ", text, re.MULTILINE)
    )


def _reports(text: str, beginning: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yields place and text of each report in a file."""
    starts = [match.start() for match in beginning.finditer(text)] or [0]
    ends = [*starts[1:], len(text)]
    for index, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
        yield f"Report {index}", text[start:end]


def read_wrk(source: Source) -> ImportedFigures:
    """Returns the figures of each report; wrk rounds its times to three digits."""
    figures = ImportedFigures("wrk")
    if not wrk2.is_wrk2(source.text):
        figures.missing.append(_CLOSED_LOOP.format("wrk"))
    figures.missing.append(
        "wrk's report rounds its times, and its standard deviations and the figures of its threads "
        "are not imported."
    )
    for place, text in _reports(source.text, _WRK):
        size = re.search(r"^ *([0-9]+) threads and ([0-9]+) connections$", text, re.MULTILINE)
        factors = dict(zip(("threads", "connections"), size.groups(), strict=True)) if size else {}
        requests = re.search(r"^ *([0-9]+) requests in ", text, re.MULTILINE)
        rate = re.search(r"^Requests/sec: +([0-9.]+)$", text, re.MULTILINE)
        if requests is None or rate is None:
            figures.left_out.append(f"{place}: it was cut off")
            continue
        if not float(requests.group(1)):
            figures.left_out.append(f"{place}: no request was answered")
            continue
        weight = float(requests.group(1))
        common: dict[str, Any] = {"factors": factors}
        figures.add(
            place, "", "requests_per_s", float(rate.group(1)), PER_S, headline=True, **common
        )
        transfer = re.search(r"^Transfer/sec: +([0-9.]+)([KMGT]?B)$", text, re.MULTILINE)
        if transfer:
            value = float(transfer.group(1)) * _SIZES[transfer.group(2)]
            figures.add(place, "", "transfer_bytes_per_s", value, BYTES_PER_S, **common)
        times = re.search(r"^ *Latency +(\S+) +\S+ +(\S+) +\S+%$", text, re.MULTILINE)
        for (metric, merge), words in zip(
            (("latency_mean_ns", Merge.WEIGHTED_MEAN), ("latency_max_ns", Merge.MAXIMUM)),
            times.groups() if times else (),
            strict=False,
        ):
            _add_time(figures, place, metric, words, factors, merge, weight)
        for rank, words in re.findall(r"^ *([0-9.]+)% +([0-9.]+[a-zµ]+)$", text, re.MULTILINE):
            if 0 < float(rank) < 100:
                label = f"{float(rank):g}".replace(".", "")
                _add_time(figures, place, f"latency_p{label}_ns", words, factors)
        _add_errors(figures, place, text, factors)
        _add_spectrum(figures, place, text, factors, int(weight))
        if head := _WRK.match(text):
            figures.settings = {"url": head.group(2), "duration": head.group(1)}
    return figures


def _add_spectrum(
    figures: ImportedFigures, place: str, text: str, factors: Mapping[str, str], requests: int
) -> None:
    """Adds the histogram of a report of wrk2 with --latency."""
    try:
        histogram = wrk2.spectrum(text)
    except ValueError as error:
        figures.left_out.append(f"{place}: {error}")
        return
    if histogram is None:
        return
    figures.add_histogram(place, "", "latency_ns", histogram, MS, factors=factors, headline=True)
    figures.missing += [wrk2.STEPS] if wrk2.STEPS not in figures.missing else []
    if histogram.total != requests:
        figures.missing.append(
            f"{place}: the histogram has {histogram.total:,} of {requests:,} requests; wrk2 begins "
            "it anew when its calibration ends."
        )


def _add_time(
    figures: ImportedFigures,
    place: str,
    metric: str,
    words: str,
    factors: Mapping[str, str],
    merge: Merge | None = None,
    weight: float = 0.0,
) -> None:
    """Adds a time such as 2.10ms; one of 0 is below the resolution."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(us|µs|ms|s|m|h)", words)
    if match is None:
        figures.left_out.append(f"{place}: {metric} is no time: '{words[:20]}'")
    elif float(match.group(1)):
        value = float(match.group(1)) * _TIMES_NS[match.group(2)]
        figures.add(place, "", metric, value, NS, factors=factors, merge=merge, weight=weight)


def _add_errors(
    figures: ImportedFigures, place: str, text: str, factors: Mapping[str, str]
) -> None:
    """Adds the failed connections and requests; wrk prints them only where there are some."""
    failed = 0.0
    sockets = re.search(
        r"Socket errors: connect ([0-9]+), read ([0-9]+), write ([0-9]+), timeout ([0-9]+)", text
    )
    failed += sum(map(float, sockets.groups())) if sockets else 0.0
    status = re.search(r"Non-2xx or 3xx responses: ([0-9]+)", text)
    failed += float(status.group(1)) if status else 0.0
    figures.add(place, "", "errors_count", failed, FAILURES, factors=factors)


def read_ab(source: Source) -> ImportedFigures:
    """Returns the figures of each report; ab rounds its percentiles to milliseconds."""
    figures = ImportedFigures("ab", missing=[_CLOSED_LOOP.format("ab")])
    figures.missing.append(
        "ab's report rounds its percentiles to milliseconds; its table of connection times is not "
        "imported."
    )
    for place, text in _reports(source.text, _AB):
        numbers = {
            key: float(match.group(1))
            for key, pattern in _AB_FIGURES.items()
            if (match := re.search(pattern, text, re.MULTILINE))
        }
        if "per_s" not in numbers or "complete" not in numbers:
            figures.left_out.append(f"{place}: it was cut off")
            continue
        if not numbers["complete"]:
            figures.left_out.append(f"{place}: no request was completed")
            continue
        factors = {"connections": f"{numbers['level']:.0f}"} if "level" in numbers else {}
        common: dict[str, Any] = {"factors": factors}
        figures.add(place, "", "requests_per_s", numbers["per_s"], PER_S, headline=True, **common)
        if numbers.get("mean"):
            figures.add(
                *(place, "", "latency_mean_ns", numbers["mean"], MS),
                merge=Merge.WEIGHTED_MEAN,
                weight=numbers["complete"],
                **common,
            )
        for rank, ms in re.findall(r"^ *([0-9]+)% +([0-9]+)(?: .*)?$", text, re.MULTILINE):
            longest = rank == "100"
            metric = "latency_max_ns" if longest else f"latency_p{rank}_ns"
            if float(ms):
                merge = Merge.MAXIMUM if longest else None
                figures.add(place, "", metric, float(ms), MS, merge=merge, **common)
        failed = numbers.get("failed", 0.0) + numbers.get("refused", 0.0)
        figures.add(place, "", "errors_count", failed, FAILURES, **common)
    return figures


_AB_FIGURES = {
    "level": r"^Concurrency Level: +([0-9]+)$",
    "complete": r"^Complete requests: +([0-9]+)$",
    "failed": r"^Failed requests: +([0-9]+)$",
    "refused": r"^Non-2xx responses: +([0-9]+)$",
    "per_s": r"^Requests per second: +([0-9.]+) \[#/sec\] \(mean\)$",
    "mean": r"^Time per request: +([0-9.]+) \[ms\] \(mean\)$",
}


_CSV_HEAD = '"test","rps"'
_CSV_OLD = re.compile(r'^"[^"\n]+","[0-9]+\.[0-9]{2}"$')


def is_redis_benchmark(text: str) -> bool:
    """States whether a text is what redis-benchmark writes with --csv."""
    lines = text.lstrip().splitlines()[:200]
    return bool(lines) and (
        lines[0].startswith(_CSV_HEAD) or all(_CSV_OLD.fullmatch(line) for line in lines if line)
    )


def read_redis_benchmark(source: Source) -> ImportedFigures:
    """Returns the figures of each command."""
    figures = ImportedFigures("redis-benchmark", missing=[_CLOSED_LOOP.format("redis-benchmark")])
    adapter = ADAPTERS["redis-benchmark"]
    head = ""
    for number, line in enumerate(source.text.splitlines(), start=1):
        line = line.strip()
        if line.startswith(_CSV_HEAD):
            head = line
        elif line:
            test = line.partition('","')[0].strip('"')
            place, factors = f"Line {number}", {"command": test}
            try:
                if _CSV_OLD.fullmatch(line):  # before Redis 6.2
                    rate = float(line.rsplit('"', 2)[1])
                    figures.add(
                        *(place, "", "requests_per_s", rate, PER_S), factors=factors, headline=True
                    )
                else:
                    samples = parsed("redis-benchmark", f"{head}\n{line}\n")
                    add_samples(figures, place, samples, adapter.spec.metrics, factors)
            except ValueError as error:
                figures.left_out.append(f"{place}: {error}")
    return figures


_RUN = re.compile(r"ALL STATS|RUN #[0-9]+ RESULTS")


def is_memtier(document: Mapping[str, Any]) -> bool:
    """States whether a JSON object is a report of memtier_benchmark."""
    return any(_RUN.fullmatch(str(key)) and isinstance(run, dict) for key, run in document.items())


def read_memtier(source: Source) -> ImportedFigures:
    """Returns the totals of each run (`-x`), and the rates of its commands."""
    document = source.document
    figures = ImportedFigures(
        "memtier_benchmark", missing=[_CLOSED_LOOP.format("memtier_benchmark")]
    )
    figures.missing.append(
        "Of memtier_benchmark's report, the single seconds (Time-Serie) and the histogram are not "
        "imported."
    )
    options = document.get("configuration")
    options = options if isinstance(options, dict) else {}
    names = ("clients", "threads", "pipeline", "data_size", "ratio")
    factors = {name: str(options[name]) for name in names if name in options}
    runs = [key for key in document if key != "ALL STATS" and _RUN.fullmatch(key)] or ["ALL STATS"]
    for key in runs:
        try:
            _add_run(figures, key, mapping(document[key], key), factors)
        except ValueError as error:
            figures.left_out.append(f"'{key}': {error}")
    return figures


def _add_run(
    figures: ImportedFigures, place: str, stats: Mapping[str, Any], factors: Mapping[str, str]
) -> None:
    times = stats.get("Runtime")
    times = times if isinstance(times, dict) else {}
    began, ended = (number_or_none(times.get(f"{name} time")) for name in ("Start", "Finish"))
    at_s = None if began is None else began / 1e3
    if began is not None and ended is not None:
        figures.span = (began / 1e3, ended / 1e3)
    totals = mapping(stats.get("Totals"), "Totals")
    common: dict[str, Any] = {"factors": factors, "at_s": at_s}
    weight = number_or_none(totals.get("Count")) or 0.0
    figures.add(place, "", "requests_per_s", totals.get("Ops/sec"), PER_S, headline=True, **common)
    for name, metric, merge in (
        ("Average", "latency_mean_ns", Merge.WEIGHTED_MEAN),
        ("Min", "latency_min_ns", Merge.MINIMUM),
        ("Max", "latency_max_ns", Merge.MAXIMUM),
    ):
        if totals.get(f"{name} Latency"):
            value = totals[f"{name} Latency"]
            figures.add(place, "", metric, value, MS, merge=merge, weight=weight, **common)
    ranks = totals.get("Percentile Latencies")
    for rank, value in (ranks if isinstance(ranks, dict) else {}).items():
        match = re.fullmatch(r"p([0-9]+(?:\.[0-9]+)?)", str(rank))
        if match:
            label = f"{float(match.group(1)):g}".replace(".", "")
            figures.add(place, "", f"latency_p{label}_ns", value, MS, **common)
    if "Misses/sec" in totals:
        figures.add(place, "", "misses_per_s", totals["Misses/sec"], PER_S, **common)
    for name, metric in (("Sets", "sets_per_s"), ("Gets", "gets_per_s")):
        if isinstance(stats.get(name), dict) and "Ops/sec" in stats[name]:
            figures.add(place, "", metric, stats[name]["Ops/sec"], PER_S, **common)
    if lost := number_or_none(totals.get("Connection Errors")):
        figures.add(place, "", "errors_count", lost, FAILURES, **common)
