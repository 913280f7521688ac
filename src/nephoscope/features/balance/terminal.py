"""What `balance` prints: a table for each part of the result."""

from __future__ import annotations

from nephoscope.cli.kit import output
from nephoscope.core.model import RunResult
from nephoscope.features.balance import section
from nephoscope.features.balance.records import Balance
from nephoscope.report import wording
from nephoscope.report.blocks import Table


def text(result: RunResult) -> str:
    """Returns throughput, added response time, fairness and failures, and what was excluded."""
    balance = result.part(Balance)
    if balance is None:
        nothing = ["No load balancer can be judged: no trial is valid."]
        return "\n".join([*nothing, *wording.exclusions_by_reason(result)])
    parts = [output.wrapped(sentence, rest="") for sentence in section.answer(result)]
    if balance.throughputs:
        parts.append(_throughput(balance))
    if balance.ratios:
        parts.append(_table(section.ratios_table(balance)))
    if balance.effects:
        parts.append(_table(section.effects_table(balance)))
    if balance.latencies:
        parts.append(_table(section.latencies_table(balance)))
    if balance.sharings:
        parts.append(_fairness(balance))
    if balance.failovers:
        parts += [_table(section.failures_table(balance)), _table(section.failovers_table(balance))]
    warnings = [
        *wording.excluded_rows(result),
        *wording.exclusions_by_reason(result),
        *balance.notes,
    ]
    parts += [output.wrapped(f"! {row}", rest="") for row in warnings]
    parts.append(wording.run_line(result))
    return "\n\n".join(parts)


def _table(table: Table) -> str:
    head = tuple(column.title.upper() for column in table.columns)
    right = tuple(at for at, column in enumerate(table.columns) if column.numeric)
    rows = [tuple(str(cell) for cell in row) for row in table.rows]
    return output.table(head, rows, right=right)


def _throughput(balance: Balance) -> str:
    rows = [
        (
            throughput.balancer,
            str(throughput.generators),
            str(throughput.connections),
            wording.value_text(throughput.throughput),
            wording.interval_text(throughput.throughput),
            wording.value_text(throughput.response_mean),
            wording.value_text(throughput.response_p99) if throughput.response_p99 else "–",
            wording.value_text(throughput.cpu_per_request) if throughput.cpu_per_request else "–",
            wording.value_text(throughput.in_flight_ratio),
        )
        for throughput in balance.throughputs
    ]
    head = (
        *("BALANCER", "GENERATORS", "CONNECTIONS", "THROUGHPUT", "INTERVAL", "MEAN", "P99"),
        *("CPU/REQUEST", "IN USE"),
    )
    return output.table(head, rows, right=tuple(range(1, len(head))))


def _fairness(balance: Balance) -> str:
    rows = [
        (
            sharing.balancer,
            wording.value_text(sharing.fairness),
            wording.interval_text(sharing.fairness),
            ", ".join(f"{name} {wording.value_text(x)}" for name, x in sharing.shares.items()),
        )
        for sharing in balance.sharings
    ]
    return output.table(("BALANCER", "FAIRNESS", "INTERVAL", "SHARES"), rows, right=(1, 2))
