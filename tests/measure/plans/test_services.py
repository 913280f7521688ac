"""Services in plans: what is refused, what a benchmark gets of them, what they cost."""

from __future__ import annotations

from typing import Any

import pytest
from tests.measure.runs.test_progress import record

from nephoscope import catalog
from nephoscope.core.errors import PlanError
from nephoscope.core.model import TrialKey
from nephoscope.measure.plans import estimate, expand, refuse_too_long, with_service
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan, Repeat
from nephoscope.measure.runs.schedule.progress import Progress
from nephoscope.measure.targets.kinds import parse, read
from nephoscope.measure.targets.kinds.service import ServiceRecord

KNOWN = catalog.load()
HTTP = {"url": "http://127.0.0.1:80/"}
OWN = {"authorised_hosts": ["shop.example"]}


def service(**keys: Any) -> dict[str, Any]:
    return {"name": "front", "kind": "service", **keys}


def plan(keys: dict[str, Any], entry: dict[str, Any], **more: Any) -> Plan:
    targets = [{"name": "here"}, service(**keys)]
    values = {"name": "p", "targets": targets, "benchmarks": [entry], **more}
    return from_values(values, KNOWN, lambda loc: f"{'.'.join(map(str, loc))}: ")


LOAD = {"benchmark": "http.load", "client": "here", "on": "front"}

REFUSED = {
    "unknown product": ({**HTTP, "product": "ballancer"}, LOAD, "'balancer', 'object store'"),
    "no URL": ({}, LOAD, "is of kind service and has no URL"),
    "another scheme": ({"url": "ftp://a.example/"}, LOAD, "begins with none of http://"),
    "no host": ({"url": "http:///a"}, LOAD, "without a host"),
    "a bad port": ({"url": "http://a.example:http/"}, LOAD, "is not valid"),
    "tcp without a port": ({"url": "tcp://127.0.0.1"}, LOAD, r"Write tcp://HOST:PORT"),
    "a secret": ({"url": "https://me:pw@a.example/"}, LOAD, "has a login in it"),
    "a directory of no device": ({"url": "file:///mnt"}, LOAD, "a block device, and nothing else"),
    "a device on the web": ({**HTTP, "product": "block device"}, LOAD, "at file:///DIRECTORY"),
    "somebody else's": ({"url": "https://shop.example/"}, LOAD, "load could disturb its owner"),
    "another host authorised": (
        {"url": "https://www.shop.example/", **OWN},
        LOAD,
        r"add `authorised_hosts: \[www.shop.example\]`",
    ),
    "a program on it": (HTTP, {"benchmark": "cpu.pi", "on": "front"}, "cannot be started on it"),
    "it as client": (HTTP, {**LOAD, "client": "front", "on": "here"}, "cannot be started on it"),
    "it as peer": (
        HTTP,
        {"benchmark": "net.throughput", "on": "here", "peer": "front"},
        "cannot be started on it",
    ),
    "a server on it": (HTTP, {**LOAD, "benchmark": "wrk"}, "starts the server that it measures"),
    "nothing to fill": (HTTP, {**LOAD, "benchmark": "cpu.pi"}, "no parameter that the address"),
    "a URL of no service": (
        HTTP,
        {**LOAD, "on": ["front", "here"], "client": "here", "params": {"url": "{url}/a"}},
        "'here' is no service",
    ),
    "a price without a bound": ({**HTTP, "per_request": 0.1}, LOAD, "do not bound their number"),
    "bytes without a bound": ({**HTTP, "per_gib": 0.1}, LOAD, "do not bound their number"),
}


@pytest.mark.parametrize("case", REFUSED, ids=REFUSED)
def test_a_service_that_cannot_be_measured_so_is_one_sentence(case: str) -> None:
    keys, entry, words = REFUSED[case]
    with pytest.raises(PlanError, match=words) as caught:
        plan(keys, entry)
    assert caught.value.hint or "." in str(caught.value)
    assert "pw@" not in str(caught.value)


