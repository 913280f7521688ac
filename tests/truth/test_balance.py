"""Load balancers on loopback: clients, servers and balancers count the same requests."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from nephoscope import capabilities, catalog, runs
from nephoscope.balance.records import Balance
from nephoscope.model import RunResult
from nephoscope.plans.files.load import from_values
from nephoscope.store import Store

PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])
pytestmark = [
    pytest.mark.together,
    pytest.mark.skipif(
        not all(shutil.which(name, path=PATH) for name in ("haproxy", "nginx", "curl")),
        reason="needs haproxy, nginx and curl",
    ),
]

MS = 1_000_000


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def measured(tmp_path: Path, generators: int, failure: str, **load: Any) -> RunResult:
    """One trial of each balancer before two servers, of which the first may fail."""
    ports = free_ports(4)
    clients = [f"client{n}" for n in range(generators)]
    backends = [f"127.0.0.1:{port}" for port in ports[:2]]
    address = {"address": "127.0.0.1"}
    fails = {"failure": failure, "fail_after_ns": 1000 * MS, "fail_for_ns": 1500 * MS}
    balancers = {"haproxy": {"check_ns": 100 * MS * (failure != "none")}, "nginx": {}}
    values: dict[str, Any] = {
        "name": "balance",
        "warmup": 0,
        "repeat": {"min": 1, "max": 1},
        "accept": ["throttled", "late_sends"],
        "phases": {"start": "60s", "stop": "60s"},
        "targets": [{"name": name} for name in (*clients, "servers")],
        "backgrounds": [
            *(
                {
                    "name": f"web{n}",
                    "benchmark": "http.nginx",
                    "on": "servers",
                    "params": {**address, "port": port, **(fails if n == 1 else {})},
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
                "served_by": ["web1", "web2"] if failure == "none" else [],
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
    return capabilities.build(runs.execute(plan, Store(tmp_path), runs.Observer()))


def test_three_generators_count_what_the_servers_count(tmp_path: Path) -> None:
    result = measured(tmp_path, 3, "none", duration_ns=200 * MS)
    assert result.run.trials.valid == 6, result.invalid
    balance = result.part(Balance)
    assert balance is not None
    assert [(one.balancer, one.connections) for one in balance.throughputs] == [
        ("haproxy", 12),
        ("nginx", 12),
    ]
    for one in balance.sharings:
        assert sum(share.value for share in one.shares.values()) == pytest.approx(1)
        assert one.fairness.value > 0.99  # round robin


def test_a_killed_server_is_noticed_and_its_errors_are_the_balancers(tmp_path: Path) -> None:
    load = {"arrivals": "constant", "rate_per_s": 200.0, "interval_ns": 100 * MS}
    result = measured(tmp_path, 1, "dies", duration_ns=2500 * MS, **load)
    balance = result.part(Balance)
    assert balance is not None
    failovers = {one.balancer: one for one in balance.failovers}
    assert set(failovers) == {"haproxy", "nginx"}, result.invalid
    for failover in failovers.values():
        assert failover.sent == failover.completed + sum(failover.errors.values())
        assert sum(failover.errors.values()) == failover.failed
        assert failover.length_s >= 1.5
    # Checks notice it whatever the clients do.
    noticed_s = failovers["haproxy"].noticed_s
    assert noticed_s is not None
    assert noticed_s < failovers["haproxy"].length_s
