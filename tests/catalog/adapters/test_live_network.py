"""Tools of networks, live on loopback: they count what was asked for, and nothing is lost."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from live import measured, values
from tests.attempts import attempt
from tests.hardware import Feature, lacking
from tests.tools import fixture_needs, needs

from nephoscope.catalog.adapters import ADAPTERS, Output
from nephoscope.measure.targets.probe.tools import wrap

SECOND = {"duration_ns": 1_000_000_000}


@pytest.mark.parametrize(
    ("benchmark", "params"),
    [
        pytest.param(
            "iperf3.tcp", {"streams": 2, "congestion_control": "reno"}, marks=needs("iperf3")
        ),
        pytest.param(
            "iperf3.tcp", {"direction": "down"}, marks=[needs("iperf3"), pytest.mark.slow]
        ),
        pytest.param("iperf.tcp", {"streams": 2}, marks=needs("iperf")),
    ],
)
def test_tcp_is_carried(probe: Path, benchmark: str, params: dict[str, Any]) -> None:
    trial, served = measured(benchmark, {**SECOND, **params})
    assert values(trial)["goodput_bytes_per_s"] > 1e6
    (direction,) = {s.factors["direction"] for s in trial.samples if "direction" in s.factors}
    assert direction == params.get("direction", "up")
    assert served["cpu_ns"] > 0


@pytest.mark.alone
@pytest.mark.parametrize(
    "benchmark",
    [
        pytest.param("iperf3.udp", marks=needs("iperf3")),
        pytest.param("iperf.udp", marks=needs("iperf")),
    ],
)
def test_datagrams_arrive_at_the_rate(probe: Path, benchmark: str) -> None:
    params = {"rate_bits_per_s": 1_120_000, "packet_bytes": 1400}

    def measure() -> tuple[str, bool]:
        found = values(measured(benchmark, {**SECOND, **params})[0])
        per_s, bytes_per_s = found["received_per_s"], found["goodput_bytes_per_s"]
        assert found["loss_ratio"] == 0
        # 100 a second; iperf sends one at either end.
        near = abs(per_s - 100) <= 5 and abs(bytes_per_s / 140_000 - 1) <= 0.05
        return f"{per_s:.1f} and {bytes_per_s:.0f} bytes a second", near

    attempt(benchmark, measure)


@needs("sockperf")
@pytest.mark.parametrize("protocol", ["udp", pytest.param("tcp", marks=pytest.mark.slow)])
def test_round_trips_of_sockperf_are_ordered(probe: Path, protocol: str) -> None:
    found = values(measured(f"sockperf.{protocol}", {**SECOND, "rate_per_s": 200})[0])
    names = ("min", "p50", "p99", "max")
    times = [found[f"rtt_sent_{name}_ns"] for name in names]
    assert times == sorted(times)
    assert times[0] <= found["rtt_sent_mean_ns"] <= times[-1]


@pytest.mark.parametrize(
    "benchmark", [pytest.param(tool, marks=needs(tool)) for tool in ("ping", "fping")]
)
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_every_echo_request_is_answered(probe: Path, benchmark: str, host: str) -> None:
    if ":" in host and not Path("/proc/net/if_inet6").exists():
        lacking(Feature.IPV6)
    params = {"host": host, "probes": 5, "interval_ns": 10_000_000}
    trial, _ = measured(benchmark, params)
    assert sum(sample.metric == "rtt_sent_ns" for sample in trial.samples) == 5
    found = values(trial)
    assert found["loss_ratio"] == 0
    assert 0 < found["rtt_sent_mean_ns"] <= found["rtt_sent_max_ns"]


@needs("mtr")
def test_loopback_is_one_hop(probe: Path) -> None:
    params = {"probes_per_hop": 2, "interval_ns": 10_000_000, "wait_ns": 1_000_000_000}
    trial, _ = measured("mtr", params)
    assert values(trial)["hops_count"] == 1
    assert {s.factors["address"] for s in trial.samples if "address" in s.factors} == {"127.0.0.1"}


@pytest.fixture
@fixture_needs("ip")
def inside(root_only: None) -> Iterator[Sequence[str]]:
    """Words that run a program in a network namespace of its own: its servers listen everywhere."""
    name = f"neph-tools-{secrets.token_hex(4)}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield ["ip", "netns", "exec", name]
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.mark.parametrize(
    ("benchmark", "server"),
    [
        pytest.param("nuttcp", ["nuttcp", "-S", "--nofork"], marks=needs("nuttcp")),
        pytest.param("qperf", ["qperf"], marks=needs("qperf")),
    ],
)
def test_a_server_of_the_tool_s_own(
    probe: Path, inside: Sequence[str], benchmark: str, server: list[str]
) -> None:
    adapter = ADAPTERS[benchmark]
    with subprocess.Popen([*inside, *server]) as serving:
        try:
            text = _printed(
                [*inside, *wrap(str(probe), adapter.build_command(SECOND).job(benchmark), 60)]
            )
        finally:
            serving.terminate()
    said = text["tool"]
    output = Output(said["stdout"], said["stderr"], said["exit"], said["signal"])
    found = {sample.metric: sample.value for sample in adapter.parse(output)}
    assert found["goodput_bytes_per_s"] > 1e6


def _printed(words: Sequence[str]) -> dict[str, Any]:
    """The probe's line about a tool, called again until its server listens."""
    for _ in range(40):
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        line: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
        if line["tool"]["exit"] == 0:
            break
    return line
