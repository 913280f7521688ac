"""Which mechanism a link gets, and the lines that make it: on kernels that are not this one too."""

from __future__ import annotations

import pytest

from nephoscope.core.errors import Lacking
from nephoscope.measure.lab import files
from nephoscope.measure.lab.needs import Abilities
from nephoscope.measure.lab.network import layout, links, shaping
from nephoscope.measure.lab.network.links import Link

ALL = Abilities(netem=True, htb=True, ifb=True, nft=True, iptables=True, tun=True)
NO_NETEM = Abilities(netem=False, htb=True, ifb=True, nft=True, iptables=True, tun=True)
NO_NFT = Abilities(netem=False, htb=True, ifb=True, nft=False, iptables=True, tun=True)
NOTHING = Abilities(netem=False, htb=False, ifb=False, nft=False, iptables=False, tun=False)


def link(has: Abilities = NO_NETEM, was: str = "", **conditions: object) -> Link:
    laid = layout.lay_out(
        files.from_values(
            {
                "version": 1,
                "name": "t",
                "hosts": {"a": {}, "b": {}},
                "links": {"wan": {"between": ["a", "lan"], **conditions}},
            }
        )
    )
    return links.decide(next(one for one in laid.cables if one.name == "wan"), has, was)


@pytest.mark.parametrize(
    ("has", "conditions", "path", "loses"),
    [
        (ALL, {}, "veth", ""),
        (ALL, {"rate": "1Mbit/s"}, "veth", ""),
        (ALL, {"delay": "1ms"}, "netem", ""),
        (ALL, {"delay": "1ms", "mechanism": "line"}, "line", ""),
        (ALL, {"loss": "1%"}, "netem", "netem"),
        (ALL, {"mechanism": "line"}, "line", ""),
        (NO_NETEM, {"delay": "1ms"}, "line", ""),
        (NO_NETEM, {"delay": 0}, "line", ""),
        (NO_NETEM, {"down": {"delay": "1ms"}}, "line", ""),
        (NO_NETEM, {"duplicate": "1%"}, "line", ""),
        (NO_NETEM, {"delay": "1ms", "loss": "1%"}, "line", "line"),
        (NO_NETEM, {"loss": "1%"}, "veth", "packet filter"),
        (NO_NFT, {"down": {"loss": "1%"}}, "veth", "iptables"),
        (NO_NFT, {"loss": "1%"}, "line", "line"),
        (NOTHING, {}, "veth", ""),
    ],
)
def test_each_link_gets_the_mechanism_that_the_kernel_has(
    has: Abilities, conditions: dict[str, object], path: str, loses: str
) -> None:
    found = link(has, **conditions)
    assert (found.path, found.loses) == (path, loses)


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"rate": "1Mbit/s"}, "a rate, and this kernel has no HTB"),
        ({"delay": "1ms"}, "no netem and no TUN"),
        ({"loss": "1%"}, "no netem, nft or TUN"),
        ({"delay": "1ms", "mechanism": "netem"}, "asks for netem"),
    ],
)
def test_what_the_kernel_has_not_is_one_sentence(conditions: dict[str, object], words: str) -> None:
    with pytest.raises(Lacking, match=words):
        link(NOTHING, **conditions)


def test_a_link_that_was_delayed_stays_on_its_line() -> None:
    assert link(was="line").path == "line"
    assert link(was="veth").path == "veth"


def test_rates_are_shaped_where_packets_leave() -> None:
    found = link(up={"rate": "10Mbit/s"}, down={"rate": "20Mbit/s"})
    first, second = (links.shape_lines(found, end) for end in found.ends)
    assert "dev eth0 " in first[1]
    assert "rate 10000000bit ceil 10000000bit" in first[1]
    assert "rate 20000000bit ceil 20000000bit" in second[1]


