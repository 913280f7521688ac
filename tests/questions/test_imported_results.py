"""Questions about results that other tools wrote."""

from __future__ import annotations

import json
from typing import Any

from tests.questions.conftest import Asking


def hyperfine_export(command: str, times_s: list[float]) -> str:
    return json.dumps({"results": [{"command": command, "times": times_s}]})


def fio_report(jobs: list[dict[str, Any]]) -> str:
    return json.dumps({"fio version": "fio-3.33", "timestamp": 1_700_000_000, "jobs": jobs})


def fio_job(name: str, iops: float, p99_ms: float, **more: Any) -> dict[str, Any]:
    times = {"mean": 1e6, "max": 9e7, "percentile": {"50.000000": 1e6, "99.000000": p99_ms * 1e6}}
    figures = {"total_ios": 1000, "iops": iops, "bw_bytes": iops * 4096, "clat_ns": times}
    entry = {"jobname": name, "groupid": 0, "error": 0, "elapsed": 10, "read": figures}
    return {**entry, "job options": {"rw": "randread", "bs": "4k", "numjobs": "8"}, **more}


def test_how_long_did_my_build_take(ask: Asking) -> None:
    """I have ten executions in an export of hyperfine: how long does my build take?"""
    ask.write("r.json", hyperfine_export("make", [1.0, 1.01, 1.02, 0.99, 0.98] * 2))
    answer = ask("nephoscope import r.json")
    answer.says(r"wall +1\.00 s")
    answer.says("10 imported figures, 0 excluded")
    answer.says("Note: hyperfine measures one command after the other")
    answer.never_says("Not converged|Unavailable|valid trial")
    again = ask("nephoscope import r.json")
    again.says(r"These files were imported before, as run \S+: nothing was added")
    again.says(r"wall +1\.00 s")


def test_how_many_operations_did_eight_jobs_of_fio_do(ask: Asking) -> None:
    """I ran fio with numjobs=8 and without group_reporting: how fast is the disk?"""
    ask.write("fio.json", fio_report([fio_job("t", 10_000.0 + n, 2.0) for n in range(8)]))
    answer = ask("nephoscope import fio.json")
    answer.says(r"read operations +80\.0 k/s +none +1 ")
    answer.says(r"8 entries of job 't' ran at the same time .* count as one repetition")
    answer.says(r"Left out, because parts do not tell those of the whole: .*read_clat_p99_ns")
    answer.never_says(r"read clat p99 +[0-9]")


def test_what_load_did_six_generators_make(ask: Asking) -> None:
    """Six k6 runners loaded my service at the same time: how many requests a second in all?"""
    for number in range(6):
        times = {"avg": 12.5, "min": 8, "med": 11.9, "max": 99.7 + number, "p(95)": 20}
        counter = {"count": 6000 + 60 * number, "rate": 100 + number}
        summary = {"metrics": {"http_reqs": counter, "http_req_duration": times}}
        ask.write(f"r{number}.json", json.dumps(summary))
    files = " ".join(f"r{number}.json" for number in range(6))
    question = ask(f"nephoscope import {files}", code=2)
    question.says(r"6 files of k6 do not state when they ran.*--parallel.*--repetitions")
    answer = ask(f"nephoscope import --parallel {files}")
    answer.says(r"http reqs\.rate +615 /s +none +1 ")
    answer.says(r"http req duration\.max +105 ms")
    answer.says(r"http_req_duration\.p\(95\)")
    answer.never_says(r"http req duration\.p\(95\) +[0-9.]+ ms")


def test_how_much_of_the_udp_stream_arrived(ask: Asking) -> None:
    """iperf3 sent UDP at 10 Mbit/s through a slower link: how much arrives?"""
    lossy = {"seconds": 10, "packets": 8000, "jitter_ms": 0.7, "lost_percent": 56.0}
    end = {
        "sum": {**lossy, "bits_per_second": 10e6},
        "sum_sent": {**lossy, "bits_per_second": 10e6, "lost_percent": 0},
        "sum_received": {**lossy, "bits_per_second": 4.37e6},
    }
    start = {"version": "iperf 3.12", "timestamp": {"timesecs": 1_700_000_000}}
    start["test_start"] = {"protocol": "UDP", "reverse": 0, "target_bitrate": 10_000_000}
    ask.write("r.json", json.dumps({"start": start, "intervals": [], "end": end}))
    answer = ask("nephoscope import r.json")
    answer.says(r"goodput +4\.37 Mbit/s")
    answer.says(r"sent +10\.0 Mbit/s")
    answer.says(r"loss +56\.0 %")
    headlines = ask("nephoscope show latest --json").json()["metrics"]
    assert [one["metric"] for one in headlines if one["headline"]] == ["goodput_bits_per_s"]


