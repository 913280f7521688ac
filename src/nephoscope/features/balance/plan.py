"""The plan of `balance`: generators, load balancers and servers on the hosts of a lab."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import field
from itertools import product
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import instruments
from nephoscope.catalog.adapters.http_nginx import NONE
from nephoscope.core.errors import UsageError
from nephoscope.core.format_versions import TOPOLOGY
from nephoscope.core.records import dataclass
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds.record import TargetRecord as Target

BALANCERS = {"haproxy": instruments.LB_HAPROXY, "nginx": instruments.LB_NGINX}
DIRECT = "direct"
"""Level of the factor `balancer` at which a server answers in the balancer's place."""

BALANCER, CONNECTIONS, RATE = "balancer", "connections", "rate_per_s"
"""Factors of the plan."""

NATIVE, NGINX = "native", "nginx"
SERVERS = {
    NATIVE: instruments.HTTP_SERVE,
    NGINX: instruments.HTTP_NGINX,
    "apache": instruments.HTTP_APACHE,
}
WEB = "web"
"""Names of the servers begin with it."""

NETWORK, PORT = "10.84.0.0/24", 8080
_LB_HOST, _FIRST_SERVER, _FIRST_CLIENT = 2, 10, 100
"""Last parts of the addresses of the lab's hosts."""

MAX_SERVERS, MAX_GENERATORS = 32, 16
_SPARE_S = 30.0
_FAIL_AFTER_S, _FAIL_FOR_S, _FAILURE_TRIAL_S = 4.0, 4.0, 12.0
"""Of the servers' start; trials begin a second or two later."""
_CHECK_NS = 500_000_000
_RETRY_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class BalanceRequest:
    """Request for a measurement.

    balancers: names of BALANCERS. weights: of the servers, one each; () for equal ones.
    service_times_ns: of the servers, one each; () for none. concurrency: connections of all
    generators together. generators: numbers of generators. rate_per_s: of the open loop that
    measures latency. failure: of the first server, see `http.nginx`. url: a balancer that runs
    already; then targets are its generators.
    """

    balancers: tuple[str, ...] = ("haproxy", "nginx")
    servers: int = 3
    server: str = NATIVE
    weights: tuple[int, ...] = ()
    service_times_ns: tuple[int, ...] = ()
    generators: tuple[int, ...] = (1,)
    concurrency: tuple[int, ...] = (10, 50, 100)
    rate_per_s: float = 500.0
    algorithms: tuple[str, ...] = ("round_robin",)
    server_keep_alive: tuple[bool, ...] = (True,)
    client_keep_alive: bool = True
    server_connections: int = 0
    slow_start_ns: int = 0
    failure: str = NONE
    trial_s: float = 2.0
    rounds: int = 10
    url: str = ""
    targets: tuple[Target, ...] = ()
    authorised_hosts: tuple[str, ...] = ()
    params: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None


def plan_balance(request: BalanceRequest) -> Plan:
    """Returns the plan; UsageError for what makes no sense, PlanError for a wrong parameter."""
    _check(request)
    values: dict[str, Any] = {
        "name": "balance" if request.failure == NONE else f"balance-{request.failure}",
        "question": "What does a load balancer deliver, and what does it add to the response time?"
        if request.failure == NONE
        else f"What do clients see while a server behind a load balancer {request.failure}?",
        "repeat": {"min": request.rounds, "max": request.rounds},
        "warmup": 0,
        # Added response times count from the moment at which a request left.
        "accept": ["throttled", "late_sends"],
        # Reading a log and ending every server takes longer than stopping a load.
        "phases": {"start": "30s", "stop": "30s"},
    }
    if request.seed is not None:
        values["seed"] = request.seed
    if request.url:
        names = [f"generator-{n}" for n in range(1, len(request.targets) + 1)]
        values["targets"] = [
            {**target.model_dump(by_alias=True, exclude_none=True), "name": name, "roles": []}
            for target, name in zip(request.targets, names, strict=True)
        ]
        values["benchmarks"] = _entries(request, request.url, names)
    else:
        values |= _lab(request)
    return from_values(values, catalog.load(), lambda _: "")


