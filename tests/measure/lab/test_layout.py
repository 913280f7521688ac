"""Addresses, hardware addresses and routes that follow from a topology alone."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from nephoscope.measure.lab import files, names
from nephoscope.measure.lab.network import layout
from nephoscope.measure.lab.topology import Topology


def topology(**values: object) -> Topology:
    return files.from_values({"version": 1, "name": "t", **values})


def test_addresses_are_given_in_the_order_of_the_hosts() -> None:
    hosts = {"a": {}, "b": {"address": "10.77.0.1"}, "c": {}, "d": {"address": "10.77.9.9"}}
    laid = layout.lay_out(topology(hosts=hosts))
    found = {host: nics[0].address for host, nics in laid.nics.items()}
    assert found == {"a": "10.77.0.2", "b": "10.77.0.1", "c": "10.77.0.3", "d": "10.77.9.9"}
    assert laid.switches == ("lan",)
    assert [cable.name for cable in laid.cables] == ["a.lan", "b.lan", "c.lan", "d.lan"]


def test_hardware_addresses_are_the_same_each_time_and_locally_administered() -> None:
    laid = layout.lay_out(topology(hosts={f"h{i}": {} for i in range(100)}))
    macs = [end.mac for cable in laid.cables for end in (cable.first, cable.second)]
    assert len(set(macs)) == 200
    # Bit 1 of the first byte: not given by a maker; bit 0: not a group's.
    assert all(int(mac[:2], 16) & 0b11 == 0b10 for mac in macs)
    assert macs[0] == layout.mac_of("t", "h0", "eth0")
    assert layout.mac_of("t", "h0", "eth0") != layout.mac_of("u", "h0", "eth0")


def test_hosts_between_networks_are_gateways() -> None:
    # a - x - r - y - s - z - b: two hosts pass packets on.
    ends = {"ax": "ax", "rx": "rx", "ry": "ry", "sy": "sy", "sz": "sz", "bz": "bz"}
    laid = layout.lay_out(
        topology(
            hosts={host: {} for host in "arsb"},
            switches={switch: {} for switch in "xyz"},
            links={name: {"between": list(pair)} for name, pair in ends.items()},
        )
    )
    x, y, z = "10.77.0.0/24", "10.77.1.0/24", "10.77.2.0/24"
    assert [nic.network for nic in laid.nics["r"]] == [x, y]
    r, s = ([nic.address for nic in laid.nics[host]] for host in "rs")
    assert {route.network: route.via for route in laid.routes["a"]} == {y: r[0], z: r[0]}
    assert {route.network: route.via for route in laid.routes["r"]} == {z: s[0]}
    assert {route.network: route.via for route in laid.routes["b"]} == {y: s[1], x: s[1]}


def test_two_hosts_may_share_a_cable_without_a_switch() -> None:
    laid = layout.lay_out(
        topology(hosts={"a": {}, "b": {}}, links={"wire": {"between": ["a", "b"]}})
    )
    assert laid.switches == ()
    assert [nics[0].address for nics in laid.nics.values()] == ["10.77.0.1", "10.77.0.2"]


def test_sites_are_switches_with_a_port_each_to_one_hub() -> None:
    geo = {"sites": {"x": ["a", "b"], "y": ["c"]}, "latency": {"x": {"y": 0.1}}}
    laid = layout.lay_out(topology(hosts={"a": {}, "b": {}, "c": {}}, geo=geo))
    assert laid.switches == ("x", "y")
    assert [(end.node, end.device) for end in laid.hub] == [("x", "p2"), ("y", "p1")]
    assert {nics[0].network for nics in laid.nics.values()} == {"10.77.0.0/16"}


NAME = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,11}", fullmatch=True)


@given(NAME, NAME, NAME, NAME)
def test_names_of_two_labs_are_never_mixed_up(lab: str, node: str, lab2: str, node2: str) -> None:
    for one, other in itertools.product((lab, lab2), (node, node2)):
        assert names.lab_of(names.namespace(one, other)) == one
    if (lab, node) != (lab2, node2):
        assert names.namespace(lab, node) != names.namespace(lab2, node2)


def test_namespaces_of_others_are_nobody_s() -> None:
    for name in ("nephx-other", "nephx.other", "neph-", "neph-a", "neph-.a", "a.b", "xneph-a.b"):
        assert names.lab_of(name) is None
