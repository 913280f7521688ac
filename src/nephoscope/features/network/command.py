"""`nephoscope network`: what a series of packets or rates shows of a network path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command, group
from nephoscope.cli.kit.options import BITS_PER_S, SIZE, Count, argument, duration, option, ratio
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError

_TIME = duration("0 s", "1 d")
_TIME_NS = duration("0 s", "1 d", unit="ns")
_CODEC = option(
    "--codec",
    click.Choice(("g711", "g711-plain", "g729a", "g723.1", "gsm-efr")),
    "Codec of the calls that are rated.",
    default="g711",
)
_MTU = option(
    "--mtu",
    click.IntRange(68, 65_535),
    "Largest IP packet of the path (MTU).",
    default=1500,
    metavar="BYTES",
)


def _protocol(doc: str) -> Any:
    return option("--protocol", click.Choice(("tcp", "udp")), doc, default="tcp")


@contextmanager
def _refusals_of(source: str) -> Iterator[None]:
    """Raises UsageError where numbers of the user allow no analysis."""
    from nephoscope.stats.statistics.values import Refused

    try:
        yield
    except Refused as reason:
        raise UsageError(f"{source}: {reason.message}", reason.hint) from None


@group()
def network() -> None:
    """Analyse a network path: delay, loss, calls, shaping."""


@dataclass(frozen=True, slots=True)
class _NetworkSeriesArguments:
    file: Path = argument(options.PATH)
    protocol: str = _protocol("Protocol of the rates in a CSV or JSON file.")
    codec: str = _CODEC
    buffer_ns: float | None = option(
        "--buffer",
        _TIME_NS,
        "De-jitter buffer of the receiver [default: the one with the highest rating].",
    )
    mtu_bytes: int = _MTU
    as_json: bool = options.JSON


@command(
    network,
    prints=Document("network_path", ".features.network.series:PathAnalysis"),
    requests=Query(),
    examples=(
        "delays.csv",
        "delays.csv --codec g729a --buffer 40ms",
    ),
)
def series(args: _NetworkSeriesArguments) -> int:
    """Analyse a series of delays or rates.

    FILE is the output of ping, of `iperf3 --json`, or CSV or JSON with columns such as rtt_ms,
    delay_ms, sequence, loaded, time_s and bits_per_s; docs/how-to/network-paths.md lists them.
    """
    from nephoscope.features.network import files, section
    from nephoscope.features.network.series import analyse_series

    with _refusals_of(str(args.file)):
        analysis = analyse_series(
            files.read(args.file, args.protocol),
            codec=args.codec,
            buffer_ns=args.buffer_ns,
            mtu_bytes=args.mtu_bytes,
        )
    page = section.page("Network path", section.path_blocks(analysis))
    return present(analysis, page, as_json=args.as_json)


@dataclass(frozen=True, slots=True)
class _NetworkVoiceArguments:
    delay_ns: float = option(
        "--delay",
        _TIME_NS,
        "Mouth-to-ear delay: network, codec and de-jitter buffer.",
        required=True,
    )
    loss: float = option(
        "--loss", ratio(0, 1), "Share of packets that are lost or late.", default="0"
    )
    burst: float = option(
        "--burst-ratio",
        options.FiniteRange(1, 1000),
        "Mean length of runs of lost packets relative to that of random loss.",
        default=1.0,
        metavar="X",
    )
    jitter_ns: float | None = option(
        "--jitter", _TIME_NS, "Jitter, to check whether calls tolerate it."
    )
    codec: str = _CODEC
    as_json: bool = options.JSON


@command(
    network,
    prints=Document("voice_quality", ".features.network.voice:VoiceQuality"),
    requests=Query(),
    examples=(
        "--delay 150ms --loss 2%",
        "--delay 150ms --jitter 20ms --codec g729a",
    ),
)
def voice(args: _NetworkVoiceArguments) -> int:
    """Rate calls (VoIP) by the E-model of ITU-T G.107."""
    from nephoscope.features.network import section
    from nephoscope.features.network import voice as calls

    analysis = calls.quality(
        args.delay_ns, args.loss, burst=args.burst, jitter_ns=args.jitter_ns, codec=args.codec
    )
    page = section.page("Calls (voice over IP)", section.voice_blocks(analysis))
    return present(analysis, page, as_json=args.as_json)


@dataclass(frozen=True, slots=True)
class _NetworkLossArguments:
    outcomes: str | None = option(
        "--outcomes",
        "COUNTS",
        "Numbers of pairs of probes by outcome, e.g. 00=980,01=5,10=5,11=10; 1 is loss.",
    )
    slot_s: float | None = option("--slot", _TIME, "Time between the two probes of a pair.")
    sent: int | None = option("--sent", Count(1, 2**53), "Number of packets that were sent.")
    lost: int | None = option("--lost", Count(0, 2**53), "Number of packets that were lost.")
    as_json: bool = options.JSON


@command(
    network,
    prints=Document("packet_loss", ".features.network.loss:Loss"),
    requests=Query(),
    examples=(
        "--sent 1000 --lost 3",
        "--outcomes 00=980,01=5,10=5,11=10 --slot 5ms",
    ),
)
def loss(args: _NetworkLossArguments) -> int:
    """Estimate the loss ratio and loss episodes.

    Frequency and duration of the episodes are those of Badabing.
    """
    from nephoscope.features.network import loss as losses
    from nephoscope.features.network import section
    from nephoscope.report.columns import fact_table

    if (args.outcomes is None) == (args.sent is None or args.lost is None):
        raise UsageError("`network loss` needs counts.", "Use --outcomes, or --sent and --lost.")
    if args.outcomes is None:
        assert args.sent is not None
        assert args.lost is not None
        if args.lost > args.sent:
            raise UsageError("--lost is larger than --sent.", "Swap the two numbers.")
        analysis = losses.of_counts(args.lost, args.sent)
    else:
        with _refusals_of("--outcomes"):
            analysis = losses.of_pairs(_counts(args.outcomes), slot_s=args.slot_s or None)
    page = section.page("Packet loss", [fact_table(section.loss_facts(analysis))])
    return present(analysis, page, as_json=args.as_json)


def _counts(text: str) -> dict[str, int]:
    from nephoscope.features.network.loss import OUTCOMES

    counts: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (word.strip() for word in part.partition("="))
        if name not in OUTCOMES or name in counts or not number.isdecimal() or len(number) > 15:
            raise UsageError(
                f"--outcomes: '{part.strip()[:40]}' is not a count of an outcome.",
                "Write each of 00, 01, 10 and 11 at most once: 00=980,01=5,10=5,11=10.",
            )
        counts[name] = int(number)
    return counts


@dataclass(frozen=True, slots=True)
class _NetworkTcpArguments:
    sent_bytes: int | None = option("--sent", SIZE, "Bytes sent, retransmissions included.")
    retransmitted_bytes: int | None = option("--retransmitted", SIZE, "Bytes retransmitted.")
    base_rtt_ns: float | None = option("--base-rtt", _TIME_NS, "Round-trip time without load.")
    loaded_rtt_ns: float | None = option(
        "--loaded-rtt", _TIME_NS, "Round-trip time during the transfer."
    )
    actual_s: float | None = option("--actual", _TIME, "Measured duration of the transfer.")
    ideal_s: float | None = option(
        "--ideal", _TIME, "Ideal duration [default: sent bytes at the bottleneck, less headers]."
    )
    bottleneck_bits_per_s: Any = option("--bottleneck", BITS_PER_S, "Rate of the slowest link.")
    window_bytes: int | None = option("--window", SIZE, "Receive window of TCP.")
    mtu_bytes: int = _MTU
    as_json: bool = options.JSON


@command(
    network,
    prints=Document("tcp_figures", ".features.network.transport:TcpFigures"),
    requests=Query(),
    examples=(
        "--base-rtt 5ms --window 64KiB",
        "--sent 100MB --retransmitted 2MB --base-rtt 25ms --loaded-rtt 32ms",
    ),
)
def tcp(args: _NetworkTcpArguments) -> int:
    """Compute the TCP figures of RFC 6349.

    They are efficiency, buffer delay and transfer-time ratio.
    """
    from nephoscope.features.network import section, transport
    from nephoscope.report.columns import fact_table

    with _refusals_of("network tcp"):
        analysis = transport.tcp_figures(
            sent_bytes=args.sent_bytes,
            retransmitted_bytes=args.retransmitted_bytes,
            base_rtt_ns=args.base_rtt_ns,
            loaded_rtt_ns=args.loaded_rtt_ns,
            actual_s=args.actual_s,
            ideal_s=args.ideal_s,
            bottleneck_bits_per_s=args.bottleneck_bits_per_s,
            window_bytes=args.window_bytes,
            mtu_bytes=args.mtu_bytes,
        )
    if analysis == transport.TcpFigures(ideal_s=args.ideal_s):
        raise UsageError(
            "These values give no figure of RFC 6349.",
            "Use --sent and --retransmitted, --base-rtt and --loaded-rtt, or --actual and --ideal.",
        )
    page = section.page("TCP (RFC 6349)", [fact_table(section.tcp_facts(analysis))])
    return present(analysis, page, as_json=args.as_json)


@dataclass(frozen=True, slots=True)
class _NetworkLinkArguments:
    goodput: float = argument(BITS_PER_S, metavar="GOODPUT")
    protocol: str = _protocol("Protocol that carried the payload.")
    variation: float | None = option(
        "--variation", ratio(0, 1), "Coefficient of variation of the goodput over time."
    )
    mtu_bytes: int = _MTU
    as_json: bool = options.JSON


@command(
    network,
    prints=Document("link_technology", ".features.network.bandwidth:LinkTechnology"),
    requests=Query(),
    examples=(
        "941Mbit/s",
        "88Mbit/s --protocol udp",
    ),
)
def link(args: _NetworkLinkArguments) -> int:
    """Infer link technology or shaper from a goodput.

    GOODPUT is the rate of the payload, e.g. 941Mbit/s.
    """
    from nephoscope.features.network import bandwidth, section
    from nephoscope.report.blocks import Sentence

    with _refusals_of("GOODPUT"):
        analysis = bandwidth.link(
            args.goodput, protocol=args.protocol, variation=args.variation, mtu_bytes=args.mtu_bytes
        )
    page = section.page("Link technology", [Sentence(analysis.sentence)])
    return present(analysis, page, as_json=args.as_json)


@dataclass(frozen=True, slots=True)
class _NetworkGroupsArguments:
    files: Sequence[Path] = argument(options.PATH, nargs=-1, required=True, metavar="FILE...")
    margin: float = option(
        "--margin",
        ratio(0, 0.99),
        "Largest relative difference that counts as equal.",
        default="3%",
    )
    to: Path | None = options.REPORT_FILE
    as_json: bool = options.JSON


@command(
    network,
    prints=Document("network_groups", ".features.network.groups:NetworkGroups"),
    requests=Query(),
    examples=(
        "types.csv",
        "types.csv --margin 5% -o types.html",
    ),
)
def groups(args: _NetworkGroupsArguments) -> int:
    """Group instance types whose networks cannot be told apart.

    FILE is CSV with a column instance_type and columns such as rtt_ms or mbit_per_s.
    """
    from nephoscope.features.network import groups as grouping
    from nephoscope.features.network import section

    names = [str(file) for file in args.files]
    with _refusals_of(", ".join(names)):
        analysis = grouping.group(grouping.read(args.files), margin=args.margin, sources=names)
    page = section.page(
        "Instance types by network", section.groups_blocks(analysis), id="network_groups"
    )
    return present(analysis, page, as_json=args.as_json, to=args.to, source=", ".join(names))
