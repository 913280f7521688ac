"""Analyses of network paths, as blocks of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import RunResult
from nephoscope.features.network.distance import DistanceFit
from nephoscope.features.network.groups import NetworkGroups, TypeValues
from nephoscope.features.network.loss import Loss
from nephoscope.features.network.result import MeasuredPath, NetworkPaths
from nephoscope.features.network.series import PathAnalysis
from nephoscope.features.network.transport import TcpFigures
from nephoscope.features.network.voice import CODECS, VoiceQuality
from nephoscope.report import figures, violins, wording
from nephoscope.report.blocks import (
    Block,
    Chart,
    Heading,
    Section,
    Sentence,
    Spark,
    Table,
    items,
    thin,
)
from nephoscope.report.columns import fact_table, interval, number, table, text

_ROWS = 60
_DETAILED = 6
"""Paths of a run with details of their own; the others are in the table."""

Fact = tuple[str, str]


def build(result: RunResult) -> Section | None:
    """Returns the paths of a run: a table of all, details of the first ones, instance types."""
    analysis = result.part(NetworkPaths)
    if analysis is None:
        return None
    blocks: list[Block] = [_overview(analysis.paths)]
    for position, path in enumerate(analysis.paths[:_DETAILED]):
        setting = wording.factors_text(path.factors)
        ends = [path.target, path.peer or "its peer"]
        title = " to ".join(map(wording.clean, ends[::-1] if path.is_served else ends))
        details = list(path_blocks(path.analysis, f"network-{position}"))
        if details:
            blocks += [Heading(f"{title}, {path.benchmark}{f', {setting}' if setting else ''}")]
            blocks += details
    for fit in analysis.distances:
        blocks += distance_blocks(fit)
    if analysis.groups is not None:
        blocks += [Heading("Instance types by network"), *groups_blocks(analysis.groups)]
    return Section("network", "Network paths", tuple(blocks))


def distance_blocks(fit: DistanceFit) -> Iterable[Block]:
    """Yields throughput against round trip, with the fit and the residual of each path."""
    title = f"Throughput by round trip to {wording.clean(fit.peer or 'the peer')}"
    yield Heading(title)
    yield Sentence(
        f"{fit.sentence} The fit explains {100 * fit.explained:.0f} % of the variation; the "
        f"residuals vary by {100 * fit.residual_cv:.0f} %."
    )
    points = sorted(fit.points, key=lambda point: point.rtt_ns)
    listing = table(
        points,
        text("target", lambda point: point.target),
        number("round trip", lambda point: point.rtt_ns, "ns"),
        number("goodput", lambda point: 8 * point.goodput_bytes_per_s, "bits_per_s"),
        number("residual", lambda point: f"{100 * point.residual_ratio:+.1f} %"),
    )
    rtts = tuple(point.rtt_ns for point in points)
    rates = tuple(8 * point.goodput_bytes_per_s for point in points)
    fitted = tuple(
        rate / (1 + point.residual_ratio) for rate, point in zip(rates, points, strict=True)
    )
    yield Chart(
        f"network-distance-{wording.slug(fit.peer)}",
        title,
        figures.lines(
            [figures.Curve("measured", rtts, rates), figures.Curve("fit", rtts, fitted)],
            figures.Axis("round trip", "ns", log=True),
            figures.Axis("goodput", "bits_per_s", log=True),
        ),
        listing,
    )


def _overview(paths: Sequence[MeasuredPath]) -> Table:
    def voice(analysis: PathAnalysis) -> str:
        known = analysis.voice
        return "" if known is None else f"{known.rating:.0f}, {known.verdict}"

    return table(
        [(path, path.analysis) for path in paths],
        text("target", lambda row: row[0].target),
        text("peer", lambda row: row[0].peer),
        text("benchmark", lambda row: row[0].benchmark),
        text("setting", lambda row: wording.factors_text(row[0].factors), roomy=True),
        number("goodput", lambda row: _bits(row[1].goodput_bytes_per_s), missing=""),
        text("limit", lambda row: row[1].link and row[1].link.verdict),
        text("calls", lambda row: voice(row[1])),
        text(
            "under load", lambda row: row[1].latency_under_load and row[1].latency_under_load.grade
        ),
        text("congestion", lambda row: row[1].congestion and row[1].congestion.verdict, roomy=True),
    )


def _bits(bytes_per_s: float | None) -> str | None:
    return None if bytes_per_s is None else units.format_value(8 * bytes_per_s, "bits_per_s")


def page(title: str, blocks: Iterable[Block], *, id: str = "network") -> Section:
    """Returns the section of one analysis."""
    return Section(id, title, tuple(blocks))


def path_blocks(analysis: PathAnalysis, prefix: str = "network") -> Iterable[Block]:
    """Yields facts, charts and notes of one path."""
    lines = [*_delay_facts(analysis), *loss_facts(analysis.loss), *_rate_facts(analysis)]
    if lines:
        yield fact_table(lines)
    if analysis.link is not None:
        yield Sentence(analysis.link.sentence)
    yield from _rate_chart(analysis, prefix)
    if analysis.voice is not None:
        yield Heading("Calls (voice over IP)")
        yield from voice_blocks(analysis.voice)
    if analysis.congestion is not None:
        yield Heading("Congestion")
        yield Sentence(f"Verdict: {analysis.congestion.verdict}.")
        yield table(
            analysis.congestion.signs,
            text("sign", lambda sign: sign.id.replace("_", " ")),
            text("seen", lambda sign: sign.present),
            text("evidence", lambda sign: sign.evidence),
        )
    yield from items(analysis.notes)


def voice_blocks(analysis: VoiceQuality) -> Iterable[Block]:
    """Yields the rating of calls and the limits that they need."""
    yield Sentence(
        f"R {analysis.rating:.1f}, MOS {analysis.mos:.2f}: {analysis.verdict} (E-model, "
        f"{CODECS[analysis.codec].title})."
    )
    lines = [
        ("mouth-to-ear delay", units.format_value(analysis.mouth_to_ear_ns, "ns")),
        ("lost or late", wording.percent(analysis.lost_ratio, 3) or "0 %"),
        ("burst ratio", f"{analysis.burst_ratio:.2f}"),
        ("R, approximation by Cole and Rosenbluth", f"{analysis.approximate_rating:.1f}"),
    ]
    if analysis.buffer_ns is not None:
        lines.insert(1, ("de-jitter buffer", units.format_value(analysis.buffer_ns, "ns")))
    if analysis.ping_tool_mos is not None:
        lines.append(
            ("MOS by the formula of ping tools, not validated", f"{analysis.ping_tool_mos:.2f}")
        )
    yield fact_table(lines)
    yield table(
        analysis.limits,
        text("limit", lambda limit: limit.quantity),
        number("measured", lambda limit: units.format_value(limit.value, limit.unit)),
        number("good up to", lambda limit: units.format_value(limit.good, limit.unit)),
        number("maximum", lambda limit: units.format_value(limit.maximum, limit.unit)),
        text("verdict", lambda limit: limit.verdict),
    )
    yield from items(analysis.notes)


def groups_blocks(analysis: NetworkGroups) -> Iterable[Block]:
    """Yields the groups, the medians, and every value as a violin for each metric."""
    size = wording.plural(len(analysis.groups), "group")
    yield Sentence(
        f"{size} of instance types cannot be told apart within: differences up to "
        f"{100 * analysis.margin:g} % count as none, at {100 * analysis.confidence:g} % over all "
        "pairs (Holm). A type may belong to several groups.",
        lead=True,
    )
    letters = {
        name: ", ".join(str(at + 1) for at, row in enumerate(analysis.groups) if name in row)
        for name in {kind.instance_type for kind in analysis.types}
    }
    yield table(
        analysis.types,
        text("type", lambda row: row.instance_type),
        text("group", lambda row: letters[row.instance_type]),
        text("metric", lambda row: row.metric),
        *interval("median", lambda row: row.median),
        number("n", lambda row: len(row.values)),
    )
    for metric, own in group_by(analysis.types, lambda row: row.metric).items():
        yield _violins(metric, own)
    different = (f"{row.metric}: {row.sentence}" for row in analysis.pairs if row.differ)
    yield from items(different, folded="Differences")


def _violins(metric: str, types: Sequence[TypeValues]) -> Chart:
    unit = types[0].median.unit
    groups = [
        violins.ViolinGroup(wording.clean(type_values.instance_type), metric, type_values.values)
        for type_values in types
    ]
    listing = table(
        groups,
        text("type", lambda row: row.place),
        number("n", lambda row: len(row.values)),
        number("minimum", lambda row: min(row.values), unit),
        number("maximum", lambda row: max(row.values), unit),
    )
    axis = figures.Axis(metric, unit, from_zero=True)
    return Chart(
        f"network-groups-{wording.slug(metric)}",
        f"{metric.capitalize()} by instance type",
        violins.violins([group.place for group in groups], [metric], groups, axis),
        listing,
        f"All {sum(len(type_values.values) for type_values in types):,} values are drawn.",
    )


def _ns(value: float | None) -> str:
    return "too few packets" if value is None else units.format_value(value, "ns")


def _delay_facts(analysis: PathAnalysis) -> Iterable[Fact]:
    what = "one-way delay" if analysis.one_way else "round trip"
    if (row := analysis.delay) is not None:
        yield f"{what}, median", _ns(row.median_ns)
        yield f"{what}, minimum", _ns(row.minimum_ns)
        yield "jitter (RFC 3550)", f"{_ns(row.jitter_ns)}, at most {_ns(row.jitter_max_ns)}"
        yield "difference of consecutive delays, mean", _ns(row.ipdv_mean_ns)
        yield "delay variation above the minimum, p95", _ns(row.pdv_p95_ns)
        yield "delay variation above the minimum, p99.9", _ns(row.pdv_p99_9_ns)
    if (load := analysis.latency_under_load) is not None:
        yield f"{what} without load", _ns(load.idle_median_ns)
        yield f"{what} under load", f"{_ns(load.loaded_median_ns)}, grade {load.grade}"
        if load.round_trips_per_minute is not None:
            yield "round trips per minute under load", f"{load.round_trips_per_minute:,.0f}"


def loss_facts(analysis: Loss | None) -> Iterable[Fact]:
    """Yields ratio, clusters and episodes of loss."""
    if analysis is None:
        return
    yield "loss", f"{wording.estimate_text(analysis.ratio)}; {analysis.lost} of {analysis.sent}"
    if analysis.burst_ratio is not None:
        yield (
            "burst ratio of loss",
            f"{analysis.burst_ratio:.2f}; longest run {analysis.longest_run}",
        )
    if (episodes := analysis.episodes) is not None:
        yield "share of slots with loss", wording.estimate_text(episodes.frequency)
        if episodes.duration_slots is not None:
            of_time = "" if episodes.duration_s is None else f", {episodes.duration_s:.3g} s"
            slots = wording.estimate_text(episodes.duration_slots)
            yield "length of a loss episode", f"{slots} slots{of_time}"
        for problem in episodes.problems:
            yield "loss episodes", problem


def _rate_facts(analysis: PathAnalysis) -> Iterable[Fact]:
    if analysis.goodput_bytes_per_s is not None:
        yield "goodput, mean", units.format_value(8 * analysis.goodput_bytes_per_s, "bits_per_s")
    if analysis.offered_bytes_per_s is not None:
        yield "sent, mean", units.format_value(8 * analysis.offered_bytes_per_s, "bits_per_s")
    if analysis.reverse_goodput_bytes_per_s is not None:
        reverse = units.format_value(8 * analysis.reverse_goodput_bytes_per_s, "bits_per_s")
        yield "goodput in the other direction, at the same time", reverse
    if (bucket := analysis.token_bucket) is not None:
        yield "burst rate", units.format_value(8 * bucket.burst_bytes_per_s, "bits_per_s")
        yield "sustained rate", units.format_value(8 * bucket.sustained_bytes_per_s, "bits_per_s")
        yield "token bucket", f"{units.format_value(bucket.bucket_bytes, 'bytes')} of payload"
        yield "burst until the bucket is empty", f"{bucket.burst_s:.3g} s"
    if analysis.tcp is not None:
        yield from tcp_facts(analysis.tcp)


def tcp_facts(analysis: TcpFigures) -> Iterable[Fact]:
    """Yields the figures of RFC 6349 that are known."""
    for title, value in (
        ("TCP efficiency", analysis.efficiency_ratio),
        ("buffer delay", analysis.buffer_delay_ratio),
    ):
        if value is not None:
            yield f"{title} (RFC 6349)", wording.percent(value, 4) or "0 %"
    if analysis.transfer_time_ratio is not None:
        yield "transfer time ratio (RFC 6349)", f"{analysis.transfer_time_ratio:.3f}"
    for title, value, unit in (
        ("window that fills the path", analysis.bandwidth_delay_bytes, "bytes"),
        ("limit of the window", analysis.window_limit_bits_per_s, "bits_per_s"),
    ):
        if value is not None:
            yield title, units.format_value(value, unit)


def _rate_chart(analysis: PathAnalysis, prefix: str) -> Iterable[Chart]:
    rates = tuple(8 * rate for rate in analysis.rates_bytes_per_s)
    if len(rates) < 2:
        return
    # Of UDP a sender's report has what it sent in each interval, not what arrived.
    name = "sent" if analysis.rates_are_sent else "goodput"
    curve = figures.Curve(name, tuple(range(1, len(rates) + 1)), rates)
    figure = figures.lines(
        [curve],
        figures.Axis("interval", "count"),
        figures.Axis(name, "bits_per_s", from_zero=True),
        markers=len(rates) < _ROWS,
    )
    listing = table(
        thin(list(enumerate(rates, start=1)), _ROWS),
        number("interval", lambda row: row[0]),
        number(name, lambda row: row[1], "bits_per_s"),
    )
    yield Chart(
        f"{prefix}-goodput",
        f"{name.capitalize()} over time",
        figure,
        listing,
        sparks=(Spark(name, rates, "start", "end"),),
    )
