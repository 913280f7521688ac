"""Everything that Nephoscope reads from outside, as boundaries that a test can attack."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import resource
import socket
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

from tests.serve.made import call
from tests.serve.made import settings as dashboard_settings
from tests.store import factory as store_factory

from nephoscope import capabilities, catalog, documents, plans, programs
from nephoscope.census import files as census_files
from nephoscope.commands import configuration
from nephoscope.compaction.summarise import summary_of
from nephoscope.comparison import number_files
from nephoscope.cost import focus, price_book, work
from nephoscope.errors import NephoscopeError, TargetError
from nephoscope.history import series
from nephoscope.lab import files as topology_files
from nephoscope.plans.files import load as plan_files
from nephoscope.pricing import tariff, utility
from nephoscope.pricing.offers import OfferFile
from nephoscope.rank import figures_file
from nephoscope.reading import recordfile
from nephoscope.results.past import past
from nephoscope.runs import journal
from nephoscope.serve.app import make_app
from nephoscope.serve.workers import Answer, Workers
from nephoscope.sla import events, evidence, what_if
from nephoscope.sla import files as sla_files
from nephoscope.sla import probes as sla_probes
from nephoscope.sla import result as sla_result
from nephoscope.store import Store, day_files, index, merged_trials, summary
from nephoscope.store import journal as store_journal
from nephoscope.store.digests import digest_of
from nephoscope.store.imports import import_files
from nephoscope.store.manifest import write_manifest
from nephoscope.studies import catalogue
from nephoscope.targets.probe.output import check_version, parse_output
from nephoscope.watch import status as watch_status
from nephoscope.watch.folder import WatchFolder
from nephoscope.watch.records import Definition

from .boundary import (
    CASE_S,
    FIRST_AND_JSON_LINES,
    JSON,
    JSON_LINES,
    MEMORY_BYTES,
    YAML,
    Boundary,
    json_bytes,
    json_lines,
)

ROOT = Path(__file__).parents[2]
_PROGRAM_EXITS = {0, 2, 3, 4, 124}
_DEADLINE_S = "2"


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


@functools.cache
def _files(*patterns: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for one in patterns for path in sorted(ROOT.glob(one)))


def _in_file(read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def reading(case: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "case")
            file.write_bytes(case)
            return read(file)

    return reading


def _plan(case: bytes) -> object:
    plan = plan_files.from_text(_text(case), "plan.yaml", {}, catalog.load())
    return plans.expand(plan, catalog.load())


_OUTPUT = json_lines(
    [
        {"sample": {"metric": "null_ns", "value": 100.0, "factors": {}}},
        {"sample": {"metric": "null_latency_ns", "value": 3, "count": 5, "at_ns": 7}},
        {"document": {"name": "d", "value": {"a": [1, 2]}}},
        {"done": {"samples": 3, "elapsed_ns": 5, "counters": {"steal_ratio": None}}},
    ]
)


def _probe_output(case: bytes) -> object:
    return parse_output(catalog.load().benchmark("null"), case, 0)


_ANSWER = b'{"id":7,"ok":null,"response_ns":1500000,"held_ns":9,"reason":"timeout","hint":"Wait."}'


def _probe_answer(case: bytes) -> object:
    try:
        return sla_probes.answer_of(case)
    except ValueError as error:
        raise TargetError(f"far: its probe prints what is no answer: {error}.") from error


def _import(file: Path) -> object:
    return import_files([file], Store(file.parent / "store"))


@functools.cache
def _lines_to_import() -> tuple[bytes, ...]:
    """Few lines at a time: each becomes a file."""
    lines = (ROOT / "tests/golden/pkb/perfkitbenchmarker_results.json").read_bytes().splitlines()
    return tuple(b"\n".join(lines[at : at + 4]) for at in range(0, len(lines), 4))


@functools.cache
def _scenarios() -> tuple[bytes, ...]:
    done = subprocess.run([programs.find_simulator(), "scenarios"], capture_output=True, check=True)
    named = json.loads(done.stdout)
    return tuple(
        json_bytes({"id": kind, "scenario": scenario})
        for kind, scenarios in named.items()
        for scenario in scenarios.values()
    )


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _program(words: Sequence[str]) -> None:
    """Runs one of our programs, which may refuse its input but neither die nor panic."""
    done = subprocess.run(
        words, capture_output=True, timeout=CASE_S, preexec_fn=_limited, check=False
    )
    if done.returncode not in _PROGRAM_EXITS or b"panicked" in done.stderr:
        said = done.stderr.decode(errors="replace")
        raise AssertionError(f"exit code {done.returncode}: {said[-300:]}")


def _simulator(case: bytes) -> object:
    try:
        values = json.loads(case)
        kind, scenario = str(values["id"]), json.dumps(values["scenario"])
    except (ValueError, KeyError, TypeError):
        kind, scenario = "sim.geo", _text(case)
    with tempfile.NamedTemporaryFile("w", errors="replace") as params:
        json.dump({"scenario": scenario}, params)
        params.flush()
        kind = kind.replace("\0", "").encode(errors="replace").decode()[:100]
        words = ["run", kind, "--params", f"@{params.name}", "--deadline", _DEADLINE_S]
        return _program([str(programs.find_simulator()), *words])


def _probe_params(case: bytes) -> object:
    with tempfile.NamedTemporaryFile() as params:
        params.write(case)
        params.flush()
        words = ["run", "null", "--params", f"@{params.name}", "--deadline", _DEADLINE_S]
        return _program([str(programs.find_probe()), *words])


@functools.cache
def _descriptions() -> tuple[bytes, ...]:
    words = [programs.find_probe(), "describe"]
    return (subprocess.run(words, capture_output=True, check=True).stdout,)


@functools.cache
def _stored_run() -> tuple[bytes, bytes]:
    """Manifest and a trial file of a small run, as earlier versions stored them: no digests."""
    with tempfile.TemporaryDirectory() as folder:
        run, _ = store_factory.filled(Path(folder), rounds=1)
        manifest = json.loads((run.path / "manifest.json").read_bytes())
        del manifest["sha256"]
        return json_bytes(manifest), (run.trials_path / f"{_TRIAL}.parquet").read_bytes()


@functools.cache
def _summary_line() -> bytes:
    """The line of a day file with a run of two settings."""
    with tempfile.TemporaryDirectory() as folder:
        run, _ = store_factory.filled(Path(folder), rounds=8)
        run.finish("finished")
        return summary.line_of(summary_of(run))


def _summary_head() -> bytes:
    return zlib.decompress(base64.b64decode(json.loads(_summary_line())["head"]))


def _head_of_summary(case: bytes) -> object:
    """Reads a day file whose checksums are right."""
    values = json.loads(_summary_line())
    del values["crc32"]
    values["head"] = base64.b64encode(zlib.compress(case)).decode()
    return _day_file(store_journal.with_checksum(values))


def _day_file(case: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "days" / "2026-11-23.jsonl"
        path.parent.mkdir()
        path.write_bytes(case)
        problems: list[str] = []
        summaries = list(day_files.summaries(Path(folder), problems))
        for metric in ("null_ns", "null_latency_p95_ns"):
            with contextlib.suppress(NephoscopeError):
                problems += series.read(summaries, metric)[1]
        return summaries, problems


@functools.cache
def _ended_run() -> tuple[dict[str, Any], bytes, bytes, bytes]:
    """Manifest, records and samples of a run whose trials are merged, and the list of its store."""
    with tempfile.TemporaryDirectory() as folder:
        run, _ = store_factory.filled(Path(folder), rounds=1)
        run.finish("finished")
        os.utime(run.path / "manifest.json", (0, 0))
        index.RunIndex(Store(folder)).whole()
        samples, records = merged_trials.paths(run.trials_path)
        listed = (Path(folder) / "runs" / index.FILE).read_bytes()
        return dict(run.manifest), records.read_bytes(), samples.read_bytes(), listed


def _merged(records: bytes, samples: bytes = b"") -> object:
    """Analyses a run with these files, whose digests are right, and wrong."""
    manifest, _, whole, _ = _ended_run()
    samples = samples or whole
    with tempfile.TemporaryDirectory() as folder:
        trials = Path(folder, "runs", _RUN, "trials")
        trials.mkdir(parents=True)
        for path, content in zip(merged_trials.paths(trials), (samples, records), strict=True):
            path.write_bytes(content)
        sums = {"samples_sha256": digest_of(samples), "records_sha256": digest_of(records)}
        results = []
        for entry in (manifest["merged_trials"], {**manifest["merged_trials"], **sums}):
            write_manifest(trials.parent, {**manifest, "id": _RUN, "merged_trials": entry})
            run = Store(folder).open(_RUN)
            results.append((run.integrity(), store_factory.exported([run], "csv")))
        return results


def _listed(case: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        run, _ = store_factory.filled(Path(folder), rounds=1)
        run.finish("finished")
        (Path(folder) / "runs" / index.FILE).write_bytes(case)
        return index.RunIndex(Store(folder)).whole()


def _analyse(manifest: bytes, trial: bytes, journal_lines: bytes = b"") -> object:
    with tempfile.TemporaryDirectory() as folder:
        trials = Path(folder, "runs", _RUN, "trials")
        trials.mkdir(parents=True)
        (trials / f"{_TRIAL}.parquet").write_bytes(trial)
        (trials.parent / "manifest.json").write_bytes(manifest)
        if not journal_lines:
            run = Store(folder).open(_RUN)
            return capabilities.document(capabilities.build(run)), store_factory.exported(
                [run], "csv"
            )
        (trials.parent / "journal.jsonl").write_bytes(journal_lines)
        run = Store(folder).open(_RUN)
        with run.hold():  # so that the process that the journal names is looked for
            run.holder()
        return run.integrity(), run.status, journal.lines(run.events()), past(Store(folder))


def _probe_description(case: bytes) -> object:
    return check_version(case, catalog.load(), "here")


def _work(file: Path) -> object:
    return work.read(file, price_book.load(None))


def _utility(file: Path) -> object:
    return utility.analyse(recordfile.load(file, OfferFile, "list of offers"))


_EVENTS = (
    b"time,service,observer,ok,response_time_ms,requests,reason\n"
    b"1685577600,web,a,1,12.5,1,\n1685577660,web,a,0,,1,timeout\n1685577720,db,b,,3,2,late\n"
)
_NOW_NS = 1_700_000_000 * 10**9


def _events_file(folder: str) -> Path:
    file = Path(folder, "case.csv")
    file.write_bytes(_EVENTS)
    return file


def _agreements() -> tuple[bytes, ...]:
    return (*_files("src/nephoscope/sla/contracts/*.yaml"), _AGREEMENT, _SLO)


_AGREEMENT = b"""sla: 1
name: a
title: a
source: a
period: day
objectives:
  - {measure: response_time, mean: 1s, maximum: 2s}
  - {measure: throughput, target: 9%, at_least: 0.1}