def _check(request: BalanceRequest) -> None:
    if not 1 <= request.servers <= MAX_SERVERS:
        raise UsageError(f"{request.servers} servers are out of range.", f"Use 1 to {MAX_SERVERS}.")
    for name, values in (("weights", request.weights), ("service times", request.service_times_ns)):
        if values and len(values) != request.servers:
            raise UsageError(
                f"There are {len(values)} {name} for {request.servers} servers.",
                "Give as many as servers.",
            )
    for name, numbers, most in (
        ("generators", request.generators, MAX_GENERATORS),
        ("concurrency", request.concurrency, 50_000),
    ):
        if not numbers or any(not 1 <= number <= most for number in numbers):
            raise UsageError(f"The list of {name} is wrong.", f"Use numbers from 1 to {most:,}.")
        if len(set(numbers)) < len(numbers):
            raise UsageError(f"The list of {name} has a number twice.", "Name each one once.")
    _check_shares(request)


def _check_shares(request: BalanceRequest) -> None:
    uneven = [c for c, k in product(request.concurrency, request.generators) if c % k]
    if uneven:
        raise UsageError(
            f"{uneven[0]} connections cannot be shared evenly by the generators.",
            f"Use multiples of {max(request.generators)}.",
        )
    if request.service_times_ns and request.server != NATIVE:
        raise UsageError("Service times need native servers.", "Use --server native.")
    if request.slow_start_ns and "nginx" in request.balancers:
        raise UsageError("The free nginx has no slow start.", "Use --balancer haproxy.")
    if request.failure != NONE and (request.servers < 2 or request.url):
        raise UsageError(
            "A failure needs a lab with two servers or more.", "Omit --url, and use --servers 2."
        )


def variants(request: BalanceRequest) -> dict[str, dict[str, Any]]:
    """Returns the backgrounds that balance, by name, with the parameters in which they differ."""
    by_name: dict[str, dict[str, Any]] = {}
    for balancer, algorithm, keep_alive in product(
        request.balancers, request.algorithms, request.server_keep_alive
    ):
        parts = [balancer]
        parts += [algorithm.replace("_", "-")] if len(request.algorithms) > 1 else []
        parts += ["close"] if len(request.server_keep_alive) > 1 and not keep_alive else []
        params: dict[str, Any] = {"algorithm": algorithm, "server_keep_alive": keep_alive}
        if balancer == "haproxy":
            params["slow_start_ns"] = request.slow_start_ns
            params["check_ns"] = (
                _CHECK_NS if request.failure != NONE or request.slow_start_ns else 0
            )
        elif request.failure != NONE:
            params["retry_after_ns"] = _RETRY_NS
        by_name["-".join(parts)] = {"benchmark": BALANCERS[balancer], "params": params}
    return by_name


def _address(last: int) -> str:
    return f"{NETWORK.rsplit('.', 1)[0]}.{last}"


