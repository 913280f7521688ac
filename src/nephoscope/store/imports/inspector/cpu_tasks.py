"""Readers of stress-ng, Geekbench, PassMark, OpenSSL and compression."""

from __future__ import annotations

import re
from typing import Any

from nephoscope.store.imports.inspector.collector import (
    BUSY_S,
    BYTES_PER_S,
    NS,
    PER_S,
    POINTS,
    SIZE_SHARE,
    FigureCollector,
    word,
)
from nephoscope.store.imports.inspector.folder import TaskFolder
from nephoscope.store.imports.moments import moment_s
from nephoscope.store.imports.rows import items, mapping, mappings

_METHOD = re.compile(r"^\s+bogo-ops-per-second-real-time:\s*([0-9.]+)", re.MULTILINE)
_NUMBER = re.compile(r"^  ([A-Za-z_0-9]+): ([0-9.eE+-]+)\s*$", re.MULTILINE)
_SPEEDS = re.compile(r"^\+F:\d+:([^:\n]+):([0-9.:]+)$", re.MULTILINE)
_SIZES = (16, 64, 256, 1024, 8192, 16384)


def stress_ng_ladder(task: TaskFolder, out: FigureCollector) -> None:
    """Operations per second of the method div16 by number of workers: `workers,rate` lines."""
    rates: dict[int, str] = {}
    for line in task.text().splitlines():
        workers, comma, rate = line.partition(",")
        if not comma or not workers.isdecimal():
            out.leave_out(f"the line '{line[:40]}' is no `workers,rate`")
            continue
        rates[int(workers)] = rate
    for count, rate in rates.items():
        names = out.workers(count)
        if count == max(rates) and not out.cpus:
            names.append("all")
        for name in names:
            out.add_text("stress-ng.div16/ops_per_s", rate, PER_S, workers=name)


def stress_ng_method(task: TaskFolder, out: FigureCollector) -> None:
    """Operations per second of all methods, of the summary in YAML."""
    match = _METHOD.search(task.text("stderr"))
    if match is None:
        raise ValueError("it has no rate")
    workers = "1" if task.task == "stressngsinglecore" else "all"
    out.add_text("stress-ng.cpu/ops_per_s", match[1], PER_S, workers=workers)


def stress_ng_stressors(task: TaskFolder, out: FigureCollector) -> None:
    """Operations per second of each stressor."""
    stressors = mapping(mapping(task.json(), "stdout").get("stressors"), "stressors")
    for name, by_workers in stressors.items():
        for workers, values in mapping(by_workers, name).items():
            if not str(workers).isdecimal():
                out.leave_out(f"{name}: '{workers[:20]}' is no number of workers")
                continue
            rate = None if values is None else mapping(values, name).get("bogo_ops_per_sec")
            for label in out.workers(int(workers)):
                out.add(f"stress-ng.{word(name)}/ops_per_s", rate, PER_S, workers=label)


def long_run(task: TaskFolder, out: FigureCollector) -> None:
    """A day of rates, one a minute: `time,seconds of load,rate` lines."""
    for line in task.text("parsed.csv").splitlines():
        cells = line.split(",")
        at = moment_s(cells[0]) if len(cells) == 3 else None
        if at is None:
            out.leave_out(f"the line '{line[:40]}' is no `time,seconds,rate`")
            continue
        out.at_s = int(at)
        out.add_text("stress-ng.long-run/busy", cells[1], BUSY_S)
        out.add_text("stress-ng.long-run/ops_per_s", cells[2], PER_S)


def geekbench(task: TaskFolder, out: FigureCollector) -> None:
    """Scores of Geekbench 6, of one core and of all."""
    for title, workloads in mapping(task.json("results.json"), "results.json").items():
        cores = {"Single": "1", "Multi-": "all"}.get(str(title)[:6])
        if cores is None:
            out.leave_out(f"'{title!s:.40}' is neither single-core nor multi-core")
            continue
        for name, values in mapping(workloads, title).items():
            score = mapping(values, name).get("score")
            out.add(f"geekbench/{word(name).lower()}", score, POINTS, cores=cores)


def passmark(task: TaskFolder, out: FigureCollector) -> None:
    """Results of PassMark: scores, of which the memory latency is in ns, where less is better."""
    results = task.text().partition("\nResults:\n")[2].partition("\nSystemInformation:")[0]
    if not results:
        raise ValueError("it has no results")
    for name, text in _NUMBER.findall(results):
        if name != "NumTestProcesses":
            unit = NS if name == "ME_LATENCY" else POINTS
            out.add_text(f"passmark/{name.removeprefix('m_').lower()}", text, unit)


def openssl(task: TaskFolder, out: FigureCollector) -> None:
    """Bytes per second of all CPUs together, by algorithm and block size."""
    if task.has("parsed.json"):
        out.file = f"{task.task}/parsed.json"
        for entry in mappings(task.json("parsed.json"), "parsed.json"):
            _speed(out, entry.get("algo"), entry.get("block_size"), entry.get("speed"))
        return
    for algorithm, speeds in _SPEEDS.findall(task.text()):
        for size, speed in zip(_SIZES, speeds.split(":"), strict=False):
            _speed(out, algorithm, size, float(speed) if speed else None)


def _speed(out: FigureCollector, algorithm: Any, size: Any, speed: Any) -> None:
    name = word(algorithm).lower()
    out.add(f"openssl.{name}/bytes_per_s", speed, BYTES_PER_S, block=size)


def compression(task: TaskFolder, out: FigureCollector) -> None:
    """Bytes per second of compression and its inverse, and the size that is left."""
    for algorithm, levels in mapping(task.json(), "stdout").items():
        for level, entries in mapping(levels, algorithm).items():
            for entry in items(entries, f"{algorithm} {level}"):
                values = mapping(entry, algorithm)
                threads = values.get("threads")
                extra = mapping(values.get("extra_args") or {}, "extra_args")
                factors = {} if level == "null" else {"level": level}
                if "block_size" in extra:
                    factors["block"] = extra["block_size"]
                name = f"compression.{word(algorithm)}"
                for label in out.workers(threads if isinstance(threads, int) else 0):
                    marks = {**factors, "threads": label}
                    for key, metric, unit in _COMPRESSION:
                        out.add(f"{name}/{metric}", values.get(key), unit, **marks)


_COMPRESSION = (
    ("compress", "compress_bytes_per_s", BYTES_PER_S),
    ("decompress", "decompress_bytes_per_s", BYTES_PER_S),
    ("ratio", "size_ratio", SIZE_SHARE),
)
