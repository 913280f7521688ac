"""Clients and servers as a table of the report, and as a sentence of the summary."""

from __future__ import annotations

from nephoscope.core.model import RunResult
from nephoscope.features.clients.result import ClientsAndServers
from nephoscope.report import wording
from nephoscope.report.blocks import Section
from nephoscope.report.columns import number, table, text


def build(result: RunResult) -> Section | None:
    """Returns a row for each benchmark with two ends and each target."""
    ends = result.part(ClientsAndServers)
    if ends is None:
        return None
    rows = table(
        ends.lines,
        text("benchmark", lambda line: line.benchmark),
        text("results of", lambda line: line.target),
        text("client on", lambda line: line.client),
        text("server on", lambda line: line.server),
        number("CPUs used by the client", lambda line: line.client_cpus, "none"),
        number("CPUs it can use", lambda line: line.usable_cpus, "none"),
        number("n", lambda line: line.trials),
    )
    return Section("clients-and-servers", "Clients and servers", (rows,))


def answer(result: RunResult) -> list[str]:
    """Returns where client and server ran, where several targets are compared as servers."""
    ends = result.part(ClientsAndServers)
    if ends is None:
        return []
    shared = list(dict.fromkeys(line.target for line in ends.lines if line.is_shared))
    served = [line for line in ends.lines if line.target != line.client]
    clients = list(dict.fromkeys(line.client for line in served))
    sentences = []
    if len(shared) > 1:
        sentences.append(
            f"Client and server shared the CPUs of each of {wording.joined(shared)}: the figures "
            "are of whole machines."
        )
    if len({line.target for line in served}) > 1:
        servers = wording.joined(list(dict.fromkeys(line.target for line in served)))
        sentences.append(f"The client ran on {wording.joined(clients)}; {servers} served.")
    return sentences
