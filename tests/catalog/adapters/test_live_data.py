"""The tools that load databases, stores and machines, live: their counts are the servers'."""

from __future__ import annotations

from pathlib import Path

import pytest
from live import measured, values
from tests.tools import needs

SECOND = {"duration_ns": 1_000_000_000}


@needs("redis-benchmark", "redis-server")
@pytest.mark.parametrize(
    ("command", "pipeline"), [("get", 1), ("set", 16), ("incr", 1), ("lpush", 7)]
)
def test_redis_executes_what_redis_benchmark_reports(
    probe: Path, command: str, pipeline: int
) -> None:
    params = {"command": command, "requests": 4000, "clients": 4, "pipeline": pipeline}
    trial, served = measured("redis-benchmark", params)
    assert served[f"{command}_count"] == -(-4000 // pipeline) * pipeline
    found = values(trial)
    assert found["latency_min_ns"] <= found["latency_p50_ns"] <= found["latency_max_ns"]


@needs("memtier_benchmark", "redis-server")
def test_redis_executes_what_memtier_reports(probe: Path) -> None:
    params = {"requests": 500, "clients": 4, "keys": 100, "sets": 1, "gets": 4}
    trial, served = measured("memtier", params)
    assert served["set_count"] + served["get_count"] == 100 + 4 * 500
    assert values(trial)["misses_per_s"] == 0


@needs("pgbench", "postgres", "initdb")
def test_postgresql_inserts_what_pgbench_reports(probe: Path) -> None:
    params = {"clients": 2, "synchronous_commit": False, **SECOND}
    trial, served = measured("db.pgbench", params)
    text = trial.documents["tool"]["stdout"]
    reported = int(text.partition("actually processed: ")[2].split()[0])
    assert reported == served["pgbench_history_inserted_count"] > 0
    assert served["pgbench_branches_updated_count"] == reported
    assert served["committed_count"] > reported


@needs("sysbench", "postgres", "initdb")
def test_postgresql_deletes_what_sysbench_reports(probe: Path) -> None:
    params = {"rows": 1000, "synchronous_commit": False, **SECOND}
    trial, served = measured("sysbench.oltp", params)
    text = trial.documents["tool"]["stdout"]
    reported = int(text.partition("transactions: ")[2].split()[0])
    assert reported == served["sbtest1_deleted_count"] > 0
    assert served["sbtest1_inserted_count"] == 1000 + reported
    assert values(trial)["errors_count"] == 0


@needs("sysbench")
@pytest.mark.parametrize(
    ("benchmark", "params", "product"),
    [
        ("sysbench.cpu", {}, None),
        ("sysbench.memory", {"block_bytes": 4096}, ("operations_per_s", 4096)),
        (
            "sysbench.fileio",
            {"total_bytes": 1 << 22, "files": 2, "mode": "rndwr"},
            ("writes_per_s", 16384),
        ),
    ],
)
def test_sysbench_measures_the_machine(
    probe: Path, benchmark: str, params: dict[str, object], product: tuple[str, int] | None
) -> None:
    found = values(measured(benchmark, {**params, **SECOND})[0])
    if product is None:
        assert found["events_per_s"] > 0
        return
    metric, size = product
    transferred = found.get("transfer_bytes_per_s") or found["written_bytes_per_s"]
    # Its report has two decimals of a mebibyte.
    assert transferred == pytest.approx(found[metric] * size, rel=1e-3, abs=0.01 * 2**20)


@needs("sqlite3")
@pytest.mark.parametrize(("synchronous", "journal"), [("off", "memory"), ("normal", "wal")])
def test_sqlite_has_all_rows(probe: Path, synchronous: str, journal: str) -> None:
    params = {"inserts": 3000, "synchronous": synchronous, "journal_mode": journal}
    found = values(measured("db.sqlite", params)[0])
    assert found["inserts_per_s"] * found["insert_mean_ns"] == pytest.approx(1e9)


@needs("sqlite3")
def test_nothing_stays_behind(probe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    measured("db.sqlite", {"inserts": 3000, "synchronous": "off"})
    assert list(tmp_path.iterdir()) == []
