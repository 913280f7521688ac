"""Metrics of a watch as OpenMetrics, read by promtool and a real Prometheus, and as OTLP."""

from __future__ import annotations

import contextlib
import json
import re
import socketserver
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests import servers
from tests.conftest import ROOT
from tests.results.made import make_run
from tests.tools import needs

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate, Sample, Setting
from nephoscope.features.watch import endpoint, otlp
from nephoscope.features.watch.endpoint import MetricsEndpoint
from nephoscope.features.watch.events import EventLog
from nephoscope.features.watch.metrics import Family, HistogramPoint, Metrics, Publisher
from nephoscope.features.watch.repetition import Distribution, WatchRepetition, _repetition
from nephoscope.httpd.settings import TOKEN_VARIABLE
from nephoscope.results import analyse_run
from nephoscope.store import Store

LIMIT_S = 120.0
NEXT_S = 1_790_000_400.0
KEY = ("http.load", "latency_ns", 'we"b\\\n', '{"rate":5}')
needs_prometheus = needs("prometheus", "promtool")


def repetition(n: int = 10) -> WatchRepetition:
    estimates = {
        (KEY[0], "latency_p99_ns", *KEY[2:]): Estimate(2.5e6, 2e6, 3e6, 0.95, n, "ns", ""),
        ("null", "null_ns", "db", "{}"): Estimate(100.0, None, None, 0.95, 3, "ns", ""),
    }
    seen = Distribution(*KEY, "ns", (1e6, 2e6, 3e6, float("inf")), (10, 20, 5, 1))
    return WatchRepetition("run-1", "fine", {}, estimates, (seen,))


def families(log: EventLog, times: int = 1) -> list[Family]:
    metrics = Metrics("web")
    for _ in range(times):
        metrics.add(repetition(), log.state)
    return metrics.families(log.state, NEXT_S)


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    (tmp_path / "events").mkdir()
    log = EventLog(tmp_path / "events", lambda: NEXT_S - 300)
    log.append("series_started", series=1, plan_hash="a")
    log.append("repetition_started", due_s=NEXT_S - 300)
    log.append("start_skipped", due_s=NEXT_S - 200, count=4, reason="busy")
    log.append("target_failed", target="db", failures=2, skips=1, sentence="gone")
    log.append("repetition_ended", run="run-1", verdict="fine")
    return log


@contextlib.contextmanager
def served(store: Path, shown: list[Family], listen: str = "127.0.0.1:0") -> Iterator[str]:
    point = MetricsEndpoint()
    point.show(shown, NEXT_S)
    token = None if listen.startswith("127.") else store / "token"
    settings = endpoint.settings_of(listen, token, Store(store))
    with point.serving(settings) as url:
        until(lambda: status_of(url) is not None)
        yield url


def until(condition: Any) -> Any:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError("it did not come true")


def status_of(url: str, **headers: str) -> int | None:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except urllib.error.URLError:
        return None


def text_of(url: str, **headers: str) -> tuple[str, str]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.headers["content-type"], answer.read().decode()


def test_a_missing_bound_has_no_sample_and_histograms_add_up(log: EventLog) -> None:
    by_name = {family.name: family.points for family in families(log, times=3)}
    assert len(by_name["nephoscope_estimate"]) == 2
    assert len(by_name["nephoscope_estimate_low"]) == 1
    (histogram,) = by_name["nephoscope_observations"]
    assert sum(histogram.counts) == 3 * 36  # type: ignore[union-attr]
    assert histogram.counts[-1] == 3, "a timeout is above every bound"  # type: ignore[union-attr]
    at = histogram.bounds.index(1e6)  # type: ignore[union-attr]
    assert sum(histogram.counts[: at + 1]) == 30, "a bound is in its bucket"  # type: ignore[union-attr]


