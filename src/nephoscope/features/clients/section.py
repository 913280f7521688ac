"""Clients and servers as a table of the report, and as a sentence of the summary."""

from __future__ import annotations

from nephoscope.core import units
from nephoscope.core.model import RunResult
from nephoscope.features.clients.result import ClientsAndServers, EndsOfResult
from nephoscope.report import wording
from nephoscope.report.blocks import Cell, Column, Section, Table


def build(result: RunResult) -> Section | None:
    """Returns a row for each benchmark with two ends and each target."""
    ends = result.part(ClientsAndServers)
    if ends is None:
        return None
    table = Table(
        (
            *Column.texts("benchmark", "results of", "client on", "server on"),
            *Column.numbers("CPUs used by the client", "CPUs it can use", "n"),
        ),
        tuple(map(_row, ends.lines)),
    )
    return Section("clients-and-servers", "Clients and servers", (table,))


def _row(line: EndsOfResult) -> tuple[Cell, ...]:
    return (
        line.benchmark,
        *map(wording.clean, (line.target, line.client, line.server)),
        *(
            "–" if value is None else units.format_number(value)
            for value in (line.client_cpus, line.usable_cpus)
        ),
        str(line.trials),
    )


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
