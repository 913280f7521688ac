"""Questions about a network path, with what the tools of users print."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from tests.questions.conftest import Asking

LINUX = """\
PING 192.0.2.9 (192.0.2.9) 56(84) bytes of data.
64 bytes from 192.0.2.9: icmp_seq=1 ttl=57 time=12.0 ms
64 bytes from 192.0.2.9: icmp_seq=3 ttl=57 time=13.0 ms
64 bytes from 192.0.2.9: icmp_seq=4 ttl=57 time=14.0 ms

--- 192.0.2.9 ping statistics ---
4 packets transmitted, 3 received, 25% packet loss, time 3004ms
"""
GERMAN = """\
PING 192.0.2.9 (192.0.2.9) 56(84) Bytes an Daten.
64 Bytes von 192.0.2.9: icmp_seq=1 ttl=57 Zeit=12,0 ms
64 Bytes von 192.0.2.9: icmp_seq=3 ttl=57 Zeit=13,0 ms
64 Bytes von 192.0.2.9: icmp_seq=4 ttl=57 Zeit=14,0 ms

--- 192.0.2.9 Ping-Statistiken ---
4 Pakete übertragen, 3 empfangen, 25% Paketverlust, Zeit 3004ms
"""
WINDOWS = """
Pinging 192.0.2.9 with 32 bytes of data:\r
Reply from 192.0.2.9: bytes=32 time=12ms TTL=53\r
Request timed out.\r
Reply from 192.0.2.9: bytes=32 time=13ms TTL=53\r
Reply from 192.0.2.9: bytes=32 time=14ms TTL=53\r
\r
Ping statistics for 192.0.2.9:\r
    Packets: Sent = 4, Received = 3, Lost = 1 (25% loss),\r
"""
FPING = """\
192.0.2.9 : [0], 64 bytes, 12.0 ms (12.0 avg, 0% loss)
192.0.2.9 : [1], timed out (12.0 avg, 50% loss)
192.0.2.9 : [2], 64 bytes, 13.0 ms (12.5 avg, 33% loss)
192.0.2.9 : [3], 64 bytes, 14.0 ms (13.0 avg, 25% loss)