def test_each_bucket_names_the_run_of_its_slowest_observation(log: EventLog) -> None:
    """A later run replaces the exemplars of the buckets that it reaches, and no other."""
    metrics = Metrics("web")
    metrics.add(repetition(), log.state)
    later = Distribution(*KEY, "ns", (1.5e6, 1.9e6, 2.5e6, 4e9), (1, 1, 1, 2), {4e9: 2})
    metrics.add(replace(repetition(), run="run-2", distributions=(later,)), log.state)
    point = MetricsEndpoint()
    point.show(metrics.families(log.state, NEXT_S), NEXT_S)
    text = openmetrics.generate_latest(point).decode()
    exemplars = {
        sample.labels["le"]: (sample.exemplar.labels["run"], sample.exemplar.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.exemplar is not None
    }
    assert exemplars == {
        "1000000.0": ("run-1", 1e6),
        "2000000.0": ("run-2", 1.9e6),
        "5000000.0": ("run-2", 2.5e6),
    }, "neither a time without an answer nor an infinite one is an observation"


def test_a_run_whose_name_has_no_room_has_no_exemplar(log: EventLog) -> None:
    metrics = Metrics("web")
    metrics.add(replace(repetition(), run="r" * 126), log.state)
    point = MetricsEndpoint()
    point.show(metrics.families(log.state, NEXT_S), NEXT_S)
    assert " # {" not in openmetrics.generate_latest(point).decode()


def test_results_of_a_replay_have_a_label_of_their_own(log: EventLog) -> None:
    metrics = Metrics("web")
    metrics.add(replace(repetition(), recorded=frozenset({"db"})), log.state)
    points = {
        point.labels["target"]: point.labels
        for family in metrics.families(log.state, NEXT_S)
        for point in family.points
        if family.name in ("nephoscope_estimate", "nephoscope_observations")
    }
    assert points["db"]["recorded"] == "true"
    assert "recorded" not in points[KEY[2]]


def test_an_edited_plan_forgets_the_figures_of_the_old_one(log: EventLog) -> None:
    metrics = Metrics("web")
    metrics.add(repetition(), log.state)
    log.append("series_started", series=2, plan_hash="b")
    metrics.add(None, log.state)
    names = {family.name for family in metrics.families(log.state, NEXT_S)}
    assert "nephoscope_estimate" not in names


def test_the_endpoint_has_both_formats_and_nothing_else(log: EventLog, tmp_path: Path) -> None:
    with served(tmp_path, families(log)) as url:
        kind, text = text_of(url)
        assert kind.startswith("text/plain; version=0.0.4")
        assert 'nephoscope_watch_events_total{event="start_skipped",watch="web"} 4.0' in text
        assert 'nephoscope_watch_failures_in_a_row{target="db",watch="web"} 2.0' in text
        kind, text = text_of(url, Accept="application/openmetrics-text; version=1.0.0")
        assert kind.startswith("application/openmetrics-text; version=1.0.0")
        assert text.endswith("# EOF\n")
        assert status_of(url + "/../watch.json") == 404
        assert status_of(url, Host="evil.example") == 421
        assert status_of(url, Origin="http://evil.example") == 403


def test_beyond_loopback_it_needs_the_token(log: EventLog, tmp_path: Path) -> None:
    with served(tmp_path, families(log), "0.0.0.0:0") as url:
        local = url.replace("0.0.0.0", "127.0.0.1")
        token = (tmp_path / "token").read_text().strip()
        assert status_of(local) == 401
        assert status_of(local, Authorization="Bearer wrong-token-wrong-token") == 401
        assert status_of(local, Authorization=f"Bearer {token}") == 200


@pytest.mark.parametrize(
    "text", ["web", "1.2.3.4", "127.0.0.1:99999", "example.org:80", ":", "²", "9" * 5000, "[::1:5"]
)
def test_what_is_no_address_to_listen_on(text: str) -> None:
    with pytest.raises(UsageError, match=r"--(listen|address)"):
        endpoint.address_of(text)


def test_a_token_is_made_for_any_address_beyond_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    for address in ("127.0.0.1:0", "[::1]:0", "9464"):
        assert endpoint.settings_of(address, None, Store(tmp_path)).token is None, address
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:9464"):
        settings = endpoint.settings_of(address, None, Store(tmp_path))
        assert settings.token, address
        assert settings.token_file is not None
        assert settings.token == settings.token_file.read_text().strip()


def test_addresses_to_listen_on() -> None:
    assert endpoint.address_of("9464") == ("127.0.0.1", 9464)
    assert endpoint.address_of("[::1]:1") == ("::1", 1)


@needs_prometheus
def test_promtool_has_nothing_to_say(log: EventLog, tmp_path: Path) -> None:
    with served(tmp_path, families(log)) as url:
        _, text = text_of(url)
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text.encode(), capture_output=True, timeout=LIMIT_S
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


@needs_prometheus
def test_a_real_prometheus_scrapes_the_endpoint(log: EventLog, tmp_path: Path) -> None:
    with served(tmp_path, families(log)) as url:
        target = {"targets": [urllib.parse.urlsplit(url).netloc]}
        configuration = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "watch", "static_configs": [target]}],
        }
        with servers.prometheus(tmp_path, configuration) as running:

            def value_of(query: str) -> float:
                return float(running.until(lambda: running.value(query)))

            assert value_of('nephoscope_estimate{metric="latency_p99_ns"}') == 2.5e6
            assert value_of('nephoscope_watch_events_total{event="start_skipped"}') == 4
            buckets = 'nephoscope_observations_bucket{metric="latency_ns"}'
            assert 1e6 <= value_of(f"histogram_quantile(0.5, {buckets})") <= 2e6