exclusions: [{from: '2023-06-01T00:00Z', to: '2023-06-01T00:01Z'}]
unbilled: {over: 6min, of: 1h}
"""
_SLO = b"""apiVersion: openslo/v1
kind: SLO
metadata: {name: a}
spec:
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Timeslices
  objectives: [{targetPercent: 99.9, timeSliceTarget: 0.9, timeSliceWindow: 5m}]
"""


def _judge_terms(case: bytes) -> object:
    terms = sla_files.from_text(_text(case), "sla.yaml")
    with tempfile.TemporaryDirectory() as folder:
        read = events.read([_events_file(folder)])
        judged = sla_result.judge(terms, read, sla_result.Settings(_NOW_NS))
    return documents.to_text(documents.versioned(judged))


def _judge_events(file: Path) -> object:
    terms = sla_files.from_text(_AGREEMENT.decode(), "sla.yaml")
    return sla_result.judge(terms, events.read([file]), sla_result.Settings(_NOW_NS))


@functools.cache
def _bundles() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bundle.zip")
        evidence.write(path, "ec2-region", [_events_file(folder)], sla_result.Settings(_NOW_NS))
        return (path.read_bytes(),)


def _compose(case: bytes) -> object:
    return what_if.compose(_text(case))


def _matrix(file: Path) -> object:
    return topology_files.from_text(_GEO, "lab.yaml", file.parent)


def _configuration(file: Path) -> object:
    with mock.patch.dict(os.environ, {configuration.FILE_VARIABLE: str(file)}):
        return configuration.values()


def _far_side(case: bytes) -> None:
    """Sends lines to the far side of a benchmark, as a peer that knows the token."""
    name, _, messages = case.partition(b"\n")
    benchmark = "net.rtt" if b"rtt" in name else "net.throughput"
    words = [str(programs.find_probe()), "serve", benchmark, "--token-file", "-"]
    server = subprocess.Popen(
        [*words, "--deadline", _DEADLINE_S],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_limited,
    )
    with server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"a-token-of-the-test-0123456789\n")
        server.stdin.flush()
        ready = json.loads(server.stdout.readline())["ready"]
        with socket.create_connection((ready["address"], ready["port"])) as peer:
            peer.sendall(b"a-token-of-the-test-0123456789\n" + messages)
        _, said = server.communicate(timeout=CASE_S)
    if server.returncode not in _PROGRAM_EXITS or b"panicked" in said:
        raise AssertionError(f"exit code {server.returncode}: {said[-300:]!r}")


@functools.cache
def _http_server() -> tuple[subprocess.Popen[bytes], tuple[str, int]]:
    """Returns a server of http.serve, which ends with this process, and where it listens."""
    words = ["serve", "http.serve", "--control", "--with-parent", "--deadline", "86400"]
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        [str(programs.find_probe()), *words], stdin=pipe, stdout=pipe, preexec_fn=_limited
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(b"token a-token-of-the-test-0123456789\n")
    server.stdin.flush()
    ready = json.loads(server.stdout.readline())["ready"]
    return server, (ready["address"], ready["port"])


def _http_requests(case: bytes) -> None:
    """Sends requests and ends; the server answers or hangs up, and goes on."""
    server, address = _http_server()
    answer = b""
    connected = socket.create_connection(address, timeout=CASE_S)
    with connected as client, contextlib.suppress(ConnectionError):
        client.sendall(case)
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    if server.poll() is not None or (answer and not answer.startswith(b"HTTP/1.1 ")):
        raise AssertionError(f"exit code {server.returncode}: {answer[:300]!r}")


_DASHBOARD_REQUESTS = (
    b"GET /api/v1/runs?state=finished&label=a=b&since=2026-01-01&limit=50\nhost: localhost",
    b"GET /api/v1/runs/20260101-000000-x-0000/samples?benchmark=null&metric=a&target=b&factors={}"
    b"\nhost: 127.0.0.1:8765\ncookie: nephoscope_session=x; a=b\nlast-event-id: 1.2",
    b"GET /api/v1/commands/sla/verdict?contract=ec2-region&events=a.csv&bill=1\nhost: localhost",
    b"GET /api/v1/compare?a=20260101&b=20260102:x&margin=0.03&confidence=0.95\nhost: [::1]:80",
    b'POST /api/v1/session\nhost: localhost\norigin: http://localhost\n\n{"token": "x"}',
    b'POST /api/v1/runs\nhost: localhost\ncontent-type: application/json\n\n{"plan": "a.yaml"}',
    b"GET /assets/index.js\nhost: localhost\nif-none-match: x\nsec-fetch-site: same-origin",
)
"""Method and address, headers, an empty line, the body."""


@functools.cache
def _dashboard() -> Any:
    return make_app(dashboard_settings(Path("/nonexistent/store")))


def _dashboard_requests(case: bytes) -> None:
    """Sends one request; whatever it is, the answer is no failure of the server."""
    head, _, body = case.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, address = first.decode("latin-1").partition(" ")
    fields = (line.decode("latin-1").partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in fields}
    answer = mock.AsyncMock(return_value=Answer(200, b"{}"))
    with mock.patch.object(Workers, "answer", answer):
        reply = call(_dashboard(), address, method=method, headers=headers, body=body)
    if reply.status >= 500:
        raise AssertionError(f"{reply.status}: {reply.body[:300]!r}")


def _credentials(case: bytes) -> None:
    """Gives a file of credentials to a service that nobody serves, another one each time."""
    service = _SERVICES[len(case) % len(_SERVICES)]
    with tempfile.NamedTemporaryFile() as file:
        file.write(case)
        file.flush()
        params = {
            "service": service,
            "endpoint": "http://127.0.0.1:1",
            "bucket": "" if service.startswith("web") else "b",
            "credentials_file": file.name,
            "retries": 0,
        }
        words = ["run", "storage.transfer", "--params", json.dumps(params)]
        _program([str(programs.find_storage()), *words, "--deadline", _DEADLINE_S])


def _storage_is_built() -> bool:
    try:
        return bool(programs.find_storage())
    except NephoscopeError:
        return False


_RUN, _TRIAL = "20261122-120000-x-0000", "r0001-s000-local"
_NUMBERS = b"1\n2.5\n3e2\n# a comment\n4\n"
_TOPOLOGY = b"""
version: 1
name: t
network: 10.1.0.0/16
hosts:
  a:
    cpu: {cap: 150%, weight: 300, cpus: [0, 1], reservation: {slice: 30ms, period: 40ms}}
    memory: 256MiB
    disk: {read: 20MiB/s, write: 10MB/s}
  b: {address: 10.1.0.9}
  c: {platform: qemu, vcpus: 2}
