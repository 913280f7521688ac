"""http.serve: its queue against Lindley's recursion, its counts against its clients'."""

from __future__ import annotations

import asyncio
import json
import math
import re
import statistics
import subprocess
import sys
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import veth
from channel import TOKEN, controlled
from http_truth import Server, SplitMix64, body, rows, service_times, serving
from tests.attempts import attempt
from tests.hardware import Feature, lacking
from tests.tools import needs
from trials import needs_root, probe_path, run

from nephoscope.measure.targets import parse, session
from nephoscope.measure.targets.base import Peer, TargetTrial

together = pytest.mark.together
MS = 1_000_000
OK = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
TOOL_S = 180.0
"""wrk takes minutes to print its report after a stall of a second: it corrects its percentiles."""


def load(server: Server, path: str, clients: int, requests: int) -> None:
    """Requests of several clients at once, each on one connection, one after the other."""

    def client() -> None:
        connection = server.connect()
        for _ in range(requests):
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == 200
            answer.read()
        connection.close()
        done.append(True)

    done: list[bool] = []
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == clients


@together
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_bodies_have_the_content_and_length_asked_for(address: str) -> None:
    if address == "::1" and not Path("/proc/net/if_inet6").exists():
        lacking(Feature.IPV6)
    with serving({"body_bytes": 166}, bind=address) as server:
        assert server.get("/") == (200, body(166))
        assert server.get("/sum") == (200, b"5050\n")
        assert server.get("/service/1000?bytes=7") == (200, body(7))
        assert server.get("/cpu/1000?bytes=0") == (200, b"")
        assert server.get("/bytes/100", "HEAD") == (200, b"")
        assert server.get("/bytes/100", "POST") == (200, body(100))
        assert server.get("/nothing")[0] == 404
        status, content = server.get("/bytes/5000000")
        assert (status, len(content)) == (200, 5_000_000)
        assert content[: 1 << 20] == content[1 << 20 : 2 << 20]
        assert content[:9000] == body(9000)
        served = server.stop()
    kinds = {"body": 4, "sum": 1, "cpu": 1, "service": 1, "stall": 0, "counters": 0}
    assert served["requests"] == served["answered"] == kinds
    assert served["cpu_work_ns"] >= 1000
    assert (served["accepted"], served["errors"]["unknown_path"]) == (8, 1)


@together
@pytest.mark.parametrize("distribution", ["fixed", "exponential", "lognormal"])
def test_one_worker_obeys_lindleys_recursion(distribution: str) -> None:
    """Exactly, whatever disturbs the machine: only the answers may be late."""
    # Of eight clients at once all but one wait, where a service takes longer than a client's turn.
    mean_ns = 2 * MS
    times = {"service": distribution, "service_mean_ns": mean_ns, "service_cv_ratio": 0.7}
    with serving({**times, "seed": 42, "records": 1000}) as server:
        load(server, "/service", clients=8, requests=40)
        served = server.stop()
    found = rows(served, "service")
    drawn = list(islice(service_times(distribution, mean_ns, 0.7, served["seed"]), len(found)))
    assert len(found) == 320
    free_ns = 0
    for row, service_ns in zip(found, drawn, strict=True):
        start_ns = max(row["arrival_ns"], free_ns)
        assert row["start_ns"] == start_ns
        # Two mathematical libraries may differ in the last digit before rounding.
        assert abs(row["end_ns"] - start_ns - service_ns) <= 1
        free_ns = row["end_ns"]
        assert row["sent_ns"] >= row["end_ns"]
    waits = [row["start_ns"] - row["arrival_ns"] for row in found]
    assert sum(wait > 0 for wait in waits) > 100


def test_answers_are_sent_when_their_service_ends() -> None:
    def measure() -> tuple[str, bool]:
        params = {"service": "exponential", "service_mean_ns": MS, "seed": 7, "records": 1000}
        with serving(params) as server:
            load(server, "/service", clients=2, requests=200)
            found = rows(server.stop(), "service")
        late = sorted(row["sent_ns"] - row["end_ns"] for row in found)
        median, most = statistics.median(late) / 1e3, late[int(0.99 * len(late))] / 1e3
        # An idle virtual CPU takes up to some 100 us to wake.
        return f"late by {median:.0f} us, p99 {most:.0f} us", median < 200 and most < 2000

    attempt("lateness of answers", measure)


