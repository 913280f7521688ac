"""The report of load balancers: throughput, added latency, fairness, and failing servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.balance.plan import DIRECT
from nephoscope.features.balance.ratios import verdicts
from nephoscope.features.balance.records import (
    Balance,
    Failover,
    Sharing,
    Throughput,
)
from nephoscope.report import figures, wording
from nephoscope.report.blocks import Block, Chart, Heading, Section, Sentence, Table, Tile, items
from nephoscope.report.columns import count, estimate, interval, number, ratio, table, text

_CLOSE_S = 0.4
MAX_TIMELINES = 4
"""Timelines that are drawn, one for each balancer and failure; the table holds all trials."""


def build(result: RunResult) -> Section | None:
    """Curves and tables of each part that the run has."""
    balance = result.part(Balance)
    if balance is None:
        return None
    blocks: list[Block] = [Sentence(sentence, lead=True) for sentence in answer(result)]
    if balance.throughputs:
        blocks += [*_throughput(balance.throughputs)]
    if balance.ratios:
        blocks += [Heading("Throughput against each other"), ratios_table(balance)]
    if balance.effects:
        blocks += [Heading("Several generators against one"), effects_table(balance)]
    if balance.latencies:
        blocks += [Heading("Added response time"), latencies_table(balance)]
    if balance.sharings:
        blocks += [_sharing(balance.sharings)]
    if balance.failovers:
        blocks += [*_failovers(balance)]
    blocks += items(balance.notes)
    return Section("balance", "Load balancers", tuple(blocks))


def _highest(balance: Balance) -> dict[str, Estimate]:
    """Returns the highest throughput of each balancer, by its name."""
    lines = group_by(balance.throughputs, lambda throughput: throughput.balancer)
    return {
        name: max((line.throughput for line in own), key=lambda estimate: estimate.value)
        for name, own in lines.items()
    }


def headline(result: RunResult) -> list[Tile]:
    """Returns the highest throughput of each balancer, and what it adds to the response time."""
    balance = result.part(Balance)
    if balance is None:
        return []
    named = [("Highest throughput", name, value) for name, value in _highest(balance).items()]
    named += [
        ("Added to the mean response time", latency.balancer, added)
        for latency in balance.latencies
        if (added := latency.comparison.difference) is not None
    ]
    tiles = []
    for label, name, known in named:
        value, ends, n = wording.estimate_cells(known)
        tiles.append(Tile(label, wording.clean(name), value, ends, n, ""))
    return tiles


def answer(result: RunResult) -> list[str]:
    """Returns which balancer delivers more, their throughputs, what they add, cost of failures."""
    balance = result.part(Balance)
    if balance is None:
        return []
    # The summary shows the first sentences only, and the choice is among the balancers.
    among = [ratio for ratio in balance.ratios if ratio.reference != DIRECT]
    against_direct = [ratio for ratio in balance.ratios if ratio.reference == DIRECT]
    sentences = [wording.clean(verdict) for verdict in verdicts(among)]
    throughputs = [
        f"{wording.clean(name)} {wording.estimate_text(highest)}"
        for name, highest in _highest(balance).items()
    ]
    if throughputs:
        sentences.append(f"Highest throughput: {'; '.join(throughputs)}.")
    sentences += [wording.clean(verdict) for verdict in verdicts(against_direct)]
    for latency in balance.latencies:
        added = latency.comparison.difference
        if added is not None:
            sentences.append(
                f"{wording.clean(latency.balancer)} adds {wording.estimate_text(added)} to the "
                f"mean response time at {units.format_value(latency.rate_per_s, 'per_s')}."
            )
    for failure in balance.failures:
        noticed = wording.estimate_text(failure.noticed) if failure.noticed else "never"
        sentences.append(
            f"{wording.clean(failure.balancer)}, a server {failure.failure}: noticed after "
            f"{noticed}; failed requests per failure: {wording.estimate_text(failure.errors)}."
        )
    return sentences


def _curve_name(throughput: Throughput) -> str:
    return wording.clean(
        f"{throughput.balancer}, {wording.plural(throughput.generators, 'generator')}"
    )


def _throughput(points: Sequence[Throughput]) -> Iterable[Block]:
    parts: Sequence[tuple[str, str, str, Callable[[Throughput], Estimate]]] = (
        ("throughput", "throughput", "per_s", lambda throughput: throughput.throughput),
        ("response", "mean response time", "ns", lambda throughput: throughput.response_mean),
    )
    for slug, title, unit, of in parts:
        curves = []
        for name, own in group_by(points, _curve_name).items():
            hover = [
                f"{name}, {throughput.connections} connections: "
                f"{wording.estimate_text(of(throughput))}"
                for throughput in own
            ]
            xs = [float(throughput.connections) for throughput in own]
            curves.append(figures.curve_of(name, xs, [of(throughput) for throughput in own], hover))
        figure = figures.lines(
            curves,
            figures.Axis("connections", "count", from_zero=True),
            figures.Axis(title, unit, from_zero=True),
        )
        data = table(
            points,
            text("balancer", _curve_name),
            text("connections", lambda row: row.connections),
            *estimate("value", of),
        )
        yield Chart(
            f"balance-{slug}", f"{title.capitalize()} by connections", figure, data, brief=data
        )
    yield throughput_table(points)


def throughput_table(points: Sequence[Throughput]) -> Table:
    """Returns response times, CPU time and Little's law of each point."""
    return table(
        points,
        text("balancer", _curve_name),
        text("connections", lambda row: row.connections),
        *interval("p99", lambda row: row.response_p99),
        *interval("CPU per request", lambda row: row.cpu_per_request),
        number("connections in use", lambda row: row.in_flight_ratio),
        caption="Response time p99 of all generators together, CPU time of the balancer per "
        "request, and throughput X times mean response time R over the number of connections N. "
        "By Little's law it is 1 where each connection always waits for a response.",
    )


