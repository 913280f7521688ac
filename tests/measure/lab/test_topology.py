"""Reading topologies: values, conditions, and one sentence with the place for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import schemas

from nephoscope.core.errors import PlanError, UsageError
from nephoscope.measure.lab import files
from nephoscope.measure.lab.network import layout
from nephoscope.measure.lab.topology import Topology, topology_schema

OFFICE = """\
version: 1
name: office
hosts:
  a:
  b:
    cpu: {cap: 150%, weight: 300, cpus: [0, 1], reservation: {slice: 30ms, period: 40ms}}
    memory: 256MiB
    disk: {read: 20MiB/s, write: 10MB/s}
links:
  wan:
    between: [a, lan]
    rate: 47Mbit/s
    delay: 50ms
    jitter: 5ms
    loss: 2%
    up: {rate: 10Mbit/s, loss: 0}
    down: {delay: 60ms}
"""


def read(text: str) -> Topology:
    return files.from_text(text, "lab.yaml")


def test_every_unit_becomes_a_plain_number() -> None:
    topology = read(OFFICE)
    b = topology.hosts["b"]
    assert b.cpu.cap == 1.5
    assert b.cpu.reservation is not None
    assert b.cpu.reservation.cpus == pytest.approx(0.75)
    assert b.memory_bytes == 256 << 20
    assert b.disk.read_bytes_per_s == 20 << 20
    assert b.disk.write_bytes_per_s == 10e6
    up, down = (topology.links["wan"].direction(one) for one in ("up", "down"))
    assert (up.rate_bits_per_s, up.delay_ns, up.loss_ratio) == (10e6, 50_000_000, 0.0)
    assert (down.rate_bits_per_s, down.delay_ns, down.loss_ratio) == (47e6, 60_000_000, 0.02)
    assert up.jitter_ns == down.jitter_ns == 5_000_000


def test_a_topology_survives_being_written_down() -> None:
    topology = read(OFFICE)
    again = files.from_values(json.loads(json.dumps(files.values_of(topology))))
    assert again.links["wan"].direction("up") == topology.links["wan"].direction("up")
    assert again.hosts["b"].cpu.cap == 1.5
    assert layout.lay_out(again) == layout.lay_out(topology)


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("delay: 50ms", "dlay: 50ms", "13:5", "unknown key 'dlay' (did you mean 'delay'?)"),
        ("rate: 47Mbit/s", "rate: 47", "12:5", "links.wan.rate"),
        ("rate: 47Mbit/s", "rate: fast", "12:5", "no line rate"),
        ("jitter: 5ms", "jitter: 55ms", "10:3", "jitter is larger than the delay"),
        ("loss: 2%", "loss: 200%", "15:5", "no ratio"),
        ("[a, lan]", "[a, lam]", "11:18", "neither host nor switch"),
        ("[a, lan]", "[a, a]", "10:3", "both ends are 'a'"),
        ("cap: 150%", "cap: lots", "6:11", "no share of a CPU"),
        ("cap: 150%", "cap: 50%, cap_period: 1500us", "6:5", "less than 1 ms in its period"),
        ("cap: 150%", "cap_period: 5s", "6:11", "less than or equal to 1"),
        ("cap: 150%", "cap: 250%", "6:11", "more than the 2 of `cpus`"),
        ("slice: 30ms", "slice: 50ms", "6:49", "longer than the period"),
        ("memory: 256MiB", "memory: much", "7:5", "no size"),
        ("name: office", "name: an-office-with-a-name", "2:1", "at most 12"),
        ("  a:\n", "  A:\n", "4:3", "a-z"),
        ("  a:\n", "  lan:\n  a:\n", "4:3", "is a host and a switch"),
        ("  a:\n", "  a: {platform: vmware}\n", "4:7", "platform"),
        (
            "  a:\n",
            "  a: {platform: container, cpu: {hidden: true}}\n",
            "4:34",
            "a container sees its control groups",
        ),
        ("  a:\n", "  a: {address: 10.78.0.1}\n", "4:7", "not in 10.77.0.0/16"),
        ("  a:\n", "  a: {address: 10.77.0.0}\n", "4:7", "first or last"),
        ("name: office\n", "name: office\nnetwork: 10.77.0.1/16\n", "3:1", "no IPv4 network"),
        ("name: office\n", "name: office\nnetwork: 10.77.0.0/31\n", "3:1", "no room"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(
    old: str, new: str, place: str, words: str
) -> None:
    assert old in OFFICE
    with pytest.raises(PlanError) as caught:
        read(OFFICE.replace(old, new, 1))
    text = str(caught.value)
    assert text.startswith(f"lab.yaml:{place}: "), text
    assert words in text


def test_two_hosts_of_one_address_are_refused() -> None:
    with pytest.raises(PlanError, match=r"lab.yaml:5:\d+: .* is the address of host a too"):
        read("name: t\nversion: 1\nhosts:\n  a: {address: 10.77.0.9}\n  b: {address: 10.77.0.9}\n")


def test_a_network_that_is_too_small_is_refused() -> None:
    hosts = "".join(f"  h{i}:\n" for i in range(7))
    with pytest.raises(PlanError, match="has 6 addresses and 7 interfaces"):
        read(f"name: t\nnetwork: 10.77.0.0/29\nhosts:\n{hosts}")


def test_a_loop_of_switches_is_refused() -> None:
    text = """\