def test_cpu_work_uses_the_cpu_time_asked_for() -> None:
    """Less is impossible; more is a clock read, and interrupts that the kernel charges to it."""

    def measure() -> tuple[str, bool]:
        with serving({"workers": 2, "records": 100}) as server:
            load(server, f"/cpu/{5 * MS}", clients=2, requests=10)
            served = server.stop()
        assert served["cpu_work_ns"] >= 100 * MS
        assert all(row["end_ns"] - row["start_ns"] >= 5 * MS for row in rows(served, "cpu"))
        used_ms = served["cpu_work_ns"] / MS
        return f"{used_ms:.2f} ms of CPU time instead of 100", used_ms <= 101

    attempt("CPU work", measure, contends=True)


@together
def test_nothing_is_answered_in_a_stall() -> None:
    stalls = {"stall_every_ns": 50 * MS, "stall_ns": 20 * MS}
    with serving({**stalls, "service_mean_ns": 2 * MS, "records": 1000}) as server:
        load(server, "/service", clients=1, requests=60)
        load(server, "/", clients=1, requests=200)
        served = server.stop()
    found = [*rows(served, "service"), *rows(served, "body")]
    assert len(found) == 260

    def is_stalled(ns: int) -> bool:
        return ns >= 50 * MS and ns % (50 * MS) < 20 * MS

    # A service may end in the moment in which a stall begins, and no later.
    ends = [row["end_ns"] for row in found]
    assert not any(is_stalled(end_ns) and end_ns % (50 * MS) for end_ns in ends)
    # A service of 2 ms that meets a stall lasts 20 ms longer.
    times = {row["end_ns"] - row["start_ns"] for row in rows(served, "service")}
    assert times <= {2 * MS, 22 * MS}


@together
def test_a_stall_on_command_delays_what_comes_next() -> None:
    with serving() as server:
        began_s = time.monotonic()
        assert server.get(f"/stall/{200 * MS}")[0] == 200
        assert server.get("/")[0] == 200
        assert time.monotonic() - began_s >= 0.2
        assert server.stop()["answered"]["stall"] == 1


def in_order(latencies_ns: list[float], q: float) -> float:
    return sorted(latencies_ns)[math.ceil(q * len(latencies_ns)) - 1]


def loaded(server: Server, path: str, times_s: list[float], file: Path) -> list[float]:
    """The latencies (ns) that http.load measures of requests that are due at these times."""
    file.write_text("".join(f"{time_s:.9f}\n" for time_s in times_s))
    params = {
        "url": "http://{}:{}{}".format(*server.address, path),
        "arrivals": "file",
        "arrivals_file": str(file),
        "connections": 300,
        "warmup_ns": 0,
        "duration_ns": int(times_s[-1] * 1e9) + MS,
        "spin_ns": MS // 10,
    }
    trial = run("http.load", params)
    found = [s for s in trial.samples if s["metric"] == "latency_ns"]
    latencies = [float(s["value"]) for s in found for _ in range(s["count"])]
    assert len(latencies) == len(times_s)
    return latencies


def drawn_queue(
    service: str, utilisation: float, mean_ns: int, count: int
) -> tuple[list[float], list[float]]:
    """Poisson arrivals (s) at one worker, and the response times (ns) of Lindley's recursion."""
    draw = SplitMix64(17)
    times_s, at_s = [], 0.1
    for _ in range(count):
        at_s += -math.log(1 - draw.uniform()) * mean_ns / 1e9 / utilisation
        times_s.append(at_s)
    predicted, free_ns = [], 0.0
    services_ns = service_times(service, mean_ns, 1, 42)
    for time_s, service_ns in zip(times_s, services_ns, strict=False):
        free_ns = max(1e9 * time_s, free_ns) + service_ns
        predicted.append(free_ns - 1e9 * time_s)
    return times_s, predicted


