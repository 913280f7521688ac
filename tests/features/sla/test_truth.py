"""Truth: a real server that fails on a drawn schedule, and SYNs dropped at a known rate."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from tests.features.sla.made import agreement, run
from tests.truth.veth import FAR, Pair, needs_it, pair

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.usefixtures("root_only"),
    needs_it,
]
Capture = pytest.CaptureFixture[str]
SERVER = Path(__file__).with_name("faulty_server.py")
CLIENTS = Path(__file__).with_name("many_clients.py")
PORT, COUNT = 8080, 1500
INTERVAL_S, JITTER, TIMEOUT_S = 0.5, 0.1, 0.2


class Faulty:
    """The server in the far namespace, and the ways in which it fails."""

    def __init__(self, ends: Pair) -> None:
        self.ends = ends
        self.process = subprocess.Popen(
            [*ends.far, sys.executable, str(SERVER), FAR, str(PORT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def set(self, mode: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{mode}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "set\n"

    def far(self, *words: str) -> None:
        subprocess.run([*self.ends.far, *words], check=True, capture_output=True)

    def begin(self, fault: str) -> None:
        if fault == "stop":
            self.process.send_signal(signal.SIGSTOP)
        elif fault == "link":
            self.far("ip", "link", "set", "veth0", "down")
        elif fault == "loss":
            self.far(
                "nft",
                "add table inet cut; add chain inet cut in "
                "{ type filter hook input priority 0; policy drop; }",
            )
        else:
            self.set(fault)

    def end(self, fault: str) -> None:
        if fault == "stop":
            self.process.send_signal(signal.SIGCONT)
        elif fault == "link":
            self.far("ip", "link", "set", "veth0", "up")
        elif fault == "loss":
            self.far("nft", "delete table inet cut")
        else:
            self.set("good")

    def close(self) -> list[float]:
        self.process.send_signal(signal.SIGCONT)
        out, _ = self.process.communicate(timeout=120)
        return [float(word) for word in out.split()]


def watching(words: Sequence[str], file: Path, observer: str) -> subprocess.Popen[bytes]:
    command = [*words, sys.executable, "-m", "nephoscope", "sla", "watch"]
    command += [f"web=http://{FAR}:{PORT}/", "-o", str(file), "--observer", observer]
    command += ["--interval", f"{INTERVAL_S}s", "--timeout", f"{TIMEOUT_S}s", "--seed", "5"]
    return subprocess.Popen([*command, "--jitter", str(JITTER)], stdout=subprocess.DEVNULL)


def test_outages_are_recovered(tmp_path: Path, capsys: Capture) -> None:
    """Every outage is seen, its length within an interval; a blind observer changes nothing."""
    randomness = random.Random(20261123)
    faults = ["stop", "error", "slow", "link", "loss"]
    truth: list[tuple[float, float]] = []
    with pair() as ends:
        server = Faulty(ends)
        files = {name: tmp_path / f"{name}.csv" for name in ("a", "b", "blind")}
        # The third one has no route to the server at all.
        watches = [
            watching([] if name == "blind" else ends.near, file, name)
            for name, file in files.items()
        ]
        try:
            deadline = time.monotonic() + 120
            while not all(f.is_file() and f.read_text().count("\n") > 3 for f in files.values()):
                assert time.monotonic() < deadline
                time.sleep(0.2)
            for fault in faults:
                time.sleep(randomness.uniform(1.5, 2.5))
                start = time.time()
                server.begin(fault)
                time.sleep(randomness.uniform(1.2, 4.0))
                server.end(fault)
                truth.append((start, time.time()))
            time.sleep(2)
        finally:
            for watch in watches:
                watch.send_signal(signal.SIGTERM)
            codes = [watch.wait(20) for watch in watches]
            server.close()
    assert codes == [0, 0, 0]
    terms = agreement(
        tmp_path / "t.yaml",
        f"measure: availability, target: 99%, slot: {INTERVAL_S}s, failed_at_least: 50%",
        "period: day\n",
    )
    periods = run(capsys, "verdict", terms, *files.values(), code=0)["periods"]
    outages = [o for period in periods for o in period["objectives"][0]["outages"]]
    spans = [
        tuple(datetime.fromisoformat(o[end]).timestamp() for end in ("start", "end"))
        for o in outages
    ]
    for start, end in truth:
        seen = sum(
            max(0.0, min(b, end + INTERVAL_S) - max(a, start - INTERVAL_S)) for a, b in spans
        )
        # A server that goes on within the timeout answers the last probe of its outage.
        assert abs(seen - (end - start)) <= INTERVAL_S * (1 + JITTER) + TIMEOUT_S, (start, end)
    down = sum(b - a for a, b in spans)
    assert abs(down - sum(b - a for a, b in truth)) <= len(truth) * (INTERVAL_S + TIMEOUT_S)


@pytest.mark.parametrize("per_cent", [0, 2, 5])
def test_the_clients_time_from_the_servers_counters(per_cent: int, capsys: Capture) -> None:
    """Estimate within 10 % of the clients' true mean, from dropped SYNs and the server's times."""
    linear = Path("/proc/sys/net/ipv4/tcp_syn_linear_timeouts")
    with pair() as ends:
        server = Faulty(ends)
        server.set("take 0.08")
        syn = "add rule inet t in tcp flags & (syn | ack) == syn"
        server.far(
            "nft",
            "add table inet t; add chain inet t in { type filter hook input priority 0; };"
            f"{syn} counter; {syn} numgen random mod 100 < {per_cent or 1} counter "
            f"{'drop' if per_cent else 'accept'}",
        )
        clients = [*ends.near, sys.executable, str(CLIENTS), FAR, str(PORT), str(COUNT), "150"]
        truth = float(subprocess.run(clients, capture_output=True, timeout=120, check=True).stdout)
        listed = subprocess.run(
            [*ends.far, "nft", "-j", "list", "table", "inet", "t"], capture_output=True, check=True
        ).stdout
        attempts, dropped = (
            part["counter"]["packets"]
            for entry in json.loads(listed)["nftables"]
            if "rule" in entry
            for part in entry["rule"]["expr"]
            if "counter" in part
        )
        answers, server_s = server.close()
    assert answers == COUNT
    words = ["client-time", "--drop", f"{dropped / attempts if per_cent else 0:.6f}"]
    words += ["--server-time", f"{server_s * 1e6:.0f}us"]
    words += ["--linear-timeouts", linear.read_text().strip() if linear.is_file() else "0"]
    estimate = run(capsys, *words)["total_ns"] / 1e9
    bias = estimate / truth - 1
    text = (
        f"SYN drop {per_cent} %: client {truth:.4f} s, estimate {estimate:.4f} s, bias {bias:+.2%}"
    )
    sys.stderr.write(f"{text}\n")
    assert abs(bias) <= 0.10, text
