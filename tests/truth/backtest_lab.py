"""Deployments that exist twice: run in a lab with real servers and users, and simulated.

Each is one table of latencies, service times and rates, from which both the lab's topology and the
simulator's scenario are made; nothing is fitted to what was measured.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nephoscope.core import programs
from nephoscope.measure.lab import files
from nephoscope.measure.lab.handle import Lab
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.provisioner import LABS

HTTP = Path(__file__).with_name("backtest_http.py")
PORT = 8080
WARM_S = 3.0
"""Seconds of the lab that are not counted: a line of requests has filled by then."""


@dataclass(frozen=True)
class Web:
    """A site: equal instances that take requests in turn."""

    instances: int
    service_ms: float
    discipline: str = "fifo"


@dataclass(frozen=True)
class Deployment:
    """latency_ms: region -> site -> one way. rates: region -> requests (pages) a second.

    seconds: how long it is measured, so that chance alone leaves at most 2.5 % of a statistic."""

    name: str
    sites: Mapping[str, Web]
    latency_ms: Mapping[str, Mapping[str, float]]
    rates: Mapping[str, float]
    request_bytes: int = 300
    response_bytes: int = 1000
    page: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 40.0

    def asks(self, region: str) -> str:
        """The site of least latency."""
        row = self.latency_ms[region]
        return min(row, key=lambda site: row[site])


# A service and a way take so long that what the users' and the servers' own programs add on a slow
# machine, 3 to 5 ms a request with both CPUs crowded by strangers, is far below the bound.
ONE_SITE = Deployment(
    name="one site",
    sites={"virginia": Web(2, 20.0)},
    latency_ms={"us": {"virginia": 30}, "eu": {"virginia": 90}, "asia": {"virginia": 180}},
    rates={"us": 15.0, "eu": 10.0, "asia": 7.5},
)
TWO_BUSY_SITES = Deployment(
    name="two busy sites",
    sites={"virginia": Web(1, 20.0, "sharing"), "ireland": Web(1, 24.0)},
    latency_ms={
        "us": {"virginia": 40, "ireland": 90},
        "eu": {"virginia": 90, "ireland": 30},
        "asia": {"virginia": 200, "ireland": 140},
    },
    rates={"us": 25.0, "eu": 15.0, "asia": 7.5},
    # At half load the lines of a busy site last: over 40 simulated seconds a region's p95 has a
    # standard deviation of 5.5 % (60 seeds), over 100 of 3.6 %. The other two stay below 2 % in 40.
    seconds=240.0,
)
PAGES = Deployment(
    name="pages",
    sites={"virginia": Web(2, 8.0), "ireland": Web(2, 8.0)},
    latency_ms={
        "us": {"virginia": 40, "ireland": 90},
        "eu": {"virginia": 90, "ireland": 30},
        "asia": {"virginia": 200, "ireland": 140},
    },
    rates={"us": 4.0, "eu": 3.0, "asia": 2.0},
    page={
        "document_bytes": 50_000,
        "objects": 8,
        "object_bytes": 20_000,
        "request_bytes": 300,
        "connections": 4,
        "tls": "none",
    },
)
DEPLOYMENTS = (ONE_SITE, TWO_BUSY_SITES, PAGES)


@dataclass(frozen=True)
class Seen:
    """Response times of a region in ms."""

    mean_ms: float
    p95_ms: float
    n: int


def quantile(pairs: list[tuple[float, int]], q: float) -> float:
    """The least value that a part q of (value, count) does not exceed."""
    total, seen = sum(count for _, count in pairs), 0
    for value, count in sorted(pairs):
        seen += count
        if seen >= math.ceil(q * total):
            return value
    raise ValueError("no value, no quantile")


def seen_of(pairs: list[tuple[float, int]]) -> Seen:
    """Statistics of (value in ms, count)."""
    n = sum(count for _, count in pairs)
    mean = sum(value * count for value, count in pairs) / n
    return Seen(mean, quantile(pairs, 0.95), n)


def topology(name: str, network: str, deployment: Deployment) -> Any:
    """A host for each region's users and for each site, as far apart as the table says."""
    places = [*deployment.latency_ms, *deployment.sites]
    # Between places that never talk to each other the delay is of no account.
    latency: dict[str, dict[str, str]] = {
        a: dict.fromkeys(places[number + 1 :], "50ms") for number, a in enumerate(places[:-1])
    }
    for region, row in deployment.latency_ms.items():
        for site, one_way_ms in row.items():
            latency[region][site] = f"{one_way_ms}ms"
    return files.from_values(
        {
            "name": name,
            "network": network,
            "hosts": {host(place): {} for place in places},
            "geo": {"sites": {place: [host(place)] for place in places}, "latency": latency},
        }
    )


def host(place: str) -> str:
    """A host is not called as its place: that is the switch's name."""
    return f"{place}-1"


