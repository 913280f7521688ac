"""Bitcurrent's four tests of services: the plan, and its results by test and service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from nephoscope import catalog
from nephoscope.catalog.instruments import HTTP_LOAD
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate, RunResult
from nephoscope.core.reading import yamltext
from nephoscope.core.records import dataclass
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.plans.server_address import SERVICE_URL
from nephoscope.measure.targets.kinds.record import TargetRecord, as_name
from nephoscope.measure.targets.kinds.service import ServiceRecord

TESTS = ("pixel", "image", "cpu", "io")
"""The tests, in the order of the built-in plan."""

_METRIC = "latency_p50_ns"
_FILE = "builtin/bitcurrent.yaml"


@dataclass(frozen=True, slots=True)
class FourTestsRequest:
    """What is tested. paths: test -> path on every service, where it is not the built-in one."""

    services: Sequence[ServiceRecord]
    clients: Sequence[TargetRecord]
    paths: Mapping[str, str]
    rounds: int
    duration_s: float
    seed: int | None = None
    budget_s: float | None = None


@dataclass(frozen=True, slots=True)
class TestLatency:
    """Median latency of one test, with its interval; None where there is none."""

    test: str
    service: str
    client: str
    path: str
    latency: Estimate | None


def service_of(text: str, authorised_hosts: Sequence[str]) -> ServiceRecord:
    """Returns the service of NAME=URL or URL. Raises UsageError."""
    name, equals, url = text.partition("=")
    if not equals or "://" in name:
        name, url = "", text
    record = ServiceRecord.from_text(url)
    if record is None or record.parts.scheme not in ("http", "https"):
        raise UsageError(
            f"'{text}' names no service with a web address.", "Write NAME=https://HOST/."
        )
    hosts = tuple(authorised_hosts)
    if not record.may_be_loaded(hosts):
        raise UsageError(
            f"{record.host} is not this machine, and load could disturb its owner.",
            f"If it is yours, add `--i-own-this-host {record.host}`.",
        )
    return record.model_copy(
        update={"name": as_name(name or record.name), "authorised_hosts": hosts}
    )


def plan_of(request: FourTestsRequest) -> Plan:
    """Returns the plan: each test on each service from each client, in random order.

    Raises PlanError, for a host that nobody authorised among others.
    """
    text = resources.files("nephoscope.measure.plans").joinpath(_FILE).read_text(encoding="utf-8")
    values: dict[str, Any] = yamltext.parse(text, _FILE)
    entries = []
    for client in request.clients:
        for test, entry in zip(TESTS, values["benchmarks"], strict=True):
            params = {**entry["params"], "duration_ns": round(request.duration_s * 1e9)}
            if path := request.paths.get(test):
                params["url"] = f"{SERVICE_URL}/{path.removeprefix('/')}"
            names = [service.name for service in request.services]
            entries.append({**entry, "params": params, "on": names, "client": client.name})
    values |= {
        "targets": [*request.clients, *request.services],
        "benchmarks": entries,
        "repeat": {"min": request.rounds, "max": request.rounds},
    }
    if len(request.services) > 1:
        values["design"] = {"baseline": {"target": request.services[0].name}}
    if request.seed is not None:
        values["seed"] = request.seed
    if request.budget_s is not None:
        values["budget"] = request.budget_s
    return from_values(values, catalog.load(), lambda _: "")


def latencies(result: RunResult, request: FourTestsRequest) -> list[TestLatency]:
    """Returns the median latency of each test on each service, in the order of the plan."""
    plan = plan_of(request)
    rows = []
    for number, entry in enumerate(plan.benchmarks):
        url = str(entry.params["url"])
        for service in request.services:
            estimates = [
                line.estimate
                for line in result.metrics
                if (line.benchmark, line.metric, line.target) == (HTTP_LOAD, _METRIC, service.name)
                and line.factors.get("url", url) == url
                and line.factors.get("client", entry.client) == entry.client
            ]
            test = TESTS[number % len(TESTS)]
            path = url.removeprefix(SERVICE_URL)
            estimate = estimates[0] if estimates else None
            rows.append(TestLatency(test, service.name, entry.client, path, estimate))
    return rows