@together
@pytest.mark.parametrize("service", ["exponential", "fixed"])
@pytest.mark.parametrize("utilisation", [0.5, 0.8])
def test_the_interval_of_the_recursion_holds_the_formulas_of_queueing_theory(
    service: str, utilisation: float
) -> None:
    """M/M/1 and M/D/1: what the generator's measurements are compared with is no other queue."""
    _, predicted = drawn_queue(service, utilisation, MS, count=200_000)
    batches = [predicted[first : first + 10_000] for first in range(0, len(predicted), 10_000)]
    statistic = {"mean": statistics.mean, "p99": lambda batch: in_order(batch, 0.99)}
    wait = utilisation / (1 - utilisation) * (1 if service == "exponential" else 0.5)
    formulas = {"mean": MS * (1 + wait)}
    if service == "exponential":
        formulas["p99"] = MS * math.log(100) / (1 - utilisation)
    for name, formula in formulas.items():
        values = [statistic[name](batch) for batch in batches]
        half_width = 2.093 * statistics.stdev(values) / math.sqrt(20)  # t of 19 degrees, 95 %
        assert abs(statistics.mean(values) - formula) < half_width, name
        assert half_width < 0.15 * formula, name


@pytest.mark.parametrize(
    ("service", "utilisation"),
    [
        ("exponential", 0.8),
        pytest.param("exponential", 0.5, marks=pytest.mark.slow),
        pytest.param("fixed", 0.8, marks=pytest.mark.slow),
        pytest.param("fixed", 0.5, marks=pytest.mark.slow),
    ],
)
def test_a_generator_measures_what_lindleys_recursion_predicts(
    service: str, utilisation: float, tmp_path: Path
) -> None:
    """Over the very arrivals and service times drawn; nothing of it is measured by the server."""
    mean_ns = 10 * MS
    times_s, predicted = drawn_queue(service, utilisation, mean_ns, count=300)
    params = {"service": service, "service_mean_ns": mean_ns, "seed": 42, "spin_ns": MS // 10}

    def measure() -> tuple[str, bool]:
        with serving(params) as server:
            found = loaded(server, "/service", times_s, tmp_path / "times")
        ratios = [
            statistics.mean(found) / statistics.mean(predicted),
            in_order(found, 0.99) / in_order(predicted, 0.99),
        ]
        text = "mean {:.4f}, p99 {:.4f} of what the recursion predicts".format(*ratios)
        return text, all(abs(ratio - 1) < 0.03 for ratio in ratios)

    attempt(f"{service} at {utilisation}", measure)


def test_a_generator_measures_the_stalls_of_the_schedule(tmp_path: Path) -> None:
    """A tenth of the requests is due in a stall and waits for its end: 90 of 100 ms at p99."""
    stalls = {"stall_every_ns": 1000 * MS, "stall_ns": 100 * MS}
    # Two periods from anywhere on, once stalls have begun, meet two whole stalls.
    times_s = [1.2 + index / 1000 for index in range(2000)]

    def measure() -> tuple[str, bool]:
        with serving({**stalls, "spin_ns": MS // 10}) as server:
            found = loaded(server, "/", times_s, tmp_path / "times")
        p99_ms, most_ms = in_order(found, 0.99) / MS, max(found) / MS
        held = abs(p99_ms / 90 - 1) < 0.02 and abs(most_ms / 100 - 1) < 0.02
        return f"p99 {p99_ms:.1f} of 90 ms, maximum {most_ms:.1f} of 100 ms", held

    attempt("stalls of the schedule", measure)


@pytest.mark.slow
@needs("ab", "wrk")
def test_stalls_of_a_second_are_measured_and_missed_by_closed_loops(tmp_path: Path) -> None:
    """1 s in every 10 s at 1,000 requests a second: a tenth waits, 900 ms at p99 and 1 s at most.

    Ten connections that wait for their responses send ten requests into each stall.
    """
    stalls = {"stall_every_ns": 10_000 * MS, "stall_ns": 1000 * MS}
    # A period from anywhere on, once stalls have begun, meets a whole stall.
    times_s = [10.2 + index / 1000 for index in range(10_000)]
    closed = {"connections": 10}

    def measure() -> tuple[str, bool]:
        with serving({**stalls, "spin_ns": MS // 10}, deadline_s=400) as server:
            found = loaded(server, "/", times_s, tmp_path / "times")
            wrk = tool(server, "wrk", {**closed, "duration_ns": 11_000 * MS})
            # So many that they last longer than the rest of a period.
            requests = round(15 * wrk["requests_per_s"])
            ab = tool(server, "ab", {**closed, "requests": requests})
        p99_ms, most_ms = in_order(found, 0.99) / MS, max(found) / MS
        held = abs(p99_ms / 900 - 1) < 0.02 and abs(most_ms / 1000 - 1) < 0.02
        texts = [f"p99 {p99_ms:.1f} of 900 ms, maximum {most_ms:.1f} of 1000 ms"]
        for name, seen in (("wrk", wrk), ("ab", ab)):
            missed_ms = seen["latency_p99_ns"] / MS
            held &= missed_ms < 90 and seen["latency_max_ns"] > 900 * MS
            texts.append(f"{name}: p99 {missed_ms:.2f} ms")
        return ", ".join(texts), held

    attempt("stalls of a second", measure)


def tool(server: Server, name: str, params: dict[str, Any]) -> dict[str, float]:
    """What a third-party tool reports of the server."""

    async def measure() -> TargetTrial:
        target = parse("local").make()
        try:
            await target.open()
            peer = Peer(*server.address, TOKEN)
            near = await session.prepare(target, name, params, deadline_s=TOOL_S, peer=peer)
            await session.go([near])
            return await near.running.result(TOOL_S)
        finally:
            await target.close()

    trial = asyncio.run(measure())
    assert trial.failure is None, trial.failure
    return {sample.metric: sample.value for sample in trial.samples}


@together
@needs("ab")
def test_ab_and_the_server_count_alike() -> None:
    with serving() as server:
        url = "http://{}:{}/".format(*server.address)
        words = ["ab", "-q", "-k", "-n", "2000", "-c", "10", url]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        served = server.stop()
    assert re.search(r"Complete requests: +2000\b", text)
    assert re.search(r"Failed requests: +0\b", text)
    (total,) = re.findall(r"Total transferred: +(\d+) bytes", text)
    assert served["answered"]["body"] == 2000
    assert served["sent_bytes"] == int(total)


@together
@needs("wrk")
def test_wrk_and_the_server_count_alike() -> None:
    """Up to the requests that are under way when wrk ends."""
    with serving() as server:
        url = "http://{}:{}/".format(*server.address)
        words = ["wrk", "-t1", "-c8", "-d1", url]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        served = server.stop()
    (counted,) = re.findall(r"(\d+) requests in", text)
    assert 0 <= served["requests"]["body"] - int(counted) <= 8
    assert served["accepted"] in (8, 9)  # the first one only tries
    assert "Socket errors" not in text


@together
def test_hostile_clients_are_counted_and_others_served() -> None:
    patience = {"request_timeout_ns": 1000 * MS, "idle_timeout_ns": 1000 * MS}
    head = b"GET / HTTP/1.1\r\nHost: a\r\n"
    with serving({**patience, "request_body_bytes": 1000}) as server:
        assert server.send(b"\x16\x03\x01\x02\x00").startswith(b"HTTP/1.1 400 ")
        assert server.send(head + b"X: 1\r\n" * 3000).startswith(b"HTTP/1.1 431 ")
        huge = server.send(head + b"Content-Length: 99999999999\r\n\r\n")
        assert huge.startswith(b"HTTP/1.1 413 ")
        assert server.send(head + b"Transfer-Encoding: chunked\r\n\r\n").startswith(b"HTTP/1.1 411")
        # Slow clients are waited for together: half a request, half a body, none at all.
        slow = [server.socket() for _ in range(30)]
        for index, client in enumerate(slow):
            starts = [head, head + b"Content-Length: 9\r\n\r\n1234", b""]
            client.sendall(starts[index % 3])
        assert server.send(OK).endswith(body(128))
        for client in slow:
            assert client.recv(1) == b""
            client.close()
        served = server.stop()
    errors = {cause: count for cause, count in served["errors"].items() if count}
    refused = {"malformed": 1, "head_too_large": 1, "body_too_large": 1, "length_required": 1}
    assert errors == {**refused, "request_timeout": 20, "idle_timeout": 10}
    assert served["answered"]["body"] == 1


@together
def test_connections_have_limits() -> None:
    with serving({"connections": 500, "requests_per_connection": 2}) as server:
        clients = [server.socket() for _ in range(800)]
        refused = sum(client.recv(12) == b"HTTP/1.1 503" for client in clients[500:])
        for client in clients[1:]:
            client.close()
        assert refused == 300
        first = clients[0]
        first.sendall(b"GET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
        text = b"".join(iter(lambda: first.recv(65536), b""))
        first.close()
        assert (text.count(b"200 OK"), text.count(b"Connection: close")) == (2, 1)
        status = Path(f"/proc/{server.pid}/status").read_text()
        served = server.stop()
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    assert int(kilobytes) < 20_000
    assert (served["accepted"], served["refused"], served["open_max"]) == (800, 300, 500)


@together
def test_a_client_that_leaves_is_counted() -> None:
    with serving() as server:
        client = server.socket()
        client.sendall(b"GET /service/50000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        while server.counters()["requests"]["service"] == 0:
            time.sleep(0.01)
        client.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER 0: the kernel sends a reset
        client.close()
        assert server.get("/service/0")[0] == 200
        served = server.stop()
    assert served["errors"]["aborted"] == 1
    assert served["answered"]["service"] == 1


@veth.needs_it
@together
@needs_root
def test_strangers_need_the_token_beyond_loopback() -> None:
    program = (
        "import sys, urllib.request as r\n"
        "q = r.Request(sys.argv[1], headers=dict([a.split('=') for a in sys.argv[2:]]))\n"
        "try: print(r.urlopen(q, timeout=30).status)\n"
        "except r.HTTPError as e: print(e.code)\n"
    )
    with veth.pair() as path, serving(bind=veth.FAR, before=path.far) as server:
        url = "http://{}:{}/".format(*server.address)
        words = [*path.near, sys.executable, "-c", program, url]
        for header, status in (([], 401), ([f"Authorization=Bearer {TOKEN}"], 200)):
            done = subprocess.run([*words, *header], capture_output=True, text=True, check=True)
            assert int(done.stdout) == status
        assert server.stop()["errors"]["no_token"] == 1


@together
def test_it_runs_as_a_load_of_its_own() -> None:
    with controlled("run", "http.serve", {"duration_ns": 0, "records": 5}) as probe:
        ready = probe.ready()
        assert ready["address"] == "127.0.0.1"
        probe.say("go")
        server = Server.__new__(Server)
        server.address = (ready["address"], ready["port"])
        assert server.get("/sum")[0] == 200
        probe.say("stop")
        trial = probe.trial()
    (document,) = [s["document"] for s in trial.samples if s["metric"] == "served"]
    assert trial.one("accepted_count") == 1
    assert document["answered"]["sum"] == 1
    assert len(document["records"]["rows"]) == 1


@together
@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"address": "localhost"}, "address must be an IP address, not 'localhost'."),
        ({"address": "192.0.2.1"}, "Nothing can listen on 192.0.2.1:0: "),
        ({"stall_ns": MS, "stall_every_ns": MS}, "leave no time to answer."),
        ({"duration_ns": 0}, "runs until it is told to stop, and nobody can tell it."),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(params: dict[str, object], words: str) -> None:
    command = [probe_path(), "run", "http.serve", "--params", json.dumps(params)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (2, 4)
    assert words in json.loads(done.stdout)["error"]["message"]