RECIPES = ROOT / "docs" / "how-to" / "ci"


def expressions_of(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Title and query of each series of a Grafana dashboard, for every watch, target and metric."""
    for panel in dashboard["panels"]:
        for shown in panel["targets"]:
            query = re.sub(r"\$(watch|target|benchmark|metric)\b", ".*", shown["expr"])
            yield panel["title"], query.replace("$__rate_interval", "1m")


def test_the_dashboard_and_the_alerts_name_only_what_a_watch_exports(log: EventLog) -> None:
    exported = {family.name for family in families(log)}
    exported |= {f"{family.name}_total" for family in families(log) if family.kind == "counter"}
    exported |= {f"{family.name}_bucket" for family in families(log) if family.kind == "histogram"}
    dashboard = (RECIPES / "grafana-watch.json").read_text(encoding="utf-8")
    alerts = (RECIPES / "prometheus-alerts.yaml").read_text(encoding="utf-8")
    for text in (dashboard, alerts):
        named = set(re.findall(r"nephoscope_[a-z_]+", text))
        assert named
        assert named <= exported
    labels = {
        label for family in families(log) for point in family.points for label in point.labels
    }
    legends = set(re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", dashboard + alerts))
    assert legends <= labels | {"le", "event", "factors"}


@needs_prometheus
def test_every_panel_of_the_dashboard_has_data(log: EventLog, tmp_path: Path) -> None:
    dashboard = json.loads((RECIPES / "grafana-watch.json").read_text(encoding="utf-8"))
    queries = list(expressions_of(dashboard))
    assert len(queries) >= len(dashboard["panels"])
    metrics = Metrics("web")
    estimate = Estimate(2.5e6, 2e6, 3e6, 0.95, 10, "ns", "")
    seen = Distribution("http.load", "latency_ns", "db", "{}", "ns", (1e6, 2e6), (10, 20))
    of_line = {("http.load", "latency_p99_ns", "db", "{}"): estimate}
    metrics.add(WatchRepetition("run-1", "fine", {}, of_line, (seen,)), log.state)
    with served(tmp_path, metrics.families(log.state, NEXT_S)) as url:
        target = {"targets": [urllib.parse.urlsplit(url).netloc]}
        configuration = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "watch", "static_configs": [target]}],
        }
        with servers.prometheus(tmp_path, configuration) as running:
            for title, query in queries:
                assert running.until(lambda query=query: running.has_samples(query)), title


@needs_prometheus
def test_the_alerts_fire_on_planted_faults_and_not_before() -> None:
    words = ["promtool", "test", "rules", "prometheus-alerts.test.yaml"]
    done = subprocess.run(words, cwd=RECIPES, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr


class Receiver:
    """A small OTLP/HTTP receiver on loopback. status, answer: of its responses."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.status, self.answer = 200, b"{}"
        self.location = ""

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.requests.append((self.path, headers, json.loads(body)))
                self.send_response(receiver.status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(receiver.answer)))
                self.end_headers()
                self.wfile.write(receiver.answer)

            def log_message(self, *words: object) -> None:
                """Logs nothing."""

        with servers.serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
            yield f"http://127.0.0.1:{port}"


