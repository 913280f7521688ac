"""`nephoscope network`: what a series of packets or rates shows of a network path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.options import BITS_PER_S, SIZE, Count, Function, duration, option, ratio
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
    "--mtu mtu_bytes",
    click.IntRange(68, 65_535),
    "Largest IP packet of the path (MTU).",
    default=1500,
    metavar="BYTES",
)


def _protocol(doc: str) -> Callable[[Function], Function]:
    return option("--protocol", click.Choice(("tcp", "udp")), doc, default="tcp")


@contextmanager
def _refusals_of(source: str) -> Iterator[None]:
    """Raises UsageError where numbers of the user allow no analysis."""
    from nephoscope.stats.statistics.values import Refused

    try:
        yield
    except Refused as reason:
        raise UsageError(f"{source}: {reason.message}", reason.hint) from None


@click.group(cls=options.InOrder)
def network() -> None:
    """Analyse a network path: delay, loss, calls, shaping."""


@network.command()
@click.argument("file", type=options.PATH)
@_protocol("Protocol of the rates in a CSV or JSON file.")
@_CODEC
@option(
    "--buffer buffer_ns",
    _TIME_NS,
    "De-jitter buffer of the receiver [default: the one with the highest rating].",
)
@_MTU
@options.JSON
def series(file: Path, protocol: str, as_json: bool, **path: Any) -> int:
    """Analyse a series of delays or rates.

    FILE is the output of ping, of `iperf3 --json`, or CSV or JSON with columns such as rtt_ms,
    delay_ms, sequence, loaded, time_s and bits_per_s; docs/how-to/network-paths.md lists them.
    """
    from nephoscope.features.network import files, section
    from nephoscope.features.network.series import analyse_series

    with _refusals_of(str(file)):
        analysis = analyse_series(files.read(file, protocol), **path)
    page = section.page("Network path", section.path_blocks(analysis))
    return present(analysis, page, as_json=as_json)


@network.command()
@option(
    "--delay delay_ns",
    _TIME_NS,
    "Mouth-to-ear delay: network, codec and de-jitter buffer.",
    required=True,
)
@option("--loss", ratio(0, 1), "Share of packets that are lost or late.", default="0")
@option(
    "--burst-ratio burst",
    options.FiniteRange(1, 1000),
    "Mean length of runs of lost packets relative to that of random loss.",
    default=1.0,
    metavar="X",
)
@option("--jitter jitter_ns", _TIME_NS, "Jitter, to check whether calls tolerate it.")
@_CODEC
@options.JSON
def voice(delay_ns: float, loss: float, as_json: bool, **path: Any) -> int:
    """Rate calls (VoIP) by the E-model of ITU-T G.107."""
    from nephoscope.features.network import section
    from nephoscope.features.network import voice as calls

    analysis = calls.quality(delay_ns, loss, **path)
    page = section.page("Calls (voice over IP)", section.voice_blocks(analysis))
    return present(analysis, page, as_json=as_json)


@network.command()
@option(
    "--outcomes",
    "COUNTS",
    "Numbers of pairs of probes by outcome, e.g. 00=980,01=5,10=5,11=10; 1 is loss.",
)
@option("--slot slot_s", _TIME, "Time between the two probes of a pair.")
@option("--sent", Count(1, 2**53), "Number of packets that were sent.")
@option("--lost", Count(0, 2**53), "Number of packets that were lost.")
@options.JSON
def loss(
    outcomes: str | None, slot_s: float | None, sent: int | None, lost: int | None, as_json: bool
) -> int:
    """Estimate the loss ratio and loss episodes.

    Frequency and duration of the episodes are those of Badabing.
    """
    from nephoscope.features.network import loss as losses
    from nephoscope.features.network import section
    from nephoscope.report.blocks import facts

    if (outcomes is None) == (sent is None or lost is None):
        raise UsageError("`network loss` needs counts.", "Use --outcomes, or --sent and --lost.")
    if outcomes is None:
        assert sent is not None
        assert lost is not None
        if lost > sent:
            raise UsageError("--lost is larger than --sent.", "Swap the two numbers.")
        analysis = losses.of_counts(lost, sent)
    else:
        with _refusals_of("--outcomes"):
            analysis = losses.of_pairs(_counts(outcomes), slot_s=slot_s or None)
    page = section.page("Packet loss", [facts(section.loss_facts(analysis))])
    return present(analysis, page, as_json=as_json)


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


@network.command()
@option("--sent sent_bytes", SIZE, "Bytes sent, retransmissions included.")
@option("--retransmitted retransmitted_bytes", SIZE, "Bytes retransmitted.")
@option("--base-rtt base_rtt_ns", _TIME_NS, "Round-trip time without load.")
@option("--loaded-rtt loaded_rtt_ns", _TIME_NS, "Round-trip time during the transfer.")
@option("--actual actual_s", _TIME, "Measured duration of the transfer.")
@option(
    "--ideal ideal_s",
    _TIME,
    "Ideal duration [default: sent bytes at the bottleneck, less headers].",
)
@option("--bottleneck bottleneck_bits_per_s", BITS_PER_S, "Rate of the slowest link.")
@option("--window window_bytes", SIZE, "Receive window of TCP.")
@_MTU
@options.JSON
def tcp(as_json: bool, **inputs: Any) -> int:
    """Compute the TCP figures of RFC 6349.

    They are efficiency, buffer delay and transfer-time ratio.
    """
    from nephoscope.features.network import section, transport
    from nephoscope.report.blocks import facts

    with _refusals_of("network tcp"):
        analysis = transport.tcp_figures(**inputs)
    if analysis == transport.TcpFigures(ideal_s=inputs["ideal_s"]):
        raise UsageError(
            "These values give no figure of RFC 6349.",
            "Use --sent and --retransmitted, --base-rtt and --loaded-rtt, or --actual and --ideal.",
        )
    page = section.page("TCP (RFC 6349)", [facts(section.tcp_facts(analysis))])
    return present(analysis, page, as_json=as_json)


@network.command()
@click.argument("goodput", metavar="GOODPUT", type=BITS_PER_S)
@_protocol("Protocol that carried the payload.")
@option("--variation", ratio(0, 1), "Coefficient of variation of the goodput over time.")
@_MTU
@options.JSON
def link(goodput: float, as_json: bool, **path: Any) -> int:
    """Infer link technology or shaper from a goodput.

    GOODPUT is the rate of the payload, e.g. 941Mbit/s.
    """
    from nephoscope.features.network import bandwidth, section
    from nephoscope.report.blocks import Sentence

    with _refusals_of("GOODPUT"):
        analysis = bandwidth.link(goodput, **path)
    page = section.page("Link technology", [Sentence(analysis.sentence)])
    return present(analysis, page, as_json=as_json)


@network.command()
@click.argument("files", nargs=-1, required=True, type=options.PATH, metavar="FILE...")
@option(
    "--margin", ratio(0, 0.99), "Largest relative difference that counts as equal.", default="3%"
)
@options.REPORT_FILE
@options.JSON
def groups(files: Sequence[Path], margin: float, to: Path | None, as_json: bool) -> int:
    """Group instance types whose networks cannot be told apart.

    FILE is CSV with a column instance_type and columns such as rtt_ms or mbit_per_s.
    """
    from nephoscope.features.network import groups as grouping
    from nephoscope.features.network import section

    names = [str(file) for file in files]
    with _refusals_of(", ".join(names)):
        analysis = grouping.group(grouping.read(files), margin=margin, sources=names)
    page = section.page(
        "Instance types by network", section.groups_blocks(analysis), id="network_groups"
    )
    return present(analysis, page, as_json=as_json, to=to, source=", ".join(names))
