"""An adapter that only tests know, of a tool with a server: one file, as every adapter.

The server counts the bytes that it returns; the client measures how long they take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nephoscope.catalog import ADAPTER as KIND
from nephoscope.catalog import BenchmarkSpec, MetricSpec, ParamSpec
from nephoscope.catalog.adapters.frame import (
    ADDRESS,
    PEER_ADDRESS,
    PEER_PORT,
    PORT,
    TOOL,
    Adapter,
    Output,
    ToolCommand,
    ToolError,
    ToolServer,
    check_ending,
)
from nephoscope.catalog.meaning import Resource
from nephoscope.core.model import Better, Sample, Shape

_SERVER = """\
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listening = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family)
print("ready to echo", flush=True)
echoed = 0
try:
    while True:
        peer, _ = listening.accept()
        with peer:
            while data := peer.recv(65536):
                peer.sendall(data)
                echoed += len(data)
finally:
    print("echoed", echoed, flush=True)
"""

_CLIENT = """\
import socket, sys, time
count, began = int(sys.argv[3]), time.monotonic_ns()
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as peer:
    for _ in range(count):
        peer.sendall(b"x")
        assert peer.recv(1) == b"x"
print("round trips", count, "in", time.monotonic_ns() - began, "ns")
"""

SPEC = BenchmarkSpec(
    id="toy.echo",
    summary="A byte there and back",
    params=(ParamSpec("count", "int", "count", 20, "Round trips.", min=1, max=1000),),
    metrics=(MetricSpec("echo_ns", "ns", Better.LOWER, Shape.SCALAR, True, "One of them."), TOOL),
    overhead="none",
    source="a test",
    two_sided=True,
    kind=KIND,
    tool="python3",
    minimum="3.6",
    install="apt-get install python3",
    resource=Resource.NETWORK,
    page="",
)


def command(params: Mapping[str, Any]) -> ToolCommand:
    """Returns how the client is called."""
    return ToolCommand(("-c", _CLIENT, PEER_ADDRESS, PEER_PORT, str(params["count"])))


def parse(output: Output) -> list[Sample]:
    """Returns the mean of the round trips."""
    check_ending(output)
    found = re.search(r"round trips (\d+) in (\d+) ns", output.stdout)
    if found is None:
        raise ToolError("it printed no result.")
    return [Sample("echo_ns", int(found[2]) / int(found[1]))]


def version(output: Output) -> str:
    """Returns the version of python3."""
    if not output.stdout.startswith("Python 3"):
        # A trial's output has none; the version was asked for before.
        return "3"
    return output.stdout.split()[1]


def counters(output: Output) -> dict[str, Any]:
    """Returns how many bytes the server sent back."""
    found = re.search(r"echoed (\d+)", output.stdout)
    if found is None:
        raise ToolError("it printed no count.")
    return {"echoed_bytes": int(found[1])}


ADAPTER = Adapter(
    SPEC,
    command,
    ToolCommand(("--version",)),
    version,
    parse,
    ToolServer(
        "python3",
        lambda _: ToolCommand(("-c", _SERVER, ADDRESS, PORT)),
        install="apt-get install python3",
        ready_text="ready to echo",
        counters=counters,
    ),
)
