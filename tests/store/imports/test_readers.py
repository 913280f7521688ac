"""Readers of single formats: units, versions, what is left out, and what cannot be true."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nephoscope.core.model import Better

from .test_formats import read, values


def fio_times(scale: float = 1.0, **percentiles: float) -> dict[str, Any]:
    ranks = {key.strip("p").replace("_", "."): value for key, value in percentiles.items()}
    return {"min": 1, "max": 9e6 * scale, "mean": 2e6 * scale, "percentile": ranks}


def fio(*jobs: dict[str, Any], at: float = 2000, **more: Any) -> dict[str, Any]:
    return {"fio version": "fio-3.33", "timestamp": at, "jobs": list(jobs), **more}


def job(iops: float, name: str = "t", **more: Any) -> dict[str, Any]:
    read_ = {"total_ios": 100, "iops": iops, "bw_bytes": iops * 4096}
    times = fio_times(p99_000000=5e6)
    return {"jobname": name, "groupid": 0, "elapsed": 10, "job options": {"rw": "randread"}} | {
        "read": {**read_, "clat_ns": times},
        **more,
    }


def of(document: Any) -> Any:
    return read(json.dumps(document))[1]


def test_fio_2_has_kib_per_second_and_microseconds() -> None:
    old = {"total_ios": 5, "iops": 7, "bw": 100, "clat": fio_times(1e-3, p99_000000=1350.0)}
    old["clat"]["percentile"]["0.00"] = 0
    figures = of(fio({"jobname": "t", "read": old}))
    found = values(figures)
    assert found["read_bytes_per_s"] == 102_400
    assert found["read_clat_p99_ns"] == 1_350_000
    assert found["read_clat_mean_ns"] == 2_000_000
    assert not figures.left_out
    del old["total_ios"]
    assert values(of(fio({"jobname": "t", "read": old})))["read_operations_per_s"] == 7
    assert of(fio({"jobname": "t", "read": {"iops": 0}})).left_out[0].endswith("(0 operations)")


def test_clones_of_a_job_are_summed_and_their_percentiles_named() -> None:
    figures = of(fio(*(job(iops) for iops in (10.0, 20.0, 70.0))))
    rates = [row.figure for row in figures.rows if row.metric == "read_operations_per_s"]
    assert rates == [100.0]
    assert "read_clat_p99_ns" not in values(figures)
    assert any(
        "3 entries of job 't'" in text and "read_clat_p99_ns" in text for text in figures.missing
    )
    one_failed = of(fio(job(10.0), job(0.0, error=5), job(3.0, name="other")))
    assert one_failed.left_out == ["Job 't': 1 of 2 parallel jobs ended with error 5"]
    assert values(one_failed)["read_operations_per_s"] == 3.0


def test_jobs_that_wait_for_another_are_repetitions() -> None:
    options = {"rw": "randread", "stonewall": "1"}
    later = [
        job(iops, groupid=index, **{"job options": options})
        for index, iops in enumerate((5.0, 6.0))
    ]
    figures = of(fio(*later))
    rates = [row.figure for row in figures.rows if row.metric == "read_operations_per_s"]
    assert rates == [5.0, 6.0]


def test_the_last_report_of_each_run_of_fio_counts() -> None:
    interval = [fio(job(iops, elapsed=at - 1990), at=at) for at, iops in ((1995, 1.0), (2000, 2.0))]
    again = fio(job(3.0), at=3000)
    _, figures = read("\n".join(json.dumps(one, indent=1) for one in (*interval, again)))
    rates = [row.figure for row in figures.rows if row.metric == "read_operations_per_s"]
    assert rates == [2.0, 3.0]


def test_fio_sync_mixed_and_clients() -> None:
    sync = {"total_ios": 0, "lat_ns": {"N": 455, **fio_times(p99_000000=12e6)}}
    found = of(fio(job(1.0, sync=sync)))
    (p99,) = [row for row in found.rows if row.metric == "sync_lat_p99_ns"]
    assert (p99.figure, p99.headline) == (12e6, True)
    mixed = of(fio({"jobname": "m", "mixed": job(9.0)["read"]}))
    assert values(mixed)["mixed_operations_per_s"] == 9.0
    client = {**fio(), "client_stats": [job(1.0, hostname=name) for name in ("a", "b")]}
    del client["jobs"]
    assert [row.factors["host"] for row in of(client).rows if row.headline] == ["a", "b"]


def test_keys_that_are_there_twice() -> None:
    text = json.dumps(fio(job(7.0)))
    same = text.replace('"iops": 7.0', '"iops": 7.0, "iops": 7.0')
    assert values(read(same)[1])["read_operations_per_s"] == 7.0
    other = read(text.replace('"iops": 7.0', '"iops": 7.0, "iops": 8.0'))[1]
    assert "read_operations_per_s" not in values(other)
    assert "there more than once, with different values: 7.0, 8.0" in other.left_out[0]
    options = read(text.replace('"rw": "randread"', '"rw": "read", "rw": "write"'))[1]
    assert options.rows[0].factors["rw"] == "read, write"


def iperf3(protocol: str = "UDP", reverse: int = 0, **end: Any) -> dict[str, Any]:
    start = {"version": "iperf 3.12", "timestamp": {"timesecs": 1000}}
    start["test_start"] = {"protocol": protocol, "reverse": reverse}
    return {"start": start, "intervals": [], "end": end}


def udp(rate: float, lost: float) -> dict[str, Any]:
    return {
        "bits_per_second": rate,
        "lost_percent": lost,
        "jitter_ms": 1.0,
        "packets": 100,
        "seconds": 10,
    }


def test_goodput_is_the_rate_at_the_receiver() -> None:
    document = iperf3(sum=udp(10e6, 56.0), sum_sent=udp(10e6, 0), sum_received=udp(4.4e6, 56.0))
    figures = of(document)
    found = values(figures)
    assert found["goodput_bits_per_s"] == 4.4e6
    assert found["sent_bits_per_s"] == 10e6
    assert found["loss_ratio"] == 0.56
    assert [row.metric for row in figures.rows if row.headline] == ["goodput_bits_per_s"]
    assert figures.span == (1000, 1010)


def test_a_version_without_the_rate_at_the_receiver() -> None:
    figures = of(iperf3(sum=udp(10e6, 25.0)))
    assert values(figures)["goodput_bits_per_s"] == 7.5e6
    assert any("less the lost datagrams" in text for text in figures.missing)


@pytest.mark.parametrize("lost", [179.6, -0.7])
def test_losses_that_cannot_be_are_left_out(lost: float) -> None:
    for document in (
        iperf3(sum=udp(1e6, lost), sum_received=udp(1e6, lost), sum_sent=udp(1e6, 0)),
        iperf3(sum=udp(1e6, lost), sum_received=udp(1e6, 50.0), sum_sent=udp(1e6, 0)),
        iperf3(sum=udp(1e6, lost)),
    ):
        figures = of(document)
        assert "loss_ratio" not in values(figures)
        assert any("loss_ratio" in text for text in figures.left_out)


def test_both_directions_of_tcp() -> None:
    totals = {"sum_sent": 5.0, "sum_received": 4.0, "sum_sent_bidir_reverse": 9.0}
    totals["sum_received_bidir_reverse"] = 8.0
    end = {key: {"bits_per_second": value, "retransmits": 1} for key, value in totals.items()}
    rows = of(iperf3("TCP", **end)).rows
    goodput = {row.factors["direction"]: row.figure for row in rows if row.headline}
    assert goodput == {"up": 4.0, "down": 8.0}
    reverse = of(iperf3("TCP", reverse=1, **{k: end[k] for k in ("sum_sent", "sum_received")}))
    assert {row.factors["direction"] for row in reverse.rows} == {"down"}


def test_events_of_iperf3_are_a_report() -> None:
    document = iperf3(sum=udp(10e6, 0), sum_received=udp(9e6, 0), sum_sent=udp(10e6, 0))
    lines = [{"event": key, "data": document[key]} for key in ("start", "end")]
    _, figures = read("\n".join(map(json.dumps, lines)))
    assert values(figures)["goodput_bits_per_s"] == 9e6


def test_the_machine_readable_summary_of_k6() -> None:
    document = {
        "version": "1.0.0",
        "metadata": {"k6_version": "1.7.1", "generated_at": "2026-05-18T10:00:10Z"},
        "config": {"duration": 10.0},
        "results": {
            "metrics": [
                {"name": "http_req_duration", "type": "trend", "contains": "time"}
                | {"values": {"avg": 2, "med": 1, "p95": 3}},
                {"name": "http_reqs", "type": "counter", "values": {"count": 50}},
                {"name": "http_req_failed", "type": "rate"}
                | {"values": {"matches": 1, "total": 50, "rate": 0.02}},
            ]
        },
    }
    prefix, figures = read(json.dumps(document))
    found = values(figures)
    assert prefix == "k6"
    assert found["http_req_duration.p(95)"] == 3e6
    assert found["http_reqs.rate"] == 5.0
    assert found["http_req_failed.rate"] == 0.02
    assert figures.span == (1779098400.0, 1779098410.0)


def test_crossed_thresholds_of_k6_are_named_and_disordered_percentiles_left_out() -> None:
    trend = {"avg": 2, "p(90)": 9, "p(95)": 3, "thresholds": {"p(95)<1": True, "p(95)<9": False}}
    other = {"rate": 0.5, "passes": 1, "fails": 1, "thresholds": {"rate<0.1": {"ok": False}}}
    figures = of({"metrics": {"http_req_duration": trend, "checks": other}})
    crossed = next(text for text in figures.missing if "Thresholds" in text)
    assert (
        crossed == "Thresholds of k6 that were crossed: http_req_duration p(95)<1, checks rate<0.1."
    )
    assert not any(".p(" in name for name in values(figures))
    assert "percentiles that do not ascend" in figures.left_out[0]


def test_google_benchmark() -> None:
    entry = {"name": "BM_x", "run_name": "BM_x", "run_type": "iteration", "time_unit": "us"}
    entry |= {"real_time": 5.0, "cpu_time": 4.0, "items_per_second": 100.0, "mine": 3.0}
    bad = {"name": "BM_y", "run_type": "iteration", "error_occurred": True, "error_message": "no"}
    mean = {**entry, "name": "BM_x_mean", "run_type": "aggregate", "aggregate_name": "mean"}
    alone = {**mean, "name": "BM_z_mean", "run_name": "BM_z"}
    context = {"date": "2024-05-01T10:00:00+00:00", "cpu_scaling_enabled": True}
    _, figures = read(
        json.dumps({"context": context, "benchmarks": [entry, entry, bad, mean, alone]})
    )
    real = [row for row in figures.rows if row.metric == "real_ns"]
    assert [row.figure for row in real] == [5e3, 5e3]
    assert {row.at_s for row in real} == {1714557600.0}
    assert values(figures)["mine"] == 3.0
    assert values(figures)["real_mean_ns"] == 5e3
    assert figures.left_out == ["Benchmark 'BM_y': it failed or was skipped (no)"]
    assert any("scaling" in text for text in figures.missing)


def test_pytest_benchmark_with_and_without_rounds() -> None:
    stats = {"median": 0.15, "mean": 0.16, "min": 0.1, "max": 0.2}
    entries = [
        {"fullname": "a", "params": {"n": 1}, "stats": {**stats, "data": [0.1, 0.2]}},
        {"fullname": "b", "params": None, "stats": stats},
        {"fullname": "c"},
    ]
    _, figures = read(json.dumps({"benchmarks": entries, "datetime": "2024-05-01T10:00:00"}))
    rounds = [row for row in figures.rows if row.metric == "wall_ns"]
    assert [row.figure for row in rounds] == [1e8, 2e8]
    assert rounds[0].factors == {"name": "a", "n": "1"}
    assert values(figures)["wall_median_ns"] == 1.5e8
    assert figures.left_out == ["Benchmark 'c': 'stats' is missing or no JSON object"]


@pytest.mark.parametrize("hashed", [True, False])
def test_both_json_versions_of_the_phoronix_test_suite(hashed: bool) -> None:
    systems = {
        "vm-a": {"value": 2, "all_results": "1:2:3"},
        "vm-b": {"value": "", "all_results": ""},
    }
    test = {"results": systems} | (
        {"identifier": "pts/x-1.0", "scale": "MIPS", "proportion": "HIB"}
        if hashed
        else {"arguments": "a", "units": "MIPS"}
    )
    _, figures = read(
        json.dumps({"title": "t", "results": {"abc" if hashed else "pts/x-1.0": test}})
    )
    assert [row.figure for row in figures.rows] == [1, 2, 3]
    assert {(row.test, row.metric) for row in figures.rows} == {("pts/x-1.0", "MIPS")}
    assert figures.left_out == ["Test pts/x-1.0 on vm-b: it has no result"]


SYSBENCH_04 = """sysbench 0.4.12:  multi-threaded system evaluation benchmark

