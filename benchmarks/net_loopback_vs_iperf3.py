"""net.loopback beside iperf3: TCP throughput of one stream on 127.0.0.1, counted at the receiver.

Both write and read 128 KiB at a time and leave socket buffers and CPUs to the system. Bound: at
least 0.97 times iperf3's throughput.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time

from _paired import (
    arguments,
    compare,
    finish,
    machine,
    needed,
    one_value,
    parse,
    print_table,
    probe_path,
    run_probe,
    version,
)

BOUND = (0.97, None)


def ours(args: argparse.Namespace) -> float:
    """Bytes received a second in one trial of net.loopback."""
    params = {"part": ["throughput"], "duration_ns": args.seconds * 1_000_000_000}
    return one_value(run_probe("net.loopback", params), "loopback_bytes_per_s")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def iperf3(args: argparse.Namespace) -> float:
    """Bytes received a second in one run of iperf3; its server ends with that one test."""
    port = str(free_port())
    listen = ["iperf3", "--server", "--one-off", "--bind", "127.0.0.1", "--port", port]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(listen, stdout=quiet, stderr=quiet) as server:
        try:
            wait_until_listening(int(port))
            command = ["iperf3", "--client", "127.0.0.1", "--port", port, "--json"]
            command += ["--time", str(args.seconds)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            record = json.loads(done.stdout)
            if done.returncode != 0:
                raise RuntimeError(f"iperf3 ended with {done.returncode}: {record.get('error')}")
            return float(record["end"]["sum_received"]["bits_per_second"]) / 8
        finally:
            server.terminate()


def wait_until_listening(port: int) -> None:
    """Waits for a listening socket without connecting: the server serves one connection only."""
    wanted = f"0100007F:{port:04X}" if sys.byteorder == "little" else f"7F000001:{port:04X}"
    for _ in range(500):
        with open("/proc/net/tcp") as table:
            # Fourth column 0A is LISTEN.
            if any(line.split()[1:4:2] == [wanted, "0A"] for line in table):
                return
        time.sleep(0.01)
    raise RuntimeError(f"iperf3 does not listen on port {port}")


def main() -> int:
    """Runs the comparison; 0 when the bound holds."""
    parser = arguments("net.loopback beside iperf3: TCP throughput of one stream")
    parser.add_argument("--seconds", type=int, default=1, help="counted time of a trial")
    args = parse(parser)
    needed("iperf3", "iperf3")
    os.environ.setdefault("LC_ALL", "C")
    facts = machine()
    row = compare(
        "TCP, one stream",
        "bytes_per_s",
        lambda: ours(args),
        lambda: iperf3(args),
        BOUND,
        args.rounds,
        args.seed,
    )
    print_table([row], "iperf3")
    versions = {"probe": version(probe_path(), "version"), "iperf3": version("iperf3", "--version")}
    settings = {
        "seconds": args.seconds,
        "seed": args.seed,
        "nice": args.nice,
        "realtime": args.realtime,
    }
    return finish("net-loopback", [row], versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