SECRET = "s3cret-value"


def test_a_receiver_gets_what_the_protocol_says(log: EventLog) -> None:
    receiver = Receiver()
    with receiver.serving() as url:
        exporter = otlp.Exporter(url + "/", {"api-key": SECRET}, "web", NEXT_S - 600)
        exporter.send(families(log), NEXT_S)
    ((path, headers, body),) = receiver.requests
    assert (path, headers["content-type"], headers["api-key"]) == (
        "/v1/metrics",
        "application/json",
        SECRET,
    )
    (resource,) = body["resourceMetrics"]
    assert {"key": "service.name", "value": {"stringValue": "nephoscope"}} in (
        resource["resource"]["attributes"]
    )
    (scope,) = resource["scopeMetrics"]
    metrics = {one["name"]: one for one in scope["metrics"]}
    point = next(
        one
        for one in metrics["nephoscope_watch_events"]["sum"]["dataPoints"]
        if {"key": "event", "value": {"stringValue": "start_skipped"}} in one["attributes"]
    )
    # 64-bit integers are decimal strings, enumerations numbers, doubles JSON numbers.
    assert point["asInt"] == "4"
    assert point["timeUnixNano"] == "1790000400000000000"
    assert point["startTimeUnixNano"] == "1789999800000000000"
    events = metrics["nephoscope_watch_events"]["sum"]
    assert (events["aggregationTemporality"], events["isMonotonic"]) == (2, True)
    gauge = metrics["nephoscope_estimate"]["gauge"]
    assert gauge.keys() == {"dataPoints"}
    assert gauge["dataPoints"][0]["asDouble"] == 2.5e6
    histogram = metrics["nephoscope_observations"]["histogram"]
    (buckets,) = histogram["dataPoints"]
    assert histogram["aggregationTemporality"] == 2
    assert buckets["count"] == "36"
    assert sum(map(int, buckets["bucketCounts"])) == 36
    assert len(buckets["bucketCounts"]) == len(buckets["explicitBounds"]) + 1