def _lab(request: BalanceRequest) -> dict[str, Any]:
    """Targets, topology, backgrounds, factors and benchmarks of a lab."""
    webs = [f"{WEB}{n}" for n in range(1, request.servers + 1)]
    clients = [f"client{n}" for n in range(1, max(request.generators) + 1)]
    addresses = {
        **{name: _address(_FIRST_SERVER + n) for n, name in enumerate(webs)},
        **{name: _address(_FIRST_CLIENT + n) for n, name in enumerate(clients)},
        BALANCER: _address(_LB_HOST),
    }
    lab: dict[str, Any] = {
        "version": TOPOLOGY.version,
        "network": NETWORK,
        "hosts": {name: {"address": address} for name, address in addresses.items()},
        "switches": {"lan": {}},
        "links": {f"{name}-port": {"between": [name, "lan"]} for name in addresses},
    }
    balancing = variants(request)
    servers = [
        f"{addresses[name]}:{PORT} {weight}"
        for name, weight in zip(webs, request.weights or (1,) * len(webs), strict=True)
    ]
    backgrounds = [_server(request, name, addresses[name], n) for n, name in enumerate(webs)]
    backgrounds += [
        {
            "name": name,
            "benchmark": variant["benchmark"],
            "on": BALANCER,
            "params": {
                "address": addresses[BALANCER],
                "port": PORT,
                "backends": servers,
                "connections": max(1024, 4 * max(request.concurrency)),
                "server_connections": request.server_connections,
                **variant["params"],
            },
        }
        for name, variant in balancing.items()
    ]
    levels = [[name, *webs] for name in balancing]
    path = "/service" if request.service_times_ns else "/"
    url = f"http://{addresses[BALANCER]}:{PORT}{path}"
    entries = _entries(request, url, clients)
    for entry in entries:
        entry["params"] = {**entry["params"], "authorised_hosts": [addresses[BALANCER]]}
    values: dict[str, Any] = {
        "lab": lab,
        "targets": [{"name": name, "kind": "lab"} for name in addresses],
        "backgrounds": backgrounds,
        "factors": {BALANCER: {"path": "backgrounds", "levels": levels}},
        "benchmarks": entries,
    }
    if request.failure == NONE:
        backgrounds.append({**_server(request, DIRECT, addresses[BALANCER], 0), "on": BALANCER})
        for entry in entries:
            entry["served_by"] = [*webs, DIRECT]
        params = {"rate_per_s": 200.0, "duration_ns": "1s"}
        network = {
            "benchmark": instruments.NET_RTT,
            "on": clients[0],
            "peer": BALANCER,
            "params": params,
        }
        entries.append(network)
        # The network is measured once a round.
        excluded = [{"benchmark": instruments.NET_RTT, BALANCER: level} for level in levels]
        values["design"] = {"exclude": excluded}
        levels.insert(0, [DIRECT])
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    lab["name"] = f"bal-{digest[:8]}"
    return values


def _server(request: BalanceRequest, name: str, address: str, number: int) -> dict[str, Any]:
    params: dict[str, Any] = {"address": address, "port": PORT, "body_bytes": 166}
    kind = NGINX if request.failure != NONE else request.server
    if request.service_times_ns:
        params["service_mean_ns"] = request.service_times_ns[number]
    if request.failure != NONE and number == 0:
        params["failure"] = request.failure
        params["fail_after_ns"] = round(_FAIL_AFTER_S * 1e9)
        params["fail_for_ns"] = round(_FAIL_FOR_S * 1e9)
    return {"name": name, "benchmark": SERVERS[kind], "on": name, "params": params}


def _entries(request: BalanceRequest, url: str, clients: Sequence[str]) -> list[dict[str, Any]]:
    """Closed loops of each number of generators, and an open loop of one."""
    trial_s = request.trial_s if request.failure == NONE else _FAILURE_TRIAL_S
    common = {
        "url": url,
        "duration_ns": round(trial_s * 1e9),
        "keep_alive": request.client_keep_alive,
        "authorised_hosts": list(request.authorised_hosts),
        **request.params,
    }
    entry = {"benchmark": instruments.HTTP_LOAD, "timeout": trial_s + _SPARE_S}
    constant = {**common, "arrivals": "constant", "connections": 50, "interval_ns": "100ms"}
    rates = {RATE: [request.rate_per_s]}
    open_loop = {**entry, "on": clients[0], "params": constant, "factors": rates}
    if request.failure != NONE:
        constant |= {"connections": 200, "warmup_ns": 0, "timeout_ns": "5s"}
        return [open_loop]
    closed_loops = [
        {
            **entry,
            "on": list(clients[:number]),
            "together": number > 1,
            "params": common,
            "factors": {CONNECTIONS: [c // number for c in request.concurrency]},
        }
        for number in request.generators
    ]
    return [*closed_loops, open_loop]