Number of threads: 1

Doing CPU performance benchmark

Test execution summary:
    total time:                          20.0000s
    total number of events:              10000
    per-request statistics:
         avg:                                  2.62ms
         max:                                  6.29ms
         approx.  95 percentile:               2.67ms

Threads fairness:
    execution time (avg/stddev):   26.2393/0.00
"""


def test_sysbench_before_version_1() -> None:
    found = values(read(SYSBENCH_04)[1])
    assert found == {
        "events_per_s": 500.0,
        "latency_mean_ns": 2.62e6,
        "latency_max_ns": 6.29e6,
        "latency_p95_ns": 2.67e6,
    }
    memory = SYSBENCH_04.replace(
        "Doing CPU performance", "Doing memory operations speed test"
    ).replace("Test execution", "10240.00 MB transferred (8123.00 MB/sec)\n\nTest execution")
    assert values(read(memory)[1])["transfer_bytes_per_s"] == 8123 * 2**20


def test_reports_of_several_cpus_are_no_repetitions() -> None:
    _, figures = read("".join(f"CPU {cpu} {SYSBENCH_04}" for cpu in range(3)))
    assert {row.factors["cpu"] for row in figures.rows} == {"0", "1", "2"}


WRK = """Running 10s test @ http://192.0.2.1:80/
  2 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.10ms    1.00ms   1.30s    90.00%
    Req/Sec     2.40k   200.00     3.00k    70.00%
  Latency Distribution
     50%  900.00us
     99%    6.00ms
  48000 requests in 10.00s, 40.00MB read
  Socket errors: connect 0, read 2, write 0, timeout 3
  Non-2xx or 3xx responses: 5
