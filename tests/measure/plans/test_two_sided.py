"""Clients and servers of two-sided benchmarks: who serves whom, and what tells results apart."""

from __future__ import annotations

from typing import Any

import pytest

from nephoscope import catalog
from nephoscope.core.errors import PlanError
from nephoscope.core.model import SELF, Setting
from nephoscope.measure import plans
from nephoscope.measure.plans import expand
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.server_address import with_server_address
from nephoscope.measure.targets.kinds import parse

SSH = [{"name": name, "kind": "ssh", "address": name} for name in ("vm1", "vm2", "vm3", "gen")]


def settings_of(*entries: dict[str, Any], **more: Any) -> list[Setting]:
    known = catalog.load()
    values = {"name": "p", "targets": SSH, "benchmarks": list(entries), **more}
    plan = from_values(values, known, lambda loc: f"{'.'.join(map(str, loc))}: ")
    return expand(plan, known)


def trials_of(settings: list[Setting]) -> list[tuple[str, str, str]]:
    """Target, client and server of each trial of a round."""
    return [
        (name, one.client_of(name), one.server_of(name)) for one in settings for name in one.targets
    ]


def test_the_setting_of_every_two_sided_benchmark_is_the_same_on_each_system() -> None:
    known = catalog.load()
    two_sided = [spec.id for spec in known.benchmarks.values() if spec.two_sided]
    assert len(two_sided) > 20
    compared = [parse("ssh:vm1"), parse("ssh:vm2")]
    for benchmark in two_sided:
        alone = plans.single(benchmark, targets=compared, peer=None)
        asked = plans.single(benchmark, targets=compared, client=parse("ssh:gen"))
        (own,), (served,) = expand(alone, known), expand(asked, known)
        assert own.factors == served.factors == {}, benchmark
        if known.benchmark(benchmark).needs_peer:
            assert trials_of([own]) == [("vm1", "vm1", "vm1"), ("vm2", "vm2", "vm2")], benchmark
        assert trials_of([served]) == [("vm1", "gen", "vm1"), ("vm2", "gen", "vm2")], benchmark
        assert served.baseline == {"vm2": (0, "vm1")}, benchmark


def test_targets_that_are_their_own_peers_have_one_identity_however_it_is_written() -> None:
    by_name = settings_of(
        {"benchmark": "db.pgbench", "on": "vm1", "peer": "vm1"},
        {"benchmark": "db.pgbench", "on": "vm2", "peer": "vm2"},
    )
    assert [one.factors for one in by_name] == [{}, {}]
    assert trials_of(by_name) == [("vm1", "vm1", "vm1"), ("vm2", "vm2", "vm2")]
    assert trials_of(settings_of({"benchmark": "db.pgbench", "peer": SELF}))[0] == ("vm1",) * 3
    role = [*SSH[:3], {**SSH[3], "roles": [SELF]}]
    named = settings_of({"benchmark": "db.pgbench", "peer": SELF}, targets=role)
    assert trials_of(named)[0] == ("vm1", "vm1", "gen"), "a role of that name is meant"


def test_the_servers_of_a_client_are_by_default_the_other_targets() -> None:
    expected = [(name, "gen", name) for name in ("vm1", "vm2", "vm3")]
    assert trials_of(settings_of({"benchmark": "ab", "client": "gen"})) == expected
    roles = {"vm1": "server", "vm2": "server", "vm3": "aggressor", "gen": "client"}
    targets = [{**target, "roles": [roles[str(target["name"])]]} for target in SSH]
    by_role = settings_of({"benchmark": "ab", "client": "client"}, targets=targets)
    assert trials_of(by_role) == expected[:2]


def test_two_clients_of_the_same_servers_are_levels_of_a_factor() -> None:
    found = settings_of(
        {"benchmark": "ab", "client": "gen", "on": "vm1"},
        {"benchmark": "ab", "client": "vm3", "on": "vm1"},
    )
    assert [one.factors for one in found] == [{"client": "gen"}, {"client": "vm3"}]


def test_the_address_of_a_running_service_is_filled_in() -> None:
    url = {"url": "http://{server}:8080/", "authorised_hosts": ["{server}"]}
    (setting,) = settings_of({"benchmark": "http.load", "client": "gen", "params": url})
    assert trials_of([setting])[0] == ("vm1", "gen", ""), "nothing is started on the server"
    assert setting.factors == {}
    filled = with_server_address(setting.params, "10.0.0.1")
    assert (filled["url"], filled["authorised_hosts"]) == ("http://10.0.0.1:8080/", ["10.0.0.1"])
    filled = with_server_address({**setting.params, "n": 1}, "fe80::1")
    assert (filled["url"], filled["authorised_hosts"]) == ("http://[fe80::1]:8080/", ["fe80::1"])
    assert filled["n"] == 1


LAB = {"name": "here", "kind": "lab", "lab": "office"}


@pytest.mark.parametrize(
    ("entry", "targets", "sentence"),
    [
        (
            {"benchmark": "cpu.pi", "client": "gen"},
            SSH,
            "benchmarks.0.client: cpu.pi has one side here",
        ),
        (
            {"benchmark": "net.rtt", "client": "gen", "params": {"host": "10.0.0.9"}},
            SSH,
            "write {server} in a parameter",
        ),
        (
            {"benchmark": "ab", "client": "gen", "on": ["vm1", "gen"]},
            SSH,
            "'gen' is the client and also a server of the comparison. Take another machine",
        ),
        (
            {"benchmark": "ab", "client": "a", "on": "b"},
            [{"name": "a"}, {"name": "b"}],
            "the client 'a' and the server 'b' are the same machine.",
        ),
        (
            {"benchmark": "ab", "client": "gen", "peer": "vm1"},
            SSH,
            "`client` and `peer` exclude each other",
        ),
        (
            {"benchmark": "ab", "client": "gen", "on": "vm1", "together": True},
            SSH,
            "servers that run together would share the client 'gen'",
        ),
        (
            {"benchmark": "ab", "client": "gen"},
            [*SSH[3:], LAB],
            "'gen' cannot reach 'here': a lab has no way out",
        ),
        (
            {"benchmark": "ab", "client": "gne"},
            SSH,
            "benchmarks.0.client: no target is named 'gne'",
        ),
        (
            {"benchmark": "ab", "client": "gen"},
            [{**SSH[0], "roles": ["victim"]}, SSH[3]],
            "no target serves ab: each other target has a role, and none the role server",
        ),
        (
            {"benchmark": "ab"},
            SSH,
            "`peer: self`; or name one client of all targets: `client: NAME`",
        ),
    ],
)
def test_ends_that_cannot_be_are_refused(
    entry: dict[str, Any], targets: list[dict[str, Any]], sentence: str
) -> None:
    with pytest.raises(PlanError) as caught:
        settings_of(entry, targets=targets)
    assert sentence in str(caught.value)