def start(lab: Lab, place: str, verb: str, params: Mapping[str, Any]) -> subprocess.Popen[str]:
    """Server or users inside a host."""
    words = [*lab.hosts[host(place)].enter(), sys.executable, str(HTTP), verb, json.dumps(params)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def serve(lab: Lab, deployment: Deployment, place: str) -> subprocess.Popen[str]:
    """A site that is ready."""
    web = deployment.sites[place]
    server = start(
        lab,
        place,
        "serve",
        {
            "address": lab.hosts[host(place)].address,
            "port": PORT,
            "service_ms": web.service_ms,
            "instances": web.instances,
            "discipline": web.discipline,
        },
    )
    assert server.stdout is not None
    assert json.loads(server.stdout.readline()) == {"ready": True}
    return server


def ask(
    lab: Lab, deployment: Deployment, region: str, seconds: float, seed: int
) -> subprocess.Popen[str]:
    """The users of a region, at work."""
    rate = deployment.rates[region]
    return start(
        lab,
        region,
        "load",
        {
            "address": lab.hosts[host(deployment.asks(region))].address,
            "port": PORT,
            "rate_per_s": rate,
            "seconds": WARM_S + seconds,
            "warm_s": WARM_S,
            "seed": f"{seed} {region}",
            "request_bytes": deployment.request_bytes,
            "response_bytes": deployment.response_bytes,
            # Enough for what is on its way at once, many times over: nobody waits for a connection.
            "connections": 20 + int(rate),
            "page": dict(deployment.page),
        },
    )


async def measured(
    deployment: Deployment, name: str, network: str, seconds: float, seed: int
) -> dict[str, Seen]:
    """The deployment run in a lab: what each region saw."""
    lab = await LABS.create(topology(name, network, deployment), say=lambda line: None)
    running: list[subprocess.Popen[str]] = []
    try:
        # Only the lab's own hosts are to be measured: it goes before the machine's other work.
        cgroups.favour(name)
        for site in deployment.sites:
            running.append(serve(lab, deployment, site))
        users = {}
        for region in deployment.rates:
            users[region] = ask(lab, deployment, region, seconds, seed)
            running.append(users[region])
        found = {}
        for region, process in users.items():
            out, _ = process.communicate(timeout=seconds + WARM_S + 60)
            if process.returncode != 0:
                raise RuntimeError(f"the users of {region} ended with {process.returncode}")
            found[region] = seen_of([(value, 1) for value in json.loads(out)["response_ms"]])
        return found
    finally:
        for process in running:
            process.kill()
            # Waits, and closes what it was read from.
            process.communicate()
        await LABS.remove(name)


def measure(
    deployment: Deployment, name: str, network: str, seconds: float, seed: int
) -> dict[str, Seen]:
    """As `measured`, for those who do not wait."""
    return asyncio.run(measured(deployment, name, network, seconds, seed))


SPEED = 1000.0
"""Instructions a millisecond of the simulated processors: a unit, no more."""


def scenario(deployment: Deployment, hours: float = 1.0) -> dict[str, Any]:
    """The same deployment for the simulator: no variation but that of the arrivals."""
    longest_ms = max(web.service_ms for web in deployment.sites.values())
    base: dict[str, Any] = {
        "request_bytes": deployment.request_bytes,
        "response_bytes": deployment.response_bytes,
    }
    if deployment.page:
        base["page"] = dict(deployment.page)
    return {
        "version": 1,
        "name": deployment.name,
        "duration_h": hours,
        "user_bases": {
            region: {
                **base,
                "users": {"by_hour": [round(3600 * rate)] * 24},
                "requests_per_user_h": 1.0,
            }
            for region, rate in deployment.rates.items()
        },
        "sites": {
            site: {
                "hosts": 1,
                "processors": web.instances,
                "instances": web.instances,
                # All requests are as long; a site of shorter service has faster processors.
                "speed": SPEED * longest_ms / web.service_ms,
                "discipline": web.discipline,
            }
            for site, web in deployment.sites.items()
        },
        "latency": {"matrix": {key: dict(row) for key, row in deployment.latency_ms.items()}},
        "instructions": SPEED * longest_ms,
        "variation": {"latency": 0.0, "bandwidth": 0.0, "users": 0.0},
        "broker": "closest",
        "balancer": "round_robin",
    }


def simulated(deployment: Deployment, seed: int = 1) -> dict[str, Seen]:
    """What each region sees in an hour of the simulated deployment."""
    program = programs.find("nephoscope-sim", "NEPHOSCOPE_SIM")
    params = {"scenario": json.dumps(scenario(deployment)), "seed": seed}
    words = [str(program), "run", "sim.geo", "--params", json.dumps(params)]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    pairs: dict[str, list[tuple[float, int]]] = {region: [] for region in deployment.rates}
    for line in map(json.loads, out.splitlines()):
        factors = line.get("factors", {})
        if line.get("metric") == "response_time_ns" and set(factors) == {"region"}:
            pairs[factors["region"]].append((line["value"] / 1e6, line["count"]))
    return {region: seen_of(found) for region, found in pairs.items()}


@dataclass(frozen=True)
class Row:
    """One region, lab beside simulation; the ratios are of the lab over the simulation."""

    deployment: str
    region: str
    lab: Seen
    sim: Seen

    @property
    def mean_ratio(self) -> float:
        return self.lab.mean_ms / self.sim.mean_ms

    @property
    def p95_ratio(self) -> float:
        return self.lab.p95_ms / self.sim.p95_ms

    def text(self) -> str:
        """One line for people."""
        return (
            f"{self.deployment}, {self.region}: mean {self.lab.mean_ms:.1f} ms, simulated "
            f"{self.sim.mean_ms:.1f} ({self.mean_ratio:.3f}); p95 {self.lab.p95_ms:.1f}, "
            f"simulated {self.sim.p95_ms:.1f} ({self.p95_ratio:.3f}); n {self.lab.n}"
        )


def compare(deployment: Deployment, lab: Mapping[str, Seen], sim: Mapping[str, Seen]) -> list[Row]:
    """Region by region."""
    return [Row(deployment.name, region, lab[region], sim[region]) for region in deployment.rates]