def test_is_my_disk_fast_enough_for_etcd(ask: Asking) -> None:
    """I ran fio --fdatasync=1 as etcd asks: is the 99th percentile of fdatasync below 10 ms?"""
    sync = {"percentile": {"50.000000": 4.2e6, "99.000000": 12.3e6}, "N": 455, "mean": 5e6}
    job = fio_job("etcd", 192.0, 1.0, sync={"total_ios": 0, "lat_ns": sync})
    ask.write("fio.json", "fio: a warning\n" + fio_report([job]))
    answer = ask("nephoscope import fio.json")
    answer.says(r"sync lat p99 +12\.3 ms")
    answer.says(r"submission latency \(slat\).* are not imported")


def test_do_my_nightly_samples_count_once(ask: Asking) -> None:
    """PerfKit Benchmarker appends to its file, and one sample is null: what was the throughput?"""
    sample = {"metric": "Throughput", "unit": "Mbits/sec", "test": "iperf", "run_uri": "ab"}
    sample |= {"labels": "|zone:a|"}
    lines = [
        json.dumps({**sample, "value": 941.2 + n, "timestamp": 1.7e9 + n, "sample_uri": f"s{n}"})
        for n in range(8)
    ]
    null = json.dumps({**sample, "value": None, "timestamp": 1.7e9, "sample_uri": "n"})
    ask.write("monday.json", "\n".join(lines[:4]) + "\n")
    ask.write("tuesday.json", "\n".join([*lines, null, *lines[:2]]) + "\n")
    answer = ask("nephoscope import monday.json tuesday.json")
    answer.says(r"monday\.json is the beginning of tuesday\.json, and counts once")
    answer.says(r"1 record was left out: Line 9: 'value' is missing")
    answer.says(r"Throughput +945 Mbit/s +\[\S+ \S+\] +8 ")
    answer.says(r"2 samples are copies of others, and count once")


def test_which_of_my_files_can_be_imported(ask: Asking) -> None:
    """I have a composite.xml with a failed test, and files of many tools: what can I import?"""
    entries = (("pts/a", "Seconds", "54.2", ""), ("pts/b", "Seconds", "", "it quit"))
    results = "".join(
        f"<Result><Identifier>{test}</Identifier><Scale>{scale}</Scale><Proportion>LIB</Proportion>"
        "<DisplayFormat>BAR_GRAPH</DisplayFormat><Data><Entry><Identifier>vm</Identifier>"
        f'<Value>{value}</Value><RawString></RawString><JSON>{{"error": "{error}"}}</JSON>'
        "</Entry></Data></Result>"
        for test, scale, value, error in entries
    )
    ask.write("composite.xml", f"<PhoronixTestSuite>{results}</PhoronixTestSuite>")
    answer = ask("nephoscope import composite.xml")
    answer.says(r"Seconds +54\.2 s")
    answer.says(r"1 record was left out: Test pts/b on vm: it has no result \('it quit'\)")
    ask.write("r.csv", "command,mean,stddev,median,user,system,min,max\nls,1,1,1,1,1,1,1\n")
    ask("nephoscope import r.csv", code=2).says(r"CSV export of hyperfine.*use --export-json")
    ask.write("odd.json", '{"results": {"a": [1, 2]}, "unit": "ms"}')
    unknown = ask("nephoscope import odd.json", code=2)
    unknown.says(r"a JSON object with the keys 'results', 'unit', and no report of a tool that is ")
    unknown.says(r"known: 7z, ab, .*fio, .*wrk")


def test_did_my_nightly_benchmark_become_slower(ask: Asking) -> None:
    """I have a file of fio for each night: what is the series over time?"""
    for night in range(8):
        rate = 10_000.0 if night < 4 else 7_000.0
        report = json.loads(fio_report([fio_job("t", rate + night, 2.0)]))
        report["timestamp"] += 86_400 * night
        ask.write(f"night-{night}.json", json.dumps(report))
    files = " ".join(f"night-{night}.json" for night in range(8))
    answer = ask(f"nephoscope import --series {files}")
    answer.says(r"8 runs: \S+-import-fio-\S+ to \S+-import-fio-\S+\.")
    answer.says("Over time: `nephoscope history read_operations_per_s`")
    series = ask("nephoscope history read_operations_per_s --json").json()["series"]
    assert [point["estimate"]["value"] for point in series[0]["points"]] == [
        *(10_000.0 + night for night in range(4)),
        *(7_000.0 + night for night in range(4, 8)),
    ]
    again = ask(f"nephoscope import --series {files}")
    again.says(r"night-7\.json: These files were imported before, as run ")
    ask(f"nephoscope import --series --json {files}", code=2).says("no single JSON document")
