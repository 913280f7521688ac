"""Both sides of a two-sided benchmark in the hands of a test."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import veth
from channel import TOKEN, Controlled, controlled, peer_line
from cpu_truth import Group
from line_truth import Wire
from trials import Trial


class Measured(Trial):
    """The near side's trial, with what the far side says it served.

    sides_cpu_s: CPU time (s) of both processes, by the kernel's account.
    """

    served: dict[str, Any]
    sides_cpu_s: dict[str, float]

    def of(self, metric: str, **factors: Any) -> float:
        (value,) = [
            float(s["value"])
            for s in self.samples
            if s["metric"] == metric and factors.items() <= s.get("factors", {}).items()
        ]
        return value

    def quantile(self, metric: str, q: float, **factors: Any) -> float:
        pairs = sorted(
            (s["value"], s["count"])
            for s in self.samples
            if s["metric"] == metric and factors.items() <= s.get("factors", {}).items()
        )
        total, seen = sum(count for _, count in pairs), 0
        for value, count in pairs:
            seen += count
            if seen >= q * total:
                return float(value)
        raise AssertionError(f"no {metric}")


def measure(
    benchmark: str,
    params: dict[str, Any],
    *,
    path: veth.Pair | Wire | None = None,
    favoured: Group | None = None,
    stop_after_s: float | None = None,
    stops_server: bool = False,
    meanwhile: Callable[[Controlled, Controlled], object] = lambda near, far: None,
) -> Measured:
    """Both sides of one trial, on loopback or through a pair of ports.

    stops_server: the near side does not tell the far side that it has ended. meanwhile: gets both
    once the trial has begun.
    """
    first = favoured.inside([]) if favoured else []
    more = ["--bind", path.far_address] if path else []
    with ExitStack() as stack:
        before = [*first, *(path.far if path else [])]
        server = stack.enter_context(controlled("serve", benchmark, {}, more=more, before=before))
        before = [*first, *(path.near if path else [])]
        client = stack.enter_context(controlled("run", benchmark, params, before=before))
        server.say(f"token {TOKEN}")
        client.say(peer_line(server.ready()))
        client.ready()
        client.say("go")
        meanwhile(client, server)
        if stop_after_s is not None:
            time.sleep(stop_after_s)
            client.say("stop")
        text = client.rest()
        assert client.process.returncode == 0, text[-600:]
        if stops_server:
            server.say("stop")
        measured = Measured(text)
        measured.served = server.trial().done["served"]
        measured.sides_cpu_s = {"near": client.cpu_s, "far": server.cpu_s}
    return measured