def test_a_hook_and_a_load_need_a_machine() -> None:
    with pytest.raises(PlanError, match=r"before\.0\.benchmark: 'front' is a service"):
        plan(HTTP, LOAD, before=[{"benchmark": "cpu.pi"}])
    with pytest.raises(PlanError, match=r"after\.0\.on: 'front' is a service"):
        plan(HTTP, LOAD, after=[{"benchmark": "cpu.pi", "on": "front"}])
    plan(HTTP, LOAD, before=[{"benchmark": "cpu.pi", "on": "here"}])
    with pytest.raises(PlanError, match="cannot be started on it"):
        plan(HTTP, LOAD, backgrounds=[{"name": "b", "benchmark": "load.cpu", "on": "front"}])


def test_what_names_no_target_runs_on_machines_and_is_of_services() -> None:
    both = plan(HTTP, {"benchmark": "cpu.pi"})
    assert [setting.targets for setting in expand(both, KNOWN)] == [("here",)]
    loaded = plan(HTTP, {"benchmark": "http.load", "client": "here"})
    (setting,) = expand(loaded, KNOWN)
    assert (setting.targets, setting.client, setting.peer) == (("front",), "here", "")


@pytest.mark.parametrize(
    "keys",
    [
        HTTP,
        {"url": "http://localhost/"},
        {"url": "http://[::1]:8080/"},
        {"url": "https://shop.example/", **OWN},
        {"url": "https://SHOP.example./", **OWN},
    ],
)
def test_ones_own_service_may_be_loaded(keys: dict[str, Any]) -> None:
    assert plan(keys, LOAD).targets[1].name == "front"


def test_the_benchmark_may_name_the_host_as_for_load() -> None:
    plan({"url": "https://shop.example/"}, {**LOAD, "params": OWN})


FILLED = {
    "http.load": (
        {"url": "https://shop.example/a/", **OWN},
        {},
        {"url": "https://shop.example/a/", "authorised_hosts": ["shop.example"]},
    ),
    "http.load at a path": (
        {"url": "https://shop.example/a/", **OWN},
        {"url": "{url}/b?c={server}"},
        {"url": "https://shop.example/a/b?c=shop.example", "authorised_hosts": ["shop.example"]},
    ),
    "http.load of IPv6": (
        {"url": "http://[::1]:81/"},
        {"url": "http://{server}:82/"},
        {"url": "http://[::1]:82/", "authorised_hosts": []},
    ),
    "kv.load": (
        {"url": "memcached://shop.example", "product": "key-value store", **OWN},
        {},
        {
            "host": "shop.example",
            "port": 11211,
            "protocol": "memcached",
            "authorised_hosts": ["shop.example"],
        },
    ),
    "net.rtt": (
        {"url": "tcp://shop.example:5432", "product": "database", **OWN},
        {"protocol": "tcp"},
        {
            "protocol": "tcp",
            "host": "shop.example",
            "port": 5432,
            "authorised_hosts": ["shop.example"],
        },
    ),
    "storage.transfer": (
        {
            "url": "http://127.0.0.1:9000",
            "product": "object store",
            "bucket": "b",
            "region": "eu-1",
        },
        {"objects": 2},
        {
            "service": "s3",
            "endpoint": "http://127.0.0.1:9000",
            "bucket": "b",
            "region": "eu-1",
            "objects": 2,
            "authorised_hosts": [],
        },
    ),
    "disk.io": (
        {"url": "file:///mnt/my%20volume", "product": "block device"},
        {},
        {"directory": "/mnt/my volume"},
    ),
}


@pytest.mark.parametrize("case", FILLED, ids=FILLED)
def test_a_benchmark_gets_the_address_of_the_service(case: str) -> None:
    keys, params, filled = FILLED[case]
    benchmark = case.partition(" ")[0]
    record = read(service(**keys))
    assert isinstance(record, ServiceRecord)
    assert with_service(params, KNOWN.benchmark(benchmark), record) == filled
    plan(keys, {"benchmark": benchmark, "client": "here", "on": "front", "params": params})