192.0.2.9 : 12.0 - 13.0 14.0
"""
FPING_ROW = "192.0.2.9 : 12.0 - 13.0 14.0\n"
FPING_JSON = '{"vSum": {"host": "192.0.2.9", "values": [12.0, null, 13.0, 14.0]}}\n'
EXCEL = "sequence;rtt_ms\n1;12,0\n2;\n3;13,0\n4;14,0\n"


def iperf3_udp(*, reverse: bool, lost: int = 560) -> str:
    """Ten seconds at 10 Mbit/s, of which `lost` of 1,000 packets are lost."""
    payload = 1250

    def total(packets: int, count: int) -> dict[str, Any]:
        return {
            "seconds": 1.0,
            "bytes": packets * payload,
            "packets": 1000,
            "lost_packets": count,
            "lost_percent": count / 10,
        }

    rate = (1000 - lost) if reverse else 1000
    interval = {"sum": total(rate, lost if reverse else 0), "streams": []}
    return json.dumps(
        {
            "start": {"test_start": {"protocol": "UDP", "reverse": int(reverse)}},
            "intervals": [interval] * 10,
            "end": {
                "sum": total(1000, lost),
                "sum_sent": total(1000, 0),
                "sum_received": total(1000 - lost, lost),
            },
        }
    )


@pytest.mark.parametrize(
    "output", [LINUX, GERMAN, WINDOWS, FPING, FPING_ROW, FPING_JSON, EXCEL], ids=range(7)
)
def test_how_many_pings_were_lost(ask: Asking, output: str) -> None:
    """My colleague sent me a ping (of his system, in his language): how far, and what was lost?"""
    ask.write("p.txt", output)
    path = ask("nephoscope network series p.txt --json").json()
    assert path["loss"]["sent"] == 4
    assert path["loss"]["lost"] == 1
    assert path["delay"]["median_ns"] == pytest.approx(13e6)
    assert path["delay"]["minimum_ns"] == pytest.approx(12e6)


def test_a_summary_alone_has_no_delays(ask: Asking) -> None:
    """My cron job keeps `ping -q` only. Was the path lossy?"""
    summary = "--- 192.0.2.1 ping statistics ---\n100 packets transmitted, 97 received, 3% packet"
    ask.write("p.txt", f"PING 192.0.2.1 (192.0.2.1)\n\n{summary} loss, time 99134ms\n")
    answer = ask("nephoscope network series p.txt")
    answer.says(r"loss 3\.00 % \[1\.03, 8\.45\] \(n = 100\); 3 of 100")
    answer.says("delays are not known")


@pytest.mark.parametrize("reverse", [False, True])
def test_what_arrived_of_the_stream(ask: Asking, reverse: bool) -> None:
    """I sent 10 Mbit/s by iperf3 -u. What did the path carry, and is it congested?"""
    ask.write("r.json", iperf3_udp(reverse=reverse))
    answer = ask("nephoscope network series r.json")
    answer.says(r"goodput, mean 4\.40 Mbit/s")
    answer.says(r"Verdict: (possible|likely)\.")
    answer.never_says(r"goodput, mean 10\.0|10\.0 Mbit/s of payload")
    if not reverse:
        answer.says(r"sent, mean 10\.0 Mbit/s")


def test_counts_that_cannot_be(ask: Asking) -> None:
    """iperf3 says that 1,800 of 1,000 packets were lost. What was the loss?"""
    received = '"bytes": -1000000'
    ask.write("r.json", iperf3_udp(reverse=False, lost=1800).replace(received, '"bytes": 550000'))
    answer = ask("nephoscope network series r.json")
    answer.says(r"1800 lost packets among 1000 .*no loss ratio")
    answer.says(r"goodput, mean 4\.40 Mbit/s")
    assert ask("nephoscope network series r.json --json").json()["loss"] is None


def test_both_directions_of_a_test(ask: Asking) -> None:
    """I ran iperf3 --bidir: what did each direction get?"""
    total = {"seconds": 10.0, "bytes": 58_500_000, "retransmits": 0}
    report = {
        "start": {"test_start": {"protocol": "TCP"}},
        "intervals": [{"sum": {"seconds": 1.0, "bytes": 6_000_000}, "streams": []}] * 10,
        "end": {
            "sum_sent": {**total, "bytes": 60_000_000},
            "sum_received": total,
            "sum_received_bidir_reverse": {"seconds": 10.0, "bytes": 830_000_000},
        },
    }
    ask.write("r.json", json.dumps(report))
    answer = ask("nephoscope network series r.json")
    answer.says(r"goodput, mean 46\.8 Mbit/s")
    answer.says(r"other direction.* 664 Mbit/s")


@pytest.mark.parametrize(("rate", "share"), [("94.1", "99.9"), ("94.9", "100.0")])
def test_is_it_the_link(ask: Asking, rate: str, share: str) -> None:
    """I get 94.9 Mbit/s: is my provider's 100 Mbit/s port the limit?"""
    answer = ask(f"nephoscope network link {rate}Mbit/s")
    answer.says(rf"{share} % of what 100 Mb/s Ethernet can carry.*the link is the limit")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("p.json", '{"x_values": [0], "results": {"Ping (ms) ICMP": [1.0]}}', "data file of flent"),
        (
            "r.txt",
            "[ ID] Interval   Transfer  Bitrate\n[  5] 0.00-1.00 sec 1 MBytes 8 Mbits/sec\n",
            "iperf3 --json",
        ),
        ("r.json", '{"start": {"a": [1, 2', "cut off here"),
        ("p.txt", FPING + FPING.replace("2.9", "2.8"), "2 hosts"),
    ],
)
def test_a_file_that_is_not_read(ask: Asking, name: str, content: str, sentence: str) -> None:
    """I have an output of another tool. What do I do with it?"""
    ask.write(name, content)
    ask(f"nephoscope network series {name}", code=2).says(sentence)


@pytest.mark.parametrize("link_type", [0, 12, 101, 108, 228])
def test_packets_of_a_tunnel(ask: Asking, link_type: int) -> None:
    """My capture is of a VPN. How many packets went to the server?"""
    packet = bytes([0x45]) + bytes(15) + bytes([198, 51, 100, 9]) + bytes(20)
    head = bytes([2, 0, 0, 0]) if link_type in (0, 108) else b""
    frames = [head + packet, head + packet.replace(bytes([100, 9]), bytes([100, 8]))] * 5
    capture = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, link_type)
    for second, frame in enumerate(frames):
        capture += struct.pack("<IIII", second, 0, len(frame), len(frame)) + frame
    (ask.folder / "c.pcap").write_bytes(capture)
    ask("nephoscope network traffic c.pcap --to 198.51.100.9").says(r"packets 5\b")
