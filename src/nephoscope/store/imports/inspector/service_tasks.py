"""Readers of Redis, static web, PostgreSQL and of memory and GPU bandwidth."""

from __future__ import annotations

from typing import Any

from nephoscope.store.imports.inspector.collector import (
    GB_PER_S,
    MB_PER_S,
    MS,
    NS,
    PER_MINUTE,
    PER_S,
    SECONDS,
    FigureCollector,
)
from nephoscope.store.imports.inspector.folder import TaskFolder
from nephoscope.store.imports.rows import items, mapping, mappings

_BW_MEM = frozenset({"rd", "wr", "rdwr"})


def _largest(best: dict[str, float], key: str, value: float | None) -> None:
    if value is not None:
        best[key] = max(value, best.get(key, 0.0))


def redis(task: TaskFolder, out: FigureCollector) -> None:
    """Requests per second of a server and a client on each CPU, summed, by pipeline depth.

    Latencies are milliseconds: with 50 clients of each of n generators, latency x rate = 50 n.
    """
    best: dict[str, float] = {}
    for cells in task.rows(("operation", "threads", "pipeline", "rps", "latency")):
        operation = cells["operation"]
        factors = {"operation": operation, "pipeline": cells["pipeline"]}
        rate = out.add_text("redis/requests_per_s", cells["rps"], PER_S, **factors)
        out.add_text("redis/latency_mean", cells["latency"], MS, **factors)
        _largest(best, f"operation={operation}", rate)
    out.add_best("redis/requests_per_s", best, PER_S, "pipeline")


def static_web(task: TaskFolder, out: FigureCollector) -> None:
    """Requests per second of one server process and its client on the same machine, by file size.

    Latencies are seconds: latency x rate is the number of connections.
    """
    best: dict[str, float] = {}
    columns = ("size", "threads", "connections", "rps", "latency", "failed")
    for cells in task.rows(columns):
        if cells["failed"] not in ("0", ""):
            out.leave_out(f"{cells['failed'][:20]} requests of size {cells['size'][:20]} failed")
            continue
        factors = {
            "size": cells["size"],
            "threads": cells["threads"],
            "connections": cells["connections"],
        }
        rate = out.add_text("static-web/requests_per_s", cells["rps"], PER_S, **factors)
        out.add_text("static-web/latency_mean", cells["latency"], SECONDS, **factors)
        _largest(best, f"size={cells['size']}", rate)
    out.add_best("static-web/requests_per_s", best, PER_S, "connections")


def postgres(task: TaskFolder, out: FigureCollector) -> None:
    """Transactions of pgbench, stated per minute, by concurrency and at its best."""
    values = mapping(task.json(), "stdout")
    unit = values.get("score_unit")
    if unit != "tpm":
        raise ValueError(f"the unit '{unit!s:.20}' of its score is not tpm")
    workload = task.task.removeprefix("pgbench_")
    out.add("pgbench/transactions_per_s", values.get("score"), PER_MINUTE, workload=workload)
    out.add("pgbench/latency_mean", values.get("latency_avg_ms"), MS, workload=workload)
    for size in mappings(values.get("sizes") or [], "sizes"):
        for level in mappings(size.get("profile") or [], "profile"):
            if level.get("tx_failed"):
                out.leave_out(f"{level['tx_failed']} transactions failed")
                continue
            factors = {"workload": workload, "clients": level.get("concurrency")}
            out.add("pgbench/transactions_per_s", level.get("tpm"), PER_MINUTE, **factors)
            out.add("pgbench/latency_mean", level.get("latency_avg_ms"), MS, **factors)


def memory_bandwidth(task: TaskFolder, out: FigureCollector) -> None:
    """bw_mem of lmbench: `operation megabytes megabytes_per_s` lines, all of 10^6 bytes."""
    for line in task.text().splitlines():
        cells = line.split()
        if len(cells) != 3 or cells[0] not in _BW_MEM:
            out.leave_out(f"the line '{line[:40]}' is no `operation size rate`")
            continue
        out.add_text(f"bw_mem.{cells[0]}/bytes_per_s", cells[2], MB_PER_S, mb=_plain(cells[1]))


def memory_ladder(task: TaskFolder, out: FigureCollector) -> None:
    """Bandwidth and latency by working set: rows of the one have 0 for the other."""
    columns = ("size_kb", "operation", "bandwidth_mb_s", "latency_ns")
    largest = (0, "")
    for cells in task.rows(columns):
        size, operation = cells["size_kb"], cells["operation"]
        if operation == "latency":
            out.add_text("membench/latency", cells["latency_ns"], NS, kib=size)
            if size.isdecimal():
                largest = max(largest, (int(size), cells["latency_ns"]))
        else:
            rate = cells["bandwidth_mb_s"]
            out.add_text(f"membench.{operation}/bytes_per_s", rate, MB_PER_S, kib=size)
    if largest[0]:
        out.add_text("membench/latency", largest[1], NS, kib="largest")


def _plain(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def gpu_bandwidth(task: TaskFolder, out: FigureCollector) -> None:
    """nvbandwidth: the sum over pairs of devices; a case with `latency` in its name is in ns."""
    document = mapping(mapping(task.json(), "stdout").get("nvbandwidth"), "nvbandwidth")
    for case in mappings(document.get("testcases") or [], "testcases"):
        if case.get("status") != "Passed":
            out.reading.count("without a value")
            continue
        name = str(case.get("name"))
        if "latency" in name:
            cells = [
                _number(cell) for row in items(case.get("bandwidth_matrix"), name) for cell in row
            ]
            times = [value for value in cells if value]
            out.add(f"nvbandwidth/{name}", sum(times) / len(times) if times else None, NS)
        else:
            out.add(f"nvbandwidth/{name}", case.get("sum"), GB_PER_S)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return 0.0
