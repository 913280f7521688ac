"""The lab of a run as the dashboard states it, from the plan's own description."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, make_run
from tests.serve.made import call, settings

from nephoscope.core.errors import UnknownName, UsageError
from nephoscope.core.model import Sample, Setting
from nephoscope.measure.lab import files
from nephoscope.serve import lab_topology
from nephoscope.serve.app import make_app
from nephoscope.serve.lab_topology import topology_of
from nephoscope.store import Store

OFFICE = """
name: office
hosts:
  client:
  server: {platform: qemu, memory: 512MiB, cpu: {cap: 50%}}
links:
  wan: {between: [client, lan], rate: 47Mbit/s, delay: 5ms, loss: 0.5%, down: {rate: 10Mbit/s}}
"""
SITES = """
name: world
hosts: {a: , b: , c: }
geo:
  sites: {paris: [a, b], tokyo: [c]}
  latency: {paris: {tokyo: 110ms}, tokyo: {paris: 112ms}}
  loss: 0.1%
"""
PLAN = """
version: 1
name: office
lab: {name: office, hosts: {client: , server: }, links: {wan: {between: [client, lan]}}}
targets: [{name: client, kind: lab}, {name: server, kind: lab}]
benchmarks: [{benchmark: "null"}]
factors:
  delay: {path: lab.links.wan.delay, levels: [5ms, 20ms]}
"""


def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 1.0)]


def test_both_directions_of_each_link_are_stated() -> None:
    lab = topology_of("r", files.from_text(OFFICE, "office.yaml"), ())
    assert (lab.lab, lab.switches) == ("office", ("lan",))
    named, default = lab.links
    assert (named.name, named.between) == ("wan", ("client", "lan"))
    assert (named.up.rate_bits_per_s, named.down.rate_bits_per_s) == (47e6, 10e6)
    assert (named.up.delay_ns, named.down.loss_ratio) == (5_000_000, 0.005)
    assert default.between == ("server", "lan")
    assert (default.up.rate_bits_per_s, default.up.delay_ns) == (None, 0)
    client, server = lab.hosts
    assert client.addresses == ("10.77.0.1",)
    assert (client.limits, server.platform) == ((), "qemu")
    assert server.limits == ("at most 0.500 CPUs", "memory 512 MiB")


def test_sites_are_linked_with_their_delays() -> None:
    lab = topology_of("r", files.from_text(SITES, "world.yaml"), ())
    (between,) = (link for link in lab.links if link.name == lab_topology.HUB)
    assert between.between == ("paris", "tokyo")
    assert (between.up.delay_ns, between.down.delay_ns) == (110_000_000, 112_000_000)
    assert between.up.loss_ratio == 0.001


def test_the_lab_of_a_run_has_what_its_plan_varies(tmp_path: Path) -> None:
    run = make_run(tmp_path, PLAN, sampler, rounds=1)
    other = make_run(tmp_path, NULL_PLAN, sampler, rounds=1)
    store = Store(tmp_path)
    answer = lab_topology.lab(store, run.id)
    assert json.loads(answer.body)["varied"] == {"links.wan.delay": ["5.00 ms", "20.0 ms"]}
    with pytest.raises(UnknownName, match="describes no lab"):
        lab_topology.lab(store, other.id)
    app = make_app(settings(tmp_path))
    runs = call(app, "/api/v1/runs?kind=lab").json["runs"]
    assert [row["id"] for row in runs] == [run.id]


def test_a_plan_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, sampler, rounds=1)
    run.update(plan={"lab": {"hosts": {"a": 3}}})
    with pytest.raises(UsageError):
        lab_topology.lab(Store(tmp_path), run.id)
