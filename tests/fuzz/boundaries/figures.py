"""Figures of other tools, providers and publications."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from tests.features.traffic.made import power_meter

from nephoscope.core.reading import recordfile
from nephoscope.features.census import files as census_files
from nephoscope.features.comparison import number_files
from nephoscope.features.cost import focus, price_book, work
from nephoscope.features.pricing import tariff, utility
from nephoscope.features.pricing.offers import OfferFile
from nephoscope.features.rank import figures_file
from nephoscope.features.scaling import grid, traces
from nephoscope.features.sizing import application, resolving
from nephoscope.features.studies import catalogue
from nephoscope.features.traffic import power
from nephoscope.store import Store
from nephoscope.store.imports import tool_reports
from nephoscope.store.imports.importing import import_files

from ..boundary import JSON, JSON_LINES, YAML, Boundary
from .inputs import ROOT, contents, in_file, text_of


def _import(file: Path) -> object:
    return import_files([file], Store(file.parent / "store"))


def _import_log(file: Path) -> object:
    return import_files([file], Store(file.parent / "store"), value_unit="us")


def _logs_to_import() -> tuple[bytes, ...]:
    return (*contents("tests/golden/imports/*.hlog"), _K6_POINTS, _K6_ROWS, _FORTIO, _WRK2)


_K6_POINTS = b"""\
{"type":"Metric","metric":"http_req_duration","data":{"type":"trend","contains":"time"}}
{"type":"Point","metric":"http_req_duration","data":{"time":"2026-11-27T10:00:00Z","value":1.5}}
{"type":"Point","metric":"http_reqs","data":{"time":"2026-11-27T10:00:01Z","value":1}}
{"type":"Point","metric":"http_req_failed","data":{"time":"2026-11-27T10:00:01Z","value":0}}
"""
_K6_ROWS = b"""metric_name,timestamp,metric_value,check
http_req_duration,1790000000,1.5,
http_reqs,1790000001,1,
http_req_failed,1790000001,0,
"""
_FORTIO = b"""{"RunType": "HTTP", "StartTime": "2026-11-27T10:00:00Z", "RequestedQPS": "8",
"ActualQPS": 8, "ActualDuration": 10000000000, "DurationHistogram": {"Count": 80, "Avg": 0.03,
"Data": [{"Start": 0.028, "End": 0.03, "Count": 20}, {"Start": 0.03, "End": 0.035, "Count": 60}]},
"RetCodes": {"200": 79, "503": 1}, "URL": "http://192.0.2.1/"}
"""


@functools.cache
def _lines_to_import() -> tuple[bytes, ...]:
    """Few lines at a time: each becomes a file."""
    lines = (ROOT / "tests/golden/pkb/perfkitbenchmarker_results.json").read_bytes().splitlines()
    return tuple(b"\n".join(lines[at : at + 4]) for at in range(0, len(lines), 4))


@functools.cache
def _reports_to_import() -> tuple[bytes, ...]:
    """What tools printed whose adapters read it, and reports that have a reader of their own."""
    found = []
    for name in tool_reports.MARKS:
        capture = next(
            path
            for path in sorted((ROOT / "tests/golden" / name).glob("*.json"))
            if json.loads(path.read_text())["tool"]["exit"] == 0 and path.name != "version.json"
        )
        printed = json.loads(capture.read_text())["tool"]
        found.append((printed["stdout"] or printed["stderr"]).encode())
    return (*found, *contents("tests/golden/imports/*.txt"), _WRK, _AB, _REDIS)


_WRK = b"""Running 10s test @ http://192.0.2.1:80/
  2 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.10ms    1.00ms  30.00ms   90.00%
     50%    2.00ms
  48000 requests in 10.00s, 40.00MB read
Requests/sec:   4800.00
Transfer/sec:      4.00MB
"""
_WRK2 = b"""Running 10s test @ http://192.0.2.1:80/
  1 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.14ms  355.73us   2.54ms   69.45%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.11ms
  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.212     0.000000            1         1.00
       2.541     1.000000          100          inf
#[Max     =        2.540, Total count    =          100]
  120 requests in 10.00s, 98.26MB read