name: t
hosts: {a: , b: }
switches: {x: , y: , z: }
links:
  ax: {between: [a, x]}
  bz: {between: [b, z]}
  xy: {between: [x, y]}
  yz: {between: [y, z]}
"""
    read(text)
    with pytest.raises(PlanError, match=r"^lab.yaml:9:8: link zx closes a loop of switches"):
        read(text + "  zx: {between: [z, x]}\n")


def test_a_host_twice_on_one_network_is_refused() -> None:
    with pytest.raises(PlanError, match="puts host a on one network twice"):
        read(
            "name: t\nhosts: {a: , b: }\nlinks:\n"
            "  one: {between: [a, lan]}\n  two: {between: [a, lan]}\n  three: {between: [b, lan]}\n"
        )


def test_a_guest_has_one_link() -> None:
    with pytest.raises(PlanError, match="is a uml guest and has more than one link"):
        read(
            "name: t\nhosts: {a: {platform: uml}, b: , c: }\nswitches: {x: , y: }\nlinks:\n"
            "  one: {between: [a, x]}\n  two: {between: [a, y]}\n"
            "  three: {between: [b, x]}\n  four: {between: [c, y]}\n"
        )


GEO = """\
name: t
hosts: {a: , b: , c: , d: }
geo:
  sites: {paris: [a, b], tokyo: [c], lima: [d]}
  latency:
    paris: {tokyo: 110ms, lima: 90ms}
    tokyo: {lima: 150ms, paris: 112ms}
