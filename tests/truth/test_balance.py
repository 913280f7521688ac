"""Load balancers on loopback: clients, servers and balancers count the same requests.

What the logs state is read here from what each program printed, and not by the adapters' parsers.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from http_truth import serving
from tests.attempts import attempt
from tests.e2e.conftest import run_inside
from tests.tools import located, needs

from nephoscope import catalog
from nephoscope.core.model import RunResult
from nephoscope.features.balance.records import Balance, Failover
from nephoscope.measure import runs
from nephoscope.measure.plans.files.load import from_values
from nephoscope.results import analyse_run
from nephoscope.store import Store, StoredRun

pytestmark = needs("haproxy", "nginx", "curl")
together = pytest.mark.together

MS = 1_000_000


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def executed(
    tmp_path: Path,
    generators: int,
    failure: dict[str, Any],
    *,
    server: str = "http.nginx",
    **load: Any,
) -> StoredRun:
    """One trial of each balancer before two servers, of which the first may fail."""
    ports = free_ports(4)
    clients = [f"client{n}" for n in range(generators)]
    backends = [f"127.0.0.1:{port}" for port in ports[:2]]
    address = {"address": "127.0.0.1"}
    balancers = {"haproxy": {"check_ns": 100 * MS * bool(failure)}, "nginx": {}}
    values: dict[str, Any] = {
        "name": "balance",
        "warmup": 0,
        "repeat": {"min": 1, "max": 1},
        "accept": ["throttled", "late_sends", "controller_busy"],
        "phases": {"start": "60s", "stop": "60s"},
        "targets": [{"name": name} for name in (*clients, "servers")],
        "backgrounds": [
            *(
                {
                    "name": f"web{n}",
                    "benchmark": server,
                    "on": "servers",
                    "params": {**address, "port": port, **(failure if n == 1 else {})},
                }
                for n, port in enumerate(ports[:2], 1)
            ),
            *(
                {
                    "name": name,
                    "benchmark": f"lb.{name}",
                    "on": "servers",
                    "params": {**address, "port": ports[2], "backends": backends, **more},
                }
                for name, more in balancers.items()
            ),
        ],
        "factors": {
            "balancer": {
                "path": "backgrounds",
                "levels": [["web1", "web2", name] for name in balancers],
            }
        },
        "benchmarks": [
            {
                "benchmark": "http.load",
                "on": clients,
                "together": generators > 1,
                "served_by": [] if failure else ["web1", "web2"],
                "params": {
                    "url": f"http://127.0.0.1:{ports[2]}/",
                    "connections": 4,
                    "warmup_ns": 0,
                    **load,
                },
            }
        ],
    }
    plan = from_values(values, catalog.load(), str)
    return runs.execute(plan, Store(tmp_path), runs.Observer())


def balanced(result: RunResult) -> Balance:
    balance = result.part(Balance)
    assert balance is not None, result.invalid
    return balance


@together
@pytest.mark.parametrize(
    ("server", "generators"),
    [("http.nginx", 3), pytest.param("http.apache", 1, marks=needs("apache2"))],
)
def test_generators_count_what_the_servers_count(
    tmp_path: Path, server: str, generators: int
) -> None:
    run = executed(tmp_path, generators, {}, server=server, duration_ns=200 * MS)
    result = analyse_run.build(run)
    assert result.run.trials.valid == 2 * generators, result.invalid
    balance = balanced(result)
    assert [(one.balancer, one.connections) for one in balance.throughputs] == [
        ("haproxy", 4 * generators),
        ("nginx", 4 * generators),
    ]
    for one in balance.sharings:
        assert sum(share.value for share in one.shares.values()) == pytest.approx(1)
        assert one.fairness.value > 0.99  # round robin


def failovers_of(result: RunResult) -> dict[str, Failover]:
    found = {one.balancer: one for one in balanced(result).failovers}
    assert set(found) == {"haproxy", "nginx"}, result.invalid
    return found


@together
def test_a_killed_server_is_noticed_and_its_errors_are_the_balancers(tmp_path: Path) -> None:
    dies = {"failure": "dies", "fail_after_ns": 1000 * MS, "fail_for_ns": 1500 * MS}
    load = {"arrivals": "constant", "rate_per_s": 200.0, "interval_ns": 100 * MS}
    run = executed(tmp_path, 1, dies, duration_ns=2500 * MS, **load)
    failovers = failovers_of(analyse_run.build(run))
    for failover in failovers.values():
        assert failover.sent == failover.completed + sum(failover.errors.values())
        assert sum(failover.errors.values()) == failover.failed
        assert failover.length_s >= 1.5
    # Checks notice it whatever the clients do.
    noticed_s = failovers["haproxy"].noticed_s
    assert noticed_s is not None
    assert noticed_s < failovers["haproxy"].length_s


def logs(run: StoredRun) -> dict[str, dict[str, str]]:
    """Balancer -> program of its trial -> what it printed."""
    return {
        next(one for one in ("haproxy", "nginx") if one in record.factors["balancer"]): {
            name.split("/")[0]: document["stdout"]
            for name, document in record.documents.items()
            if name.endswith("/tool")
        }
        for record, _ in run.tables()
    }


def moments(printed: dict[str, str], balancer: str) -> tuple[float, float | None]:
    """When the server failed, and when the balancer's log first has that (s since the epoch)."""
    (failed,) = re.findall(r"^fails (\d+)$", printed["web1"], re.M)
    failed_s = int(failed) / 1e9
    if balancer == "haproxy":
        down = re.findall(r"^(\S+) Server web/\S+ is DOWN", printed["haproxy"], re.M)
        seen = [datetime.fromisoformat(text).timestamp() for text in down]
    else:
        lines = re.findall(r"^([\d.]+)\|\d+\|(\S.*)\|(.*)$", printed["nginx"], re.M)
        seen = [float(at) for at, _, statuses in lines if re.search(r"50[24]|-", statuses)]
    return failed_s, min(seen, default=None)


