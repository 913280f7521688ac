"""Findings on clients: one that was the bottleneck, and one that shared its server's CPUs."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.core.model import Finding, Severity
from nephoscope.features.clients.result import ClientsAndServers, EndsOfResult
from nephoscope.stats.target_evidence import Answers, TargetEvidence


def _lines(case: TargetEvidence) -> Iterator[EndsOfResult]:
    clients = case.part(ClientsAndServers)
    return (line for line in (clients.lines if clients else ()) if line.target == case.target)


def client_bound(case: TargetEvidence) -> Answers:
    """Servers that could do more than their client asked of them."""
    for line in _lines(case):
        if not line.is_client_bound or line.client_cpus is None or line.usable_cpus is None:
            continue
        yield Finding(
            "client_bound",
            Severity.WARNING,
            f"The client of {line.benchmark} on {line.client} was the bottleneck: it used "
            f"{_cpus(line.client_cpus)} of the {_cpus(line.usable_cpus)} CPUs that its threads can "
            "use. The server can do more than was measured.",
            (f"median over {line.trials} trials",),
            "Use a larger client, or more threads of it (`threads`), and compare again.",
        )


def shared_cpus(case: TargetEvidence) -> Answers:
    """Targets that ran client and server."""
    lines = [line for line in _lines(case) if line.is_shared]
    if not lines:
        return
    names = " and ".join(dict.fromkeys(line.benchmark for line in lines))
    used = [
        f"{line.benchmark}: its client used {_cpus(line.client_cpus)} CPUs (median over "
        f"{line.trials} trials)"
        for line in lines
        if line.client_cpus is not None
    ]
    yield Finding(
        "client_beside_server",
        Severity.NOTICE,
        f"Client and server of {names} shared the CPUs of this machine: the figures are of the "
        "machine as a whole.",
        tuple(used),
        "For the server alone, name a machine for the client (`--client`).",
    )


def _cpus(value: float | None) -> str:
    return "?" if value is None else units.format_number(value)


RULES = (client_bound, shared_cpus)