Requests/sec:     12.00
"""
_AB = b"""This is ApacheBench, Version 2.3 <$Revision: 1 $>
Concurrency Level:      10
Complete requests:      5000
Failed requests:        0
Requests per second:    5000.00 [#/sec] (mean)
  50%      2
"""
_REDIS = b'"test","rps"\n"SET","120000.00"\n'
_SUMMARIES = (
    b'{"metadata": {"k6_version": "1", "generated_at": "2026-05-18T10:00:00Z"}, "config": '
    b'{"duration": 9}, "results": {"metrics": [{"name": "http_reqs", "values": {"count": 9}}]}}',
    b'{"context": {"date": "2024-05-01T10:00:00"}, "benchmarks": [{"name": "x", "run_type": '
    b'"iteration", "real_time": 1.5, "cpu_time": 1, "time_unit": "ns"}]}',
    b'{"datetime": "2024-05-01", "benchmarks": [{"name": "a", "stats": {"data": [0.1, 0.2]}}]}',
    b'{"title": "t", "results": {"h": {"identifier": "x", "scale": "MIPS", "results": {"vm": '
    b'{"value": 2, "all_results": "1:2:3"}}}}, "systems": {"vm": {"timestamp": "2024-05-01"}}}',
    b'{"configuration": {}, "ALL STATS": {"Totals": {"Ops/sec": 9.5, "Percentile Latencies": '
    b'{"p50.00": 1.9}}, "Runtime": {"Start time": 1, "Finish time": 2}}}',
)
_NUMBERS = b"1\n2.5\n3e2\n# a comment\n4\n"
_CENSUS = b"instance_type,model,machines,zone\nm1.small,E5430,20,a\nm1.small,AMD,3,b\n"
_FIGURES = (
    b"metric,alternative,value,unit,round,note\nm,a,1.5,ns,1,\nm,b,2,ns,1,late\nm,b,,ns,,gone\n"
)
_BILL = (
    b"BillingCurrency,ChargeCategory,ChargePeriodStart,EffectiveCost,PricingCategory,"
    b"PricingQuantity,PricingUnit,RegionId,ServiceCategory,SkuId,SkuPriceDetails\n"
    b'USD,Usage,2026-10-01,1.5,Standard,10,Hours,eu,Compute,S1,"{""InstanceType"": ""a""}"\n'
)
_LOADS = (
    b"time_s,rate\n0,20\n60,40.5\n120,0\n",
    b"time_s,rate_per_s,present,ready,value,desired\n1.5,20,1,1,,1\n6.5,20,1,1,0.9,2\n9,1,2,1,,\n",
)
_RULES = (
    b"rate=40|50,cooldown_in=5min",
    b"queue=1..4",
    b"step:steps=0.3:-1;0.7:1;0.9:3,stabilisation_in=60s|2min",
    b"schedule:schedule=00:00 2;08:30 10|0s:1;90s:3",
    b"control:target=50ms|0.1s,gain=0.5",
)
_OPTIONS = b"""
unit: requests
options:
  a: {offer: aws/m1.large, capacity_per_s: {value: 9, low: 8, high: 11, n: 3}, used: 50%}
  b:
    price_per_h: 2
    capacity_per_s: [9, 10]
    mix: {x: {machines: 3, speed: 1}, y: {machines: 1, speed: 2}}
    sharing: dynamic
    egress: aws/internet-ap-southeast-2
    egress_bytes_per_unit: 100
"""
_TARIFF = b"""
unit: GiB
tiers: [{from_gb: 0, to_gb: 10, price_per_gb: 1}, {from_gb: 10, price_per_gb: 0.5}]
discount: {exponent: 0.5, minimum_ratio: 0.4}
classes: {a: {contracted_mbit_per_s: 9, throughput_mbit_per_s: [5, 6], gb_per_month: 100}}
"""
_OFFERS = b"""
budget: 5
weight_certainty: 20
parameters:
  rate: {half: 1, good: 2, weight: 0.6, minimum: 0.5}
  up: {half: 99%, good: 99.9%, weight: 0.4, scale: nines}
offers:
  a: {price: 1, values: {rate: [1, 2], up: 0.995}}
  b: {price: {value: 3, low: 2, high: 4}, values: {rate: 2, up: 99.5%}}
"""


_APPLICATION = b"""\
application: shop
demand: {rate_per_s: {value: 900, low: 850, high: 950}}
objective: p99 < 50ms
availability: 99.9%
users: {dublin: 60%, bonn: 40%}
regions:
  eu: {rtt_ms: {dublin: 3, bonn: {value: 9, low: 8, high: 10}}}
  us: {rtt_ms: {dublin: 30, bonn: 31}}
types:
  a: {capacity_per_s: [400, 420, 380, 410], price_per_h: 0.1, sla: ec2-instance}
  b:
    capacity_per_s: {value: 900, low: 500, high: 1500}
    capacity_objective: p95 < 20ms
    workers: 2
    spread: {value: 4%, low: 3%, high: 6%}
    instance_availability: 99.5%
    regional_price_per_h: {us: 0.2}
"""


def _size(file: Path) -> object:
    return resolving.resolved(application.load(file, file.parent / "store"))


def _work(file: Path) -> object:
    return work.read(file, price_book.load(None))


def _utility(file: Path) -> object:
    return utility.analyse(recordfile.load(file, OfferFile, "list of offers"))


BOUNDARIES = (
    Boundary("import", _lines_to_import, in_file(_import), JSON_LINES),
    Boundary(
        "report to import",
        lambda: contents("tests/golden/imports/*.json"),
        in_file(_import),
        JSON,
    ),
    Boundary("report of a tool to import", _reports_to_import, in_file(_import)),
    Boundary("log of a generator to import", _logs_to_import, in_file(_import_log)),
    Boundary("summary to import", lambda: _SUMMARIES, in_file(_import), JSON),
    Boundary("numbers", lambda: (_NUMBERS,), in_file(number_files.read)),
    Boundary("census", lambda: (_CENSUS,), in_file(census_files.read)),
    Boundary("power trace", lambda: (power_meter().encode(),), in_file(power.read)),
    Boundary(
        "price book",
        lambda: contents("src/nephoscope/features/cost/*.yaml"),
        in_file(price_book.load),
        YAML,
    ),
    Boundary("bill", lambda: (_BILL,), in_file(focus.read)),
    Boundary("options", lambda: (_OPTIONS,), in_file(_work), YAML),
    Boundary("tariff", lambda: (_TARIFF,), in_file(tariff.read), YAML),
    Boundary("offers", lambda: (_OFFERS,), in_file(_utility), YAML),
    Boundary("application", lambda: (_APPLICATION,), in_file(_size), YAML),
    Boundary(
        "ranking",
        lambda: (_FIGURES,),
        in_file(functools.partial(figures_file.read, confidence=0.95)),
    ),
    Boundary("trace of a load", lambda: _LOADS, in_file(traces.read)),
    Boundary(
        "rule of an autoscaler",
        lambda: _RULES,
        lambda case: grid.candidates([text_of(case)]),
    ),
    Boundary(
        "published numbers",
        lambda: contents("studies/*/published.csv"),
        in_file(catalogue.read_numbers),
    ),
)