def served_by(printed: dict[str, str]) -> int:
    counts = [re.search(r"^(\d+) served\.log$", printed[name], re.M) for name in ("web1", "web2")]
    return sum(int(count[1]) for count in counts if count is not None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failure", "rate", "noticed_s"),
    [
        # Two checks, 100 ms apart, fail; nginx sees the first request that fails.
        ("dies", 1000, {"haproxy": (0.1, 0.4), "nginx": (-0.002, 0.1)}),
        # Two checks take their limit of 1 s; so does the first request.
        ("hangs", 1000, {"haproxy": (1.0, 2.7), "nginx": (0.9, 1.3)}),
        # What a tenth of the time serves: with more requests the server would be overloaded too.
        ("slows", 100, {}),
    ],
)
def test_failures_are_those_of_the_logs(
    tmp_path: Path, failure: str, rate: int, noticed_s: dict[str, tuple[float, float]]
) -> None:
    fails = {"failure": failure, "fail_after_ns": 4000 * MS, "fail_for_ns": 3000 * MS}
    load = {
        "arrivals": "constant",
        "rate_per_s": float(rate),
        "connections": 1500,
        "timeout_ns": 5000 * MS,
        "interval_ns": 100 * MS,
        "duration_ns": 9000 * MS,
    }
    tries: list[Path] = []

    def measure() -> tuple[str, bool]:
        tries.append(tmp_path / str(len(tries)))
        run = executed(tries[-1], 1, fails, **load)
        printed, held, texts = logs(run), True, []
        for name, failover in failovers_of(analyse_run.build(run)).items():
            unsent = failover.errors.get("unsent", 0)
            errors = sum(failover.errors.values()) - unsent
            assert failover.sent == failover.completed + errors == 9 * rate - unsent
            # Begins before the failure and ends after it.
            begin_s, end_s = failover.timeline[0].at_s, failover.timeline[-1].at_s
            held &= not unsent and begin_s < 0 and failover.length_s < end_s
            # A response may be lost on its way, and one sent whose log line the signal prevents.
            served = served_by(printed[name])
            assert failover.completed - 1 <= served
            assert served <= failover.completed + errors + failover.retries
            failed_at_s, seen_at_s = moments(printed[name], name)
            if failure == "slows":
                held &= failover.noticed_s is None and not errors
                held &= 0.08 < failover.slowest_s < 1
                texts.append(f"{name}: {errors} errors, slowest {failover.slowest_s:.3f} s")
                continue
            assert errors == failover.failed
            assert seen_at_s is not None
            assert failover.noticed_s == pytest.approx(max(0, seen_at_s - failed_at_s), abs=1e-3)
            low, high = noticed_s[name]
            held &= low <= seen_at_s - failed_at_s <= high
            texts.append(f"{name}: {errors} errors, noticed {seen_at_s - failed_at_s:.3f} s")
        return "; ".join(texts), held

    attempt(f"a server {failure}", measure, contends=True)


HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend clients
  bind 127.0.0.1:{port}
  default_backend web
backend web
  server one 127.0.0.1:{server}
"""


@together
def test_a_balancer_that_runs_already_is_measured_by_its_url(tmp_path: Path) -> None:
    with serving({"body_bytes": 166}) as server:
        (port,) = free_ports(1)
        configuration = HAPROXY.format(port=port, server=server.address[1])
        words = [located("haproxy"), "-db", "-f", "/dev/stdin"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, text=True) as haproxy:
            try:
                assert haproxy.stdin is not None
                haproxy.stdin.write(configuration)
                haproxy.stdin.close()
                accepts(port)
                command = ["balance", "--url", f"http://127.0.0.1:{port}/", "--generators", "1,2"]
                command += ["--target", "local", "--target", "local", "-c", "4", "-d", "500ms"]
                done = run_inside([*command, "--rounds", "1", "--store", str(tmp_path), "--json"])
            finally:
                haproxy.kill()
        answered = server.stop()["answered"]["body"]
    assert done.code == 0, done.err
    found = json.loads(done.out)
    points = {(one["generators"], one["connections"]) for one in found["balance"]["throughputs"]}
    assert points == {(1, 4), (2, 4)}
    lines = found["load"]["lines"]
    assert 0 < sum(line["completed_count"] for line in lines) <= answered
    # The open loop does not count where the machine had no time to send.
    if not found["invalid"]:
        assert answered <= sum(line["sent_count"] for line in lines)


def accepts(port: int) -> None:
    """Waits until something accepts connections at a port."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.02)
    pytest.fail(f"nothing listens on port {port}")