@pytest.mark.parametrize(
    ("status", "answer", "sentence"),
    [
        (503, b"", "status 503"),
        (302, b"", "status 302"),
        (200, b'{"partialSuccess": {"rejectedDataPoints": "7"}}', "7 data points were rejected"),
    ],
)
def test_what_a_receiver_refuses_is_a_sentence_without_the_headers(
    status: int, answer: bytes, sentence: str, log: EventLog
) -> None:
    receiver, elsewhere = Receiver(), Receiver()
    receiver.status, receiver.answer = status, answer
    with receiver.serving() as url, elsewhere.serving() as other:
        receiver.location = other if status == 302 else ""
        exporter = otlp.Exporter(url, {"api-key": SECRET}, "web", NEXT_S)
        with pytest.raises(otlp.ExportFailed, match=sentence) as caught:
            exporter.send(families(log), NEXT_S)
    assert SECRET not in str(caught.value)
    assert not elsewhere.requests, "a redirection would take the headers elsewhere"


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [(b"", "timeout|TimeoutError"), (b"H", "no answer within 0.5 s"), (b"\0\r\n", "BadStatusLine")],
    ids=["silent", "slow", "another protocol"],
)
def test_a_receiver_that_hangs_holds_nothing_up(
    sent: bytes, sentence: str, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(otlp, "DEADLINE_S", 0.5 if sent == b"H" else 60)
    ended = threading.Event()

    class Hanging(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while not ended.wait(0.05):
                    self.request.sendall(sent)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with servers.serving(Server(("127.0.0.1", 0), Hanging)) as port:
        exporter = otlp.Exporter(f"http://127.0.0.1:{port}", {"api-key": SECRET}, "web", NEXT_S)
        with pytest.raises(otlp.ExportFailed, match=sentence) as caught:
            exporter.send(families(log), NEXT_S)
        assert SECRET not in str(caught.value)
        if sent == b"H":
            with pytest.raises(otlp.ExportFailed, match="the export before has no answer yet"):
                exporter.send(families(log), NEXT_S)
        ended.set()


def test_a_receiver_that_is_away_is_said_once_and_made_up_for(log: EventLog) -> None:
    receiver, said = Receiver(), []
    with receiver.serving() as url:
        exporter = otlp.Exporter(url, {}, "web", NEXT_S)
    publisher = Publisher("web", [exporter.send], said.append, lambda: NEXT_S)
    for _ in range(3):
        publisher(repetition(), log, NEXT_S)
    assert len(said) == 1
    assert said[0].startswith("The OTLP receiver 127.0.0.1 did not take the metrics:")
    assert log.state.counts["export_failed"] == 3


def test_headers_come_from_a_private_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "headers"
    file.write_text(f"Api-Key: {SECRET}\nX-Scope: a:b\n")
    file.chmod(0o644)
    with pytest.raises(UsageError, match="can be read by other users"):
        otlp.headers_of(file)
    file.chmod(0o600)
    assert otlp.headers_of(file) == {"Api-Key": SECRET, "X-Scope": "a:b"}
    monkeypatch.setenv(otlp.HEADERS_VARIABLE, "api-key=s%203,tenant=x")
    assert otlp.headers_of(None) == {"api-key": "s 3", "tenant": "x"}
    file.write_text(f"no header {SECRET}\n")
    with pytest.raises(UsageError, match="is no header") as caught:
        otlp.headers_of(file)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["web", "ftp://a/", "http://", "http://u:p@a/", "http://a/?x", "http://a:b/", "http://[/"],
)
def test_what_is_no_receiver(url: str) -> None:
    with pytest.raises(UsageError, match="--otlp takes the address"):
        otlp.Exporter(url, {}, "web", NEXT_S)


def test_requests_without_an_answer_are_above_every_bound(log: EventLog) -> None:
    metrics = Metrics("web")
    seen = Distribution(*KEY, "ns", (1e6, 2e6), (10, 20), {2e6: 5})
    metrics.add(WatchRepetition("run-1", "fine", {}, {}, (seen,)), log.state)
    (found,) = (
        one for one in metrics.families(log.state, NEXT_S) if one.name == "nephoscope_observations"
    )
    (point,) = found.points
    assert isinstance(point, HistogramPoint)
    assert point.counts[-1] == 5
    assert sum(point.counts) == 30
    assert point.total == 50e6
    assert "without an answer are above every bound" in found.help


def test_a_repetition_has_the_requests_without_an_answer(tmp_path: Path) -> None:
    def samples(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        unsent = [Sample("latency_ns", 9e8, 4), Sample("unanswered_ns", 9e8, 4)]
        return [Sample("requests_per_s", 20.0), Sample("latency_ns", 1e6, 20), *unsent]

    plan = """version: 1
name: web
benchmarks:
  - benchmark: http.load
    params: {url: "http://127.0.0.1/", arrivals: constant, rate_per_s: 200}
repeat: {min: 8, max: 8}
"""
    run = make_run(tmp_path, plan, samples, rounds=8)
    (seen,) = (
        one
        for one in _repetition(run, analyse_run.build(run)).distributions
        if one.metric == "latency_ns"
    )
    assert (seen.values, seen.counts) == ((1e6, 9e8), (160, 32))
    assert seen.unanswered == {9e8: 32}