def ratios_table(balance: Balance) -> Table:
    """Returns the ratio of throughputs of every two alternatives, with its verdict."""
    return table(
        balance.ratios,
        text(
            "balancer",
            lambda row: f"{row.balancer}, {wording.plural(row.generators, 'generator')}",
        ),
        text("against", lambda row: row.reference),
        text("connections", lambda row: row.connections),
        *ratio("ratio", lambda row: row.comparison.ratio, lambda row: row.comparison.n_a),
        text("verdict", lambda row: row.comparison.verdict.word),
        caption="Throughput over that of the other one, paired by round; above 1 is better. "
        "Verdicts are corrected over all comparisons (Holm).",
    )


def effects_table(balance: Balance) -> Table:
    """Returns the ratio of throughputs of several generators and one, with its verdict."""
    return table(
        balance.effects,
        text("balancer", lambda row: row.balancer),
        text("generators", lambda row: f"{row.generators} against 1"),
        text("connections", lambda row: row.connections),
        *ratio("ratio", lambda row: row.comparison.ratio, lambda row: row.comparison.n_a),
        text("verdict", lambda row: row.comparison.verdict.word),
        caption="Throughput of several generators over that of one with as many connections in "
        "all, paired by round. Verdicts are corrected over all comparisons (Holm).",
    )


def latencies_table(balance: Balance) -> Table:
    """Returns what each balancer adds to the response time of an open loop."""
    return table(
        balance.latencies,
        text("balancer", lambda row: row.balancer),
        text("rate", lambda row: units.format_value(row.rate_per_s, "per_s")),
        number("direct", lambda row: row.direct),
        number("through the balancer", lambda row: row.through),
        *interval("added", lambda row: row.comparison.difference),
        number("network", lambda row: row.network_ratio),
        number("n", lambda row: row.comparison.n_a),
        caption="Mean response time directly and through the balancer, paired by round. Network: "
        "two round trips of a datagram over the response time through the balancer. They contain "
        "the wake-up of the programs at both ends, so that it is an upper bound of the network's "
        "share.",
    )


def _sharing(sharings: Sequence[Sharing]) -> Chart:
    servers = list(dict.fromkeys(name for sharing in sharings for name in sharing.shares))
    names = [wording.clean(sharing.balancer) for sharing in sharings]
    parts = [
        (
            server,
            [
                sharing.shares[server].value if server in sharing.shares else 0.0
                for sharing in sharings
            ],
        )
        for server in servers
    ]
    figure = figures.stacked(names, parts, figures.Axis("share of the requests", "ratio"))
    rows: list[tuple[Sharing, str, Estimate]] = []
    for sharing in sharings:
        rows += [(sharing, server, share) for server, share in sharing.shares.items()]
        rows.append((sharing, "Jain's index", sharing.fairness))
    data = table(
        rows,
        text("balancer", lambda row: row[0].balancer),
        text("server", lambda row: row[1]),
        *interval("share", lambda row: row[2]),
        number("due", lambda row: row[0].due.get(row[1]), "ratio", missing=""),
        number("n", lambda row: row[2].n),
    )
    caption = (
        "Requests by server from the servers' own counters. Jain's index of requests over "
        "weight: 1 where each server has its due share, 1/n where one of n has all."
    )
    return Chart("balance-sharing", "Requests by server", figure, data, caption, brief=data)