"""


def test_a_latency_matrix_may_be_asymmetric() -> None:
    geo = read(GEO).geo
    assert geo is not None
    assert geo.delay_s("paris", "tokyo") == pytest.approx(0.110)
    assert geo.delay_s("tokyo", "paris") == pytest.approx(0.112)
    assert geo.delay_s("lima", "tokyo") == pytest.approx(0.150)


def test_a_missing_pair_is_named() -> None:
    with pytest.raises(PlanError, match=r"lab.yaml:5:3: no delay is given between tokyo and lima"):
        read(GEO.replace("lima: 150ms, ", ""))


def test_a_latency_matrix_may_be_a_csv_file(tmp_path: Path) -> None:
    matrix = tmp_path / "m.csv"
    head, _, _ = GEO.partition("  latency:")
    file = tmp_path / "lab.yaml"
    file.write_text(head + "  latency: m.csv\n")
    matrix.write_text(",paris,tokyo,lima\nparis,,110ms,90ms\ntokyo,112ms,,150ms\nlima,,,\n")
    geo = files.load(file).geo
    assert geo is not None
    assert geo.delay_s("tokyo", "paris") == pytest.approx(0.112)
    assert geo.delay_s("lima", "tokyo") == pytest.approx(0.150)
    matrix.write_text(",paris,tokyo,lima\nparis,,110,90ms\n")
    with pytest.raises(PlanError, match=r"m.csv:2: column 3: '110' needs a unit"):
        files.load(file)
    matrix.write_text(",paris,tokyo,lima\nparis,,110ms\n")
    with pytest.raises(PlanError, match=r"m.csv:2:1: this line has 3 columns, the first 4"):
        files.load(file)
    matrix.write_text(f',paris,tokyo,lima\nparis,"{"x" * 200_000}",1,2\n')
    with pytest.raises(PlanError, match=r"m.csv:2: invalid CSV: field larger than"):
        files.load(file)
    matrix.unlink()
    with pytest.raises(PlanError, match=r"m.csv: there is no such file"):
        files.load(file)


def test_conditions_are_paths_into_the_topology() -> None:
    topology = read(OFFICE)
    changed = files.with_condition(topology, "links.wan.delay", "80ms")
    assert changed.links["wan"].direction("up").delay_ns == 80_000_000
    assert changed.links["wan"].direction("down").delay_ns == 60_000_000
    changed = files.with_condition(changed, "links.wan.up.rate", "20Mbit/s")
    assert changed.links["wan"].direction("up").rate_bits_per_s == 20e6
    changed = files.with_condition(changed, "hosts.a.cpu.cap", "50%")
    assert changed.hosts["a"].cpu.cap == 0.5
    changed = files.with_condition(changed, "hosts.a.platform", "container")
    assert changed.hosts["a"].platform == "container"
    assert topology.hosts["a"].platform == "bare"


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("links.wam.delay", "1ms", "no such link"),
        ("hosts.c.cpu.cap", "50%", "no such host"),
        ("network", "10.0.0.0/8", "no setting of a lab"),
        ("links.wan.between", ["a", "b"], "cannot change while the lab is up"),
        ("hosts.a", {}, "cannot change while the lab is up"),
        ("hosts.a.cpu.cup", "50%", "unknown key 'cup'"),
        ("links.wan.delay", "soon", "no duration"),
        ("links.wan.delay", "1ms", "jitter is larger than the delay"),
    ],
)
def test_a_condition_that_cannot_be_is_refused(path: str, value: object, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        files.with_condition(read(OFFICE), path, value)
    assert words in str(caught.value)


def test_the_schema_takes_what_the_reader_takes() -> None:
    from nephoscope.core.reading import yamltext

    for text in (OFFICE, GEO):
        schemas.validate(yamltext.parse(text, "x"), topology_schema())
    with pytest.raises(schemas.ValidationError):
        schemas.validate({"name": "t", "hosts": {"a": {"cpus": 1}}}, topology_schema())


SHARED = """\
name: nas
hosts:
  storage: {exports: true}
  client: {platform: qemu, mounts: {/mnt/share: {from: storage}}}
"""


def test_a_folder_is_exported_and_mounted() -> None:
    mount = read(SHARED).hosts["client"].mounts["/mnt/share"]
    assert (mount.host, mount.minor_version) == ("storage", 1)
    again = files.from_values(json.loads(json.dumps(files.values_of(read(SHARED)))))
    assert again == read(SHARED)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "exports: true",
            "exports: true, platform: container",
            "host storage is of platform container",
        ),
        ("platform: qemu", "platform: uml", "host client is of platform uml"),
        (
            "from: storage",
            "from: client",
            "host client exports no folder. Name a host that does: storage",
        ),
        ("exports: true", "memory: 64MiB", "exports no folder. Write `exports: true` there"),
        ("from: storage", "from: storage, minor_version: 3", "less than or equal to 2"),
        ("/mnt/share:", "/mnt/a b:", "/mnt/a b"),
    ],
)
def test_a_share_that_cannot_be_is_one_sentence(old: str, new: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        read(SHARED.replace(old, new, 1))
    assert message in str(caught.value)
    assert str(caught.value).startswith("lab.yaml:")
