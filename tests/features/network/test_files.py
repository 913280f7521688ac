"""Series in files: ping, iperf3, CSV and JSON; a bad file is one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.network import files
from nephoscope.features.network.series import analyse_series

PING = """PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=20.1 ms
64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=21.3 ms
64 bytes from 10.0.0.2: icmp_seq=4 ttl=64 time=20.9 ms
64 bytes from 10.0.0.2: icmp_seq=4 ttl=64 time=22.9 ms (DUP!)

--- 10.0.0.2 ping statistics ---
5 packets transmitted, 3 received, 40% packet loss, time 4005ms
"""


def written(folder: Path, text: str, name: str = "series.csv") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_ping(tmp_path: Path) -> None:
    found = files.read(written(tmp_path, PING))
    assert found.delays_ns is not None
    assert np.array_equal(found.delays_ns, [20.1e6, 21.3e6, np.nan, 20.9e6, np.nan], equal_nan=True)
    analysed = analyse_series(found)
    assert analysed.loss is not None
    assert (analysed.loss.lost, analysed.loss.sent) == (2, 5)
    assert analysed.voice is not None
    assert "half of the shortest round trip" in analysed.voice.notes[0]


def iperf3(protocol: str, **end: Any) -> dict[str, Any]:
    rates = [125_000_000] * 4 + [12_500_000] * 12
    return {
        "start": {"test_start": {"protocol": protocol}, "tcp_mss_default": 1448},
        "intervals": [
            {
                "streams": [{"rtt": 20_000 + 1000 * (at % 3)}],
                "sum": {"seconds": 1.0, "bytes": rate},
            }
            for at, rate in enumerate(rates)
        ],
        "end": end,
    }


def iperf3_with(name: str, number: str) -> str:
    """The text of a report in which an interval has this number."""
    report = iperf3("TCP", sum_sent={"bytes": 1})
    report["intervals"][0]["sum"][name] = "HERE"
    return json.dumps(report).replace('"HERE"', number)


def test_iperf3_of_tcp(tmp_path: Path) -> None:
    report = iperf3(
        "TCP",
        streams=[{"sender": {"min_rtt": 10_000}}],
        sum_sent={"bytes": 650_000_000, "retransmits": 1000},
    )
    found = analyse_series(files.read(written(tmp_path, json.dumps(report))))
    assert found.token_bucket is not None
    assert found.token_bucket.bucket_bytes == pytest.approx(4 * 112.5e6, rel=0.05)
    assert found.link is not None
    assert found.link.shaped_to_bits_per_s == pytest.approx(100e6 * 1514 / 1448, rel=0.02)
    assert found.tcp is not None
    assert found.tcp.efficiency_ratio == pytest.approx(1 - 1_448_000 / 650e6)
    assert found.latency_under_load is not None
    assert found.latency_under_load.grade == "A"


def test_iperf3_of_udp(tmp_path: Path) -> None:
    report = iperf3("UDP", sum={"lost_packets": 7, "packets": 700})
    found = analyse_series(files.read(written(tmp_path, json.dumps(report))))
    assert found.loss is not None
    assert found.loss.ratio.value == pytest.approx(0.01)
    assert found.tcp is None


def test_intervals_that_iperf3_omits_are_no_part_of_the_test(tmp_path: Path) -> None:
    report = iperf3("TCP", sum_sent={"bytes": 1e9, "retransmits": 0})
    for interval in report["intervals"][4:]:
        interval["sum"]["omitted"] = True
    found = analyse_series(files.read(written(tmp_path, json.dumps(report))))
    assert found.goodput_bytes_per_s == 125e6
    assert len(found.rates_bytes_per_s) == 4


@pytest.mark.parametrize("lost", [-3, 300])
def test_impossible_loss_of_iperf3_is_no_loss_ratio(tmp_path: Path, lost: int) -> None:
    report = iperf3("UDP", sum={"lost_packets": lost, "packets": 100})
    found = analyse_series(files.read(written(tmp_path, json.dumps(report))))
    assert found.loss is None
    assert found.notes == (
        f"The report counts {lost} lost packets among 100 (sum), which is no loss ratio.",
        "The report has only what was sent, so that the goodput is not known.",
    )
    assert found.goodput_bytes_per_s is None
    assert found.offered_bytes_per_s is not None


def test_more_retransmissions_than_bytes_are_no_efficiency(tmp_path: Path) -> None:
    report = iperf3("TCP", sum_sent={"bytes": 1000, "retransmits": 10})
    assert analyse_series(files.read(written(tmp_path, json.dumps(report)))).tcp is None


def test_sequence_numbers_of_ping_begin_again_after_65536(tmp_path: Path) -> None:
    numbers = [65_534, 65_535, 0, 1, 65_535, 3]  # one twice, one lost
    text = "".join(f"icmp_seq={number} time={at + 1} ms\n" for at, number in enumerate(numbers))
    found = files.read(written(tmp_path, text)).delays_ns
    assert np.array_equal(found, [1e6, 2e6, 3e6, 4e6, np.nan, 6e6], equal_nan=True)
    late = "icmp_seq=1 time=1 ms\nicmp_seq=40000 time=1 ms\n"
    found = files.read(written(tmp_path, late)).delays_ns
    assert found is not None
    assert found.size == 40_000


@pytest.mark.parametrize(
    "text",
    [
        "sequence,delay_ms\n0,50\n2,49\n1,52\n4,60\n",
        "sent_ms,received_ms\n0,50\n2,54\n1,50\n3,\n4,64\n",
        "".join(
            f"icmp_seq={at} time={rtt} ms\n" for at, rtt in ((0, 50), (2, 49), (1, 52), (4, 60))
        ),
    ],
)
def test_jitter_is_in_the_order_of_arrival(tmp_path: Path, text: str) -> None:
    found = analyse_series(files.read(written(tmp_path, text))).delay
    assert found is not None
    first = 1 / 16
    second = first + (3 - first) / 16
    expected = [first, second, second + (8 - second) / 16]
    assert found.jitters_ns == pytest.approx([1e6 * each for each in expected])


def test_one_way_delays_under_load_are_no_round_trips(tmp_path: Path) -> None:
    text = "delay_ms,loaded\n1,0\n3,1\n5,1\n"
    found = analyse_series(files.read(written(tmp_path, text))).latency_under_load
    assert found is not None
    assert (found.increase_ns, found.round_trips_per_minute) == (3e6, None)
    assert found.sentence.startswith("The one-way delay rises from 1 to 4 ms")


def test_missing_sequence_numbers_are_lost_and_clocks_may_differ(tmp_path: Path) -> None:
    text = "sequence,sent_s,received_s\n1,100.00,50.010\n2,100.02,50.031\n4,100.06,50.070\n"
    found = files.read(written(tmp_path, text))
    assert found.delays_ns is not None
    assert found.one_way
    assert found.delays_ns == pytest.approx([0, 1e6, np.nan, 0], abs=1, nan_ok=True)
    assert found.spacing_s == pytest.approx(0.02)


def test_json_columns_and_rows_are_the_same(tmp_path: Path) -> None:
    columns = written(tmp_path, '{"rtt_ms": [1, null, 3], "loaded": [0, 0, 1]}', "columns.json")
    rows = written(
        tmp_path,
        '[{"rtt_ms": 1, "loaded": 0}, {"rtt_ms": null, "loaded": 0}, {"rtt_ms": 3, "loaded": 1}]',
        "rows.json",
    )
    for file in (columns, rows):
        found = analyse_series(files.read(file))
        assert found.loss is not None
        assert found.loss.lost == 1
        assert found.latency_under_load is not None
        assert found.latency_under_load.increase_ns == 2e6


def test_rates_by_time_of_start(tmp_path: Path) -> None:
    text = "time_s,bits_per_s\n" + "".join(f"{at},94.1e6\n" for at in range(10))
    found = analyse_series(files.read(written(tmp_path, text)))
    assert found.link is not None
    assert found.link.technology == "100 Mb/s Ethernet"
    assert found.congestion is not None
    assert found.congestion.verdict == "none"


def test_signs_of_congestion(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    load = rng.random(100)
    rows = [
        f"{at},{2 + 40 * busy:.3f},{9e8 * (1 - 0.8 * busy):.0f}\n" for at, busy in enumerate(load)
    ]
    text = "time_s,rtt_ms,bits_per_s\n" + "".join(rows)
    found = analyse_series(files.read(written(tmp_path, text)))
    assert found.congestion is not None
    assert found.congestion.verdict == "likely"
    seen = {sign.id for sign in found.congestion.signs if sign.present}
    assert seen == {"varying_rate", "queues", "delay_rises_as_rate_falls"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the file is empty"),
        ("rtt_ms\n", "no rows"),
        ("rtt\n1\n", "unknown column 'rtt' .did you mean"),
        ("rtt_ms,rtt_ms\n1,1\n", "duplicate column"),
        ("rtt_ms\n1\nfast\n", ":3: rtt_ms 'fast' is not a number"),
        ("rtt_ms\n1e400\n", "is too large"),
        ("rtt_s\n1\n1e300\n", ":3: rtt_s '1e300' is too large"),
        ('{"rtt_ms": [1' + "0" * 400 + "]}", "is too large"),
        ("sequence,rtt_ms\n0,1\n1e20,2\n", "sequence '1e20' is too large"),
        ("sequence,sent_ms,received_ms\n0,,50\n5,,80\n", "time of arrival and none of sending"),
        ("rtt_ms,loaded\n1,\n2,1\n", "'loaded' is empty for a packet"),
        ("icmp_seq=1 time=1.2.3 ms\n", "no answer with a time"),
        ("icmp_seq=1 timeout\n0 packets transmitted, 0 received\n", "no answer with a time"),
        (PING + PING, "the outputs of 2 runs of ping"),
        (json.dumps(iperf3("SCTP")), "its protocol 'sctp' is neither TCP nor UDP"),
        ("rtt_ms,loaded\n1\n", "1 fields under 2"),
        ("rtt_ms\n-1\n", "below 0"),
        ("rtt_ms,delay_ms\n1,1\n", "several columns of delays"),
        ("sequence\n1\n", "no column with delays or rates"),
        ("sequence,rtt_ms\n1,1\n99999999,1\n", "span 99,999,999 packets"),
        ("sequence,rtt_ms\n1.5,1\n", "not a whole number"),
        ("bits_per_s\n1\n", "lengths of the intervals"),
        ("bits_per_s,bytes\n1,1\n", "exclude each other"),
        ("interval_s,bits_per_s\n0,1\n", "not longer than 0"),
        ("interval_s,bits_per_s\n1,-1\n", "below 0"),
        ('"rtt_ms\n1\n', "invalid CSV"),
        ("{", "cut off here"),
        ("[" * 5000, "invalid JSON|nested too deeply"),
        ("[1, 2]", "no list of rows"),
        ('{"rtt_ms": 1}', "no lists of numbers"),
        ('{"rtt_ms": [1], "loaded": []}', "different lengths"),
        ('{"rtt_ms": [true]}', "is not a number"),
        ('{"intervals": []}', "report of iperf3 lacks"),
        ('{"intervals": [{"sum": 3}], "start": {}}', "report of iperf3 lacks"),
        (json.dumps({**iperf3("TCP"), "intervals": {"a": 1}}), "report of iperf3 is damaged"),
        (iperf3_with("seconds", "1e400"), "is damaged: 'inf' is too large"),
        (iperf3_with("bytes", "NaN"), "is damaged: 'nan' is not a number"),
        (iperf3_with("bytes", "-1"), "is damaged: '-1' is below 0"),
        (iperf3_with("bytes", "1" + "0" * 400), "is too large"),
        ('{"intervals": [], "error": "unable to connect"}', "unable to connect"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as told:
        files.read(written(tmp_path, text))
    assert str(told.value).count("\n") == 0


def test_what_is_no_text_and_no_file_is_one_sentence(tmp_path: Path) -> None:
    binary = tmp_path / "capture.pcap"
    binary.write_bytes(b"\xd4\xc3\xb2\xa1\xff\xfe")
    with pytest.raises(UsageError, match="is not a text file"):
        files.read(binary)
    with pytest.raises(UsageError, match="cannot be read"):
        files.read(tmp_path / "none")