def test_a_service_is_written_as_a_target() -> None:
    record = parse("service:https://Shop.example/a")
    assert isinstance(record, ServiceRecord)
    assert (record.name, record.url) == ("shop-example", "https://Shop.example/a")
    assert parse("service:file:///mnt/a") == read(
        {"name": "volume", "kind": "service", "product": "block device", "url": "file:///mnt/a"}
    )


OPEN = {**LOAD, "params": {"arrivals": "constant", "rate_per_s": 100, "duration_ns": "800ms"}}
PRICED = {**HTTP, "per_hour": 0.0, "per_request": 0.001}
ROUNDS: dict[str, Any] = {"repeat": {"min": 4, "max": 9}, "warmup": 1}


def priced(limit: float, keys: dict[str, Any] = PRICED, entry: dict[str, Any] = OPEN) -> Plan:
    targets = [{"name": "here", "per_hour": 0}, service(**keys)]
    values = {"name": "p", "targets": targets, "benchmarks": [entry], "money": {"limit": limit}}
    return from_values({**values, **ROUNDS}, KNOWN, lambda _: "")


def test_requests_and_bytes_are_in_the_estimate_and_the_limit() -> None:
    # 100 a second for 1 s with the warm-up, and six standard deviations: 160 requests a trial.
    made = priced(10)
    found = estimate(made, expand(made, KNOWN), KNOWN)
    assert (found.money_least, found.money_most) == (
        pytest.approx(5 * 0.160),
        pytest.approx(10 * 0.160),
    )
    small = priced(0.5)
    with pytest.raises(
        PlanError, match=r"costs 0.80 USD, more than the limit of 0.5.*for requests"
    ):
        refuse_too_long(small, estimate(small, expand(small, KNOWN), KNOWN))
    closed = priced(10, {**PRICED, "per_gib": 0.5, "requests_per_s": 50, "gib_per_s": 0.1}, LOAD)
    found = estimate(closed, expand(closed, KNOWN), KNOWN)
    assert found.money_least == pytest.approx(5 * 1.2 * (50 * 0.001 + 0.1 * 0.5))
    sized = {**OPEN, "params": {**OPEN["params"], "expected_body_bytes": "1GiB"}}
    made = priced(1e6, {**HTTP, "per_gib": 0.5}, sized)
    found = estimate(made, expand(made, KNOWN), KNOWN)
    assert found.money_least == pytest.approx(5 * 160 * 0.5)


def test_objects_are_priced_by_their_five_passes() -> None:
    store = {"url": "http://127.0.0.1:9000", "product": "object store", "per_gib": 2.0}
    entry = {"benchmark": "storage.transfer", "client": "here", "on": "front"}
    entry["params"] = {"object_bytes": ["1GiB"], "objects": 3, "clients": 2}
    made = priced(1e6, store, entry)
    found = estimate(made, expand(made, KNOWN), KNOWN)
    assert found.money_least == pytest.approx(5 * 5 * 6 * 2.0)


def test_a_run_ends_before_the_round_that_would_cost_too_much() -> None:
    made = priced(1.0)
    made = made.model_copy(update={"repeat": Repeat(min=9, max=9)})
    settings = expand(made, KNOWN)
    progress = Progress(made, settings, {"http.load": KNOWN.benchmark("http.load")})
    rounds = 0
    for number in (0, *range(1, 20)):
        pairs = progress.begin_round(number)
        for index, target in pairs:
            progress.add(record(TrialKey(number, index, target)), [])
        rounds += len(pairs)
        progress.end_round()
    # Six trials of 0.16 are below 1 USD, and a seventh is not.
    assert rounds == 6
    (outcome,) = progress.outcomes()
    assert "the budget of 1.00 USD allowed n = 5 of 9" in outcome.reason