links:
  wan:
    between: [a, lan]
    rate: 47Mbit/s
    delay: 50ms
    jitter: 5ms
    loss: 2%
    up: {rate: 10Mbit/s, loss: 0}
"""
_CENSUS = b"instance_type,model,machines,zone\nm1.small,E5430,20,a\nm1.small,AMD,3,b\n"
_FIGURES = (
    b"metric,alternative,value,unit,round,note\nm,a,1.5,ns,1,\nm,b,2,ns,1,late\nm,b,,ns,,gone\n"
)
_BILL = (
    b"BillingCurrency,ChargeCategory,ChargePeriodStart,EffectiveCost,PricingCategory,"
    b"PricingQuantity,PricingUnit,SkuId,SkuPriceDetails\n"
    b'USD,Usage,2026-10-01,1.5,Standard,10,Hours,S1,"{""InstanceType"": ""a""}"\n'
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
_MATRIX = b",paris,tokyo\nparis,,110ms\ntokyo,112ms,\n"
_CONFIGURATION = b"""
store = "/tmp/x"
targets = ["ssh:a", "local"]
colour = "auto"
confidence = "0.95"
margin = "0.03"
"""
_JOURNAL = json_lines(
    [
        {"at": "2026-01-02T03:04:05.678+00:00", "event": "session_started", "pid": 7}
        | {"started_ticks": 1, "boot_id": "b", "machine": "m", "resumed": False, "trials": 0},
        {"event": "target_opened", "target": "local"},
        {"event": "trial_started", "trial": "r0001-s000-local", "together": "", "attempt": 1},
        {"event": "trials_stored", "sha256": {"r0001-s000-local.parquet": "0" * 64}},
        {"event": "trial_ended", "trial": "r0001-s000-local", "status": "valid", "spent_s": 0.5}
        | {"timeline": {"measure": [1, 2]}, "skew_ns": 5, "attempt": 1, "reasons": []}
        | {"loads": [{"name": "l", "target": "b", "covered_ratio": 0.5}]},
        {"event": "trial_tried_again", "trial": "r1", "attempt": 1, "reasons": ["late"]},
        {"event": "alternative_ended", "benchmark": "null", "target": "a", "word": "w"}
        | {"factors": {"x": 1}, "reason": "n"},
        {"event": "warning", "sentence": "s"},
        {"event": "session_ended", "why": "measured"},
    ]
)
_GEO = """
version: 1
name: t
hosts: {a: {}, b: {}}
geo: {sites: {paris: [a], tokyo: [b]}, latency: case}
"""
_RTT = b'rtt\n{"packet_bytes": 64, "packets": 10, "same_clock": true}\n"report"\n'
_THROUGHPUT = (
    b'throughput\n{"tcp": true, "up": true, "down": true, "streams": 2, "send_bytes": 4096, '
    b'"warmup_ns": 0, "duration_ns": 1000000, "interval_ns": 100000, "packet_bytes": 1400, '
    b'"per_s": 0.0, "wait_ns": 0, "press": null}\n"go"\n"finish"\n"report"\n'
)
_REQUESTS = (
    b"GET /bytes/5 HTTP/1.1\r\nHost: a\r\nUser-Agent: curl\r\n\r\n",
    b"POST /sum HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nbody",
    b"HEAD /service?bytes=7 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n" * 2,
)
_SERVICES = ("s3", "azblob", "gcs", "webdav", "webhdfs")
_KEYS = b"""# of all services
[default]
AWS_ACCESS_KEY_ID=an-id-of-the-test
export AWS_SECRET_ACCESS_KEY="a=secret"
AZURE_STORAGE_ACCOUNT_NAME = account
AZURE_STORAGE_ACCOUNT_KEY = a2V5
GOOGLE_OAUTH_TOKEN='token'
WEBDAV_USERNAME=user
WEBDAV_PASSWORD=password
HADOOP_USER_NAME=user
"""
_PARAMS = b'{"value": 3.5, "noise_ratio": 0.1, "samples": 4, "seed": 7, "wait_ns": 10}'


def _watch_definitions() -> tuple[bytes, ...]:
    every = asdict(Definition("web", "/plan.yaml", every_s=300.0, labels={"env": "test"}))
    cron = {**every, "every_s": None, "cron": "*/5 * * * *", "time_zone": "Europe/Berlin"}
    return json_bytes(every), json_bytes(cron)


def _watch_status(case: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        watch = WatchFolder(Store(folder), "web")
        watch.create()
        (watch.path / "watch.json").write_bytes(case)
        with watch.running():
            return watch_status.watches_of(Store(folder)), watch.siblings()[0].bound()


BOUNDARIES = (
    Boundary(
        "plan", lambda: _files("src/nephoscope/plans/builtin/*", "studies/*/plan*"), _plan, YAML
    ),
    Boundary(
        "topology",
        lambda: (_TOPOLOGY,),
        lambda case: topology_files.from_text(_text(case), "lab.yaml"),
        YAML,
    ),
    Boundary("watch definition", _watch_definitions, _watch_status, JSON),
    Boundary("probe output", lambda: (_OUTPUT,), _probe_output, JSON_LINES),
    Boundary("probe parameters", lambda: (_PARAMS,), _probe_params, JSON),
    Boundary("answers of the probe of services", lambda: (_ANSWER,), _probe_answer, JSON),
    Boundary("import", _lines_to_import, _in_file(_import), JSON_LINES),
    Boundary(
        "report to import",
        lambda: _files("tests/golden/imports/*.json"),
        _in_file(_import),
        JSON,
    ),
    Boundary("numbers", lambda: (_NUMBERS,), _in_file(number_files.read)),
    Boundary("census", lambda: (_CENSUS,), _in_file(census_files.read)),
    Boundary("agreement", _agreements, _judge_terms, YAML),
    Boundary("events", lambda: (_EVENTS,), _in_file(_judge_events)),
    Boundary("evidence", _bundles, _in_file(evidence.verify)),
    Boundary("composition", lambda: (b"series(99.9%, of(2, 1, 0.5, 9%))",), _compose),
    Boundary(
        "price book", lambda: _files("src/nephoscope/cost/*.yaml"), _in_file(price_book.load), YAML
    ),
    Boundary("bill", lambda: (_BILL,), _in_file(focus.read)),
    Boundary("options", lambda: (_OPTIONS,), _in_file(_work), YAML),
    Boundary("tariff", lambda: (_TARIFF,), _in_file(tariff.read), YAML),
    Boundary("offers", lambda: (_OFFERS,), _in_file(_utility), YAML),
    Boundary(
        "ranking",
        lambda: (_FIGURES,),
        _in_file(functools.partial(figures_file.read, confidence=0.95)),
    ),
    Boundary("day file", lambda: (_summary_line(),), _day_file),
    Boundary("head of a summary", lambda: (_summary_head(),), _head_of_summary, JSON),
    Boundary(
        "manifest",
        lambda: (_stored_run()[0],),
        lambda case: _analyse(case, _stored_run()[1]),
        JSON,
    ),
    Boundary(
        "trial file",
        lambda: (_stored_run()[1],),
        lambda case: _analyse(_stored_run()[0], case),
    ),
    Boundary("records of an ended run", lambda: (_ended_run()[1],), _merged, JSON_LINES),
    Boundary(
        "samples of an ended run",
        lambda: (_ended_run()[2],),
        lambda case: _merged(_ended_run()[1], case),
    ),
    Boundary("list of runs", lambda: (_ended_run()[3],), _listed, JSON_LINES),
    Boundary("simulator", _scenarios, _simulator, JSON),
    Boundary(
        "journal",
        lambda: (_JOURNAL,),
        lambda case: _analyse(*_stored_run(), case or b"\n"),
        JSON_LINES,
    ),
    Boundary("probe description", _descriptions, _probe_description, JSON),
    Boundary("far side", lambda: (_RTT, _THROUGHPUT), _far_side, FIRST_AND_JSON_LINES),
    Boundary("HTTP requests", lambda: _REQUESTS, _http_requests),
    Boundary("dashboard requests", lambda: _DASHBOARD_REQUESTS, _dashboard_requests),
    Boundary("latency matrix", lambda: (_MATRIX,), _in_file(_matrix)),
    Boundary("configuration", lambda: (_CONFIGURATION,), _in_file(_configuration)),
    Boundary(
        "published numbers",
        lambda: _files("studies/*/published.csv"),
        _in_file(catalogue.read_numbers),
    ),
    *([Boundary("credentials", lambda: (_KEYS,), _credentials)] if _storage_is_built() else []),
)