Requests/sec:   4800.00
Transfer/sec:      4.00MB
"""


def test_reports_of_wrk_ab_and_redis_benchmark() -> None:
    prefix, figures = read(WRK + WRK.partition("Requests/sec")[0])
    found = values(figures)
    assert prefix == "wrk"
    assert found["requests_per_s"] == 4800
    assert found["latency_max_ns"] == 1.3e9
    assert found["latency_p50_ns"] == 9e5
    assert found["errors_count"] == 10
    assert figures.left_out == ["Report 2: it was cut off"]
    ab = (
        "This is ApacheBench, Version 2.3 <$Revision: 1 $>\nConcurrency Level:      10\n"
        "Complete requests:      5000\nFailed requests:        1\nNon-2xx responses:      2\n"
        "Requests per second:    5000.00 [#/sec] (mean)\n"
        "Time per request:       2.000 [ms] (mean)\n"
        "  50%      2\n  99%      7\n 100%     30 (longest request)\n"
    )
    assert values(read(ab)[1]) == {
        "requests_per_s": 5000,
        "latency_mean_ns": 2e6,
        "latency_p50_ns": 2e6,
        "latency_p99_ns": 7e6,
        "latency_max_ns": 30e6,
        "errors_count": 3,
    }
    old = read('"SET","120000.00"\n"GET","x"\n"GET","130000.00"\n'.replace('"GET","x"\n', ""))[1]
    assert [(row.factors["command"], row.figure) for row in old.rows] == [
        ("SET", 12e4),
        ("GET", 13e4),
    ]
    assert {row.unit.better for row in old.rows} == {Better.HIGHER}


def test_a_report_of_memtier_benchmark() -> None:
    totals = {"Count": 10, "Ops/sec": 1000.0, "Average Latency": 2.0, "Max Latency": 9.0}
    totals["Percentile Latencies"] = {"p50.00": 1.9, "p99.90": 4.1}
    runtime = {"Start time": 5000, "Finish time": 9000}
    document = {
        "configuration": {"clients": 8},
        "ALL STATS": {"Totals": totals, "Runtime": runtime},
    }
    _, figures = read(json.dumps(document))
    assert values(figures)["latency_p999_ns"] == pytest.approx(4.1e6)
    assert figures.span == (5.0, 9.0)


def test_runs_of_unixbench() -> None:
    text = "   BYTE UNIX Benchmarks (Version 5.1.3)\n"
    for copies, noun, score in ((1, "copy", 1200.0), (4, "copies", 3000.0)):
        text += (
            f"Benchmark Run: Mon Jan 01 2024\nrunning {copies} parallel {noun} of tests\n\n"
            "Pipe Throughput       2221775.6 lps   (10.0 s, 7 samples)\n\n"
            "System Benchmarks Index Values               BASELINE       RESULT    INDEX\n"
            "Pipe Throughput         12440.0    2221775.6   1786.0\n"
            f"System Benchmarks Index Score                          {score}\n"
        )
    _, figures = read(text)
    scores = {row.factors["copies"]: row.figure for row in figures.rows if row.headline}
    assert scores == {"1": 1200.0, "4": 3000.0}
    assert len(figures.rows) == 6