def test_netem_sits_below_the_shaper() -> None:
    found = link(ALL, rate="10Mbit/s", delay="50ms", jitter="5ms", loss="2%", duplicate="1%")
    lines = links.shape_lines(found, found.cable.first)
    assert lines[-1] == (
        "qdisc replace dev eth0 parent 1:1 handle 10: netem limit 11000 "
        "delay 50000.000us 5000.000us loss 2.000000% duplicate 1.000000%"
    )
    # Without a rate netem is the root.
    alone = links.shape_lines(link(ALL, delay="50ms"), found.cable.first)
    assert alone == ["qdisc replace dev eth0 root handle 1: netem limit 10000 delay 50000.000us"]


def test_what_arrives_is_shaped_by_an_ifb_at_the_first_end_only() -> None:
    found = link(ingress="50Mbit/s")
    first, second = (links.shape_lines(found, end) for end in found.ends)
    assert any("mirred egress redirect dev ifb-eth0" in line for line in first)
    assert any("dev ifb-eth0 root" in line for line in first)
    assert second == []


def test_a_burst_that_is_asked_for_holds_in_both_shapers() -> None:
    found = link(rate="100Mbit/s", ingress="50Mbit/s", burst="64B")
    lines = links.shape_lines(found, found.cable.first)
    classes = [line for line in lines if line.startswith("class")]
    assert len(classes) == 2
    assert all("burst 64b cburst 64b" in line for line in classes)
    # By default 2 ms at the rate: 25 000 bytes at 100 Mbit/s.
    plain = link(rate="100Mbit/s")
    assert any("burst 25000b" in line for line in links.shape_lines(plain, plain.cable.first))


def test_the_queue_holds_fifty_milliseconds_unless_asked_otherwise() -> None:
    # 200 Mbit/s for 50 ms is 1.25 MB: 826 frames of 1514 bytes.
    assert shaping.queue_packets(200e6, 1500, None) == 826
    assert shaping.queue_packets(64e3, 1500, None) == 20
    assert shaping.queue_packets(200e6, 1500, 7) == 7


def test_a_change_touches_only_what_differs() -> None:
    slow, fast, free = link(rate="10Mbit/s"), link(rate="20Mbit/s"), link()
    end = slow.cable.first
    assert links.reshape_lines(slow, slow, end) == []
    changed = links.reshape_lines(slow, fast, end)
    assert [line.split()[0] for line in changed] == ["class", "qdisc"]
    assert links.reshape_lines(slow, free, end) == ["qdisc delete dev eth0 root"]
    assert links.reshape_lines(free, fast, end) == links.shape_lines(fast, end)


def test_netem_that_gets_a_rate_makes_room_for_it_first() -> None:
    plain, rated = link(ALL, delay="5ms"), link(ALL, delay="5ms", rate="10Mbit/s")
    lines = links.reshape_lines(plain, rated, plain.cable.first)
    assert lines[0] == "qdisc delete dev eth0 root"
    assert lines[1:] == links.shape_lines(rated, plain.cable.first)


def test_loss_falls_where_packets_arrive() -> None:
    found = link(up={"loss": "1%"}, down={"loss": "2%"})
    assert links.losses([found]) == {
        "lan": {("p0", "ingress"): 0.01},
        "a": {("eth0", "ingress"): 0.02},
    }
    # What comes out of an IFB passes the ingress hook of no device again.
    shaped = link(ingress="50Mbit/s", up={"loss": "1%"}, down={"loss": "2%"})
    assert links.losses([shaped]) == {"lan": {("p0", "ingress"): 0.01, ("p0", "egress"): 0.02}}


def test_the_filter_counts_in_millionths() -> None:
    assert "numgen random mod 1000000 < 5000 counter drop" in shaping.nft(
        {("p0", "ingress"): 0.005}
    )
    assert "chain" not in shaping.nft({})
    text = shaping.iptables({"eth0": 0.02})
    assert "-A PREROUTING -i eth0 -m statistic --mode random --probability 0.020000000" in text
    assert shaping.iptables({}) == "*raw\nCOMMIT\n"


def test_iptables_drops_only_where_packets_arrive_at_a_host() -> None:
    assert links.iptables_losses([link(NO_NFT, down={"loss": "2%"})]) == {"a": {"eth0": 0.02}}