def _failovers(balance: Balance) -> Iterable[Block]:
    alike = group_by(balance.failovers, lambda failover: (failover.balancer, failover.failure))
    for first, *_ in list(alike.values())[:MAX_TIMELINES]:
        yield _timeline(first)
    yield Heading("Failures")
    yield failures_table(balance)
    yield failovers_table(balance)


def _timeline(failover: Failover) -> Chart:
    points = failover.timeline
    xs = tuple(point.at_s * 1e9 for point in points)
    curves = [
        figures.Curve(
            name,
            xs,
            values,
            hover=tuple(
                f"{name}, {point.at_s:.1f} s: {units.format_value(value, 'per_s')}"
                for point, value in zip(points, values, strict=True)
            ),
            step=True,
        )
        for name, values in (
            ("valid responses", tuple(point.responses_per_s for point in points)),
            ("of the failing server", tuple(point.failing_served_per_s for point in points)),
            ("failed requests", tuple(point.errors * _per_s(failover) for point in points)),
        )
    ]
    figure = figures.lines(
        curves,
        figures.Axis("time since the failure", "ns"),
        figures.Axis("requests", "per_s", from_zero=True),
        markers=False,
    )
    # Labels of moments that are close to each other would cover each other.
    at_once = failover.noticed_s is not None and failover.noticed_s < _CLOSE_S
    marks = [(0.0, "fails, noticed" if at_once else "fails"), (failover.length_s, "works again")]
    if failover.noticed_s is not None and not at_once:
        marks.append((failover.noticed_s, "noticed"))
    for at_s, label in marks:
        figures.vertical(figure["layout"], at_s * 1e9, label, log=False)
    data = table(
        points,
        text("time since the failure", lambda point: f"{point.at_s:.1f} s"),
        number("responses/s", lambda point: f"{point.responses_per_s:.0f}"),
        number("of the failing server/s", lambda point: f"{point.failing_served_per_s:.0f}"),
        number("failed requests", lambda point: f"{point.errors:.0f}"),
        collapsed=True,
    )
    name = wording.clean(failover.balancer)
    return Chart(
        f"balance-failover-{wording.slug(failover.balancer)}-{failover.failure}",
        f"{name}: a server {failover.failure}, round {failover.round}",
        figure,
        data,
        "Responses from the clients' counters, those of the failing server from its own log.",
        brief=None,
    )


def _per_s(failover: Failover) -> float:
    """Intervals a second."""
    points = failover.timeline
    return 1 / (points[1].at_s - points[0].at_s) if len(points) > 1 else 1.0


def failures_table(balance: Balance) -> Table:
    """Returns time to notice, return and errors of each balancer and failure."""

    def known(estimate: Estimate | None) -> str:
        return "never" if estimate is None else wording.estimate_text(estimate)

    return table(
        balance.failures,
        text("balancer", lambda row: row.balancer),
        text("failure", lambda row: row.failure),
        number("noticed after", lambda row: known(row.noticed)),
        number("first response after recovery", lambda row: known(row.returned)),
        number("failed requests", lambda row: known(row.errors)),
        number("slowest", lambda row: known(row.slowest)),
        caption="Medians of the rounds, with intervals.",
    )


def failovers_table(balance: Balance) -> Table:
    """Returns each trial with a failure: counts of the clients and of the balancer."""

    def kinds(failover: Failover) -> str:
        return ", ".join(f"{n} {kind}" for kind, n in sorted(failover.errors.items())) or "none"

    return table(
        balance.failovers,
        text("balancer", lambda row: row.balancer),
        text("failure", lambda row: row.failure),
        text("round", lambda row: row.round),
        count("sent", lambda row: row.sent),
        count("valid", lambda row: row.completed),
        count("failed", lambda row: sum(row.errors.values())),
        count("failed (balancer)", lambda row: row.failed),
        count("retries", lambda row: row.retries),
        number("noticed", lambda row: row.noticed_s and row.noticed_s * 1e9, "ns"),
        text("errors", kinds),
        caption="Counts of the clients beside the balancer's own.",
    )
