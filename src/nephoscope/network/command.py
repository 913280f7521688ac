"""`nephoscope network`: what a series of packets or rates shows of a network path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from nephoscope import units
from nephoscope.commands import options
from nephoscope.commands.section_output import present
from nephoscope.errors import UsageError

_CODECS = ("g711", "g711-plain", "g729a", "g723.1", "gsm-efr")
_CODEC = click.option(
    "--codec",
    type=click.Choice(_CODECS),
    default="g711",
    show_default=True,
    help="Codec of the calls that are rated.",
)
_MTU = click.option(
    "--mtu",
    "mtu_bytes",
    type=click.IntRange(68, 65_535),
    default=1500,
    metavar="BYTES",
    show_default=True,
    help="Largest IP packet of the path.",
)


def _duration(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """Nanoseconds of an option with a duration of at most a day."""
    name = option.opts[0]
    seconds = options.seconds_of(name, text, (0, 86_400), "0 to 1 d")
    return None if seconds is None else seconds * 1e9


def _parsed(parse: Any) -> Any:
    def callback(context: click.Context, option: click.Parameter, text: str | None) -> Any:
        return None if text is None else options.parsed(option.opts[0], text, parse)

    return callback


_BYTES, _RATE = map(_parsed, (units.parse_bytes, units.parse_bits_per_s))


@contextmanager
def _refusals_of(source: str) -> Iterator[None]:
    """Raises UsageError where numbers of the user allow no analysis."""
    from nephoscope.analysis.statistics.values import Refused

    try:
        yield
    except Refused as reason:
        raise UsageError(f"{source}: {reason.message}", reason.hint) from None


@click.group(cls=options.InOrder)
def network() -> None:
    """Analyse a network path: delay, loss, calls, shaping."""


@network.command()
@click.argument("file", type=options.PATH)
@click.option(
    "--protocol",
    type=click.Choice(("tcp", "udp")),
    default="tcp",
    show_default=True,
    help="Protocol of the rates in a CSV or JSON file.",
)
@_CODEC
@click.option(
    "--buffer",
    "buffer_ns",
    metavar="TIME",
    callback=_duration,
    help="De-jitter buffer of the receiver [default: the one with the highest rating].",
)
@_MTU
@options.JSON
def series(
    file: Path,
    protocol: str,
    codec: str,
    buffer_ns: float | None,
    mtu_bytes: int,
    as_json: bool,
) -> int:
    """Analyse a series of delays or rates.

    FILE is the output of ping, of `iperf3 --json`, or CSV or JSON with columns such as rtt_ms,
    delay_ms, sequence, loaded, time_s and bits_per_s; docs/how-to/network-paths.md lists them.
    """
    from nephoscope.network import files, section
    from nephoscope.network.series import analyse_series

    with _refusals_of(str(file)):
        analysis = analyse_series(
            files.read(file, protocol), codec=codec, buffer_ns=buffer_ns, mtu_bytes=mtu_bytes
        )
    return present(analysis, section.path_section(analysis), as_json=as_json)


@network.command()
@click.option(
    "--delay",
    "delay_ns",
    required=True,
    metavar="TIME",
    callback=_duration,
    help="Mouth-to-ear delay: network, codec and de-jitter buffer.",
)
@click.option(
    "--loss",
    "lost_ratio",
    default="0",
    metavar="RATIO",
    show_default=True,
    callback=options.ratio(0, 1),
    help="Share of packets that are lost or late.",
)
@click.option(
    "--burst-ratio",
    type=options.FiniteRange(1, 1000),
    default=1.0,
    metavar="X",
    show_default=True,
    help="Mean length of runs of lost packets relative to that of random loss.",
)
@click.option(
    "--jitter",
    "jitter_ns",
    metavar="TIME",
    callback=_duration,
    help="Jitter, to check its limits.",
)
@_CODEC
@options.JSON
def voice(
    delay_ns: float,
    lost_ratio: float,
    burst_ratio: float,
    jitter_ns: float | None,
    codec: str,
    as_json: bool,
) -> int:
    """Rate calls (VoIP) by the E-model of ITU-T G.107."""
    from nephoscope.network import section
    from nephoscope.network import voice as calls
    from nephoscope.report.blocks import Section

    analysis = calls.quality(
        delay_ns, lost_ratio, burst=burst_ratio, codec=codec, jitter_ns=jitter_ns
    )
    page = Section("network", "Calls (voice over IP)", tuple(section.voice_blocks(analysis)))
    return present(analysis, page, as_json=as_json)


@network.command()
@click.option(
    "--outcomes",
    metavar="COUNTS",
    help="Numbers of pairs of probes by outcome, e.g. 00=980,01=5,10=5,11=10; 1 is loss.",
)
@click.option(
    "--slot",
    "slot_ns",
    metavar="TIME",
    callback=_duration,
    help="Time between the two probes of a pair.",
)
@click.option(
    "--sent", type=click.IntRange(1, 2**53), metavar="N", help="Number of packets that were sent."
)
@click.option(
    "--lost", type=click.IntRange(0, 2**53), metavar="N", help="Number of packets that were lost."
)
@options.JSON
def loss(
    outcomes: str | None, slot_ns: float | None, sent: int | None, lost: int | None, as_json: bool
) -> int:
    """Estimate the loss ratio and loss episodes.

    Frequency and duration of the episodes are those of Badabing.
    """
    from nephoscope.network import loss as losses
    from nephoscope.network import section

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
            analysis = losses.of_pairs(_counts(outcomes), slot_s=slot_ns / 1e9 if slot_ns else None)
    return present(analysis, section.loss_section(analysis), as_json=as_json)


def _counts(text: str) -> dict[str, int]:
    from nephoscope.network.loss import OUTCOMES

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
@click.option(
    "--sent", "sent_bytes", metavar="SIZE", callback=_BYTES, help="Bytes sent, all transmissions."
)
@click.option(
    "--retransmitted",
    "retransmitted_bytes",
    metavar="SIZE",
    callback=_BYTES,
    help="Bytes retransmitted.",
)
@click.option(
    "--base-rtt", "base_rtt_ns", metavar="TIME", callback=_duration, help="Round trip without load."
)
@click.option(
    "--loaded-rtt",
    "loaded_rtt_ns",
    metavar="TIME",
    callback=_duration,
    help="Round trip during the transfer.",
)
@click.option(
    "--actual", "actual_ns", metavar="TIME", callback=_duration, help="Duration of the transfer."
)
@click.option(
    "--ideal",
    "ideal_ns",
    metavar="TIME",
    callback=_duration,
    help="Ideal duration [default: sent bytes at the bottleneck, less headers].",
)
@click.option(
    "--bottleneck",
    "bottleneck_bits_per_s",
    metavar="RATE",
    callback=_RATE,
    help="Rate of the slowest link.",
)
@click.option(
    "--window", "window_bytes", metavar="SIZE", callback=_BYTES, help="Receive window of TCP."
)
@_MTU
@options.JSON
def tcp(actual_ns: float | None, ideal_ns: float | None, as_json: bool, **inputs: Any) -> int:
    """Compute the TCP figures of RFC 6349.

    They are efficiency, buffer delay and transfer-time ratio.
    """
    from nephoscope.network import section, transport

    ideal_s = None if ideal_ns is None else ideal_ns / 1e9
    with _refusals_of("network tcp"):
        analysis = transport.tcp_figures(
            actual_s=None if actual_ns is None else actual_ns / 1e9, ideal_s=ideal_s, **inputs
        )
    if analysis == transport.TcpFigures(ideal_s=ideal_s):
        raise UsageError(
            "These values give no figure of RFC 6349.",
            "Use --sent and --retransmitted, --base-rtt and --loaded-rtt, or --actual and --ideal.",
        )
    return present(analysis, section.tcp_section(analysis), as_json=as_json)


@network.command()
@click.argument("goodput", metavar="GOODPUT", callback=_RATE)
@click.option(
    "--protocol",
    type=click.Choice(("tcp", "udp")),
    default="tcp",
    show_default=True,
    help="Protocol that carried the payload.",
)
@click.option(
    "--variation",
    metavar="RATIO",
    callback=options.ratio(0, 1),
    help="Coefficient of variation of the goodput over time.",
)
@_MTU
@options.JSON
def link(
    goodput: float, protocol: str, variation: float | None, mtu_bytes: int, as_json: bool
) -> int:
    """Infer link technology or shaper from a goodput.

    GOODPUT is the rate of the payload, e.g. 941Mbit/s.
    """
    from nephoscope.network import bandwidth
    from nephoscope.report.blocks import Section, Sentence

    with _refusals_of("GOODPUT"):
        analysis = bandwidth.link(
            goodput, protocol=protocol, mtu_bytes=mtu_bytes, variation=variation
        )
    page = Section("network", "Link technology", (Sentence(analysis.sentence),))
    return present(analysis, page, as_json=as_json)


@network.command()
@click.argument("files", nargs=-1, required=True, type=options.PATH, metavar="FILE...")
@click.option(
    "--margin",
    default="3%",
    metavar="RATIO",
    show_default=True,
    callback=options.ratio(0, 0.99),
    help="Relative difference that counts as none.",
)
@options.REPORT_FILE
@options.JSON
def groups(files: Sequence[Path], margin: float, to: Path | None, as_json: bool) -> int:
    """Group instance types whose networks cannot be told apart.

    FILE is CSV with a column instance_type and columns such as rtt_ms or mbit_per_s.
    """
    from nephoscope.network import groups as grouping
    from nephoscope.network import section

    names = [str(file) for file in files]
    with _refusals_of(", ".join(names)):
        analysis = grouping.group(grouping.read(files), margin=margin, sources=names)
    page = section.groups_section(analysis)
    return present(analysis, page, as_json=as_json, to=to, source=", ".join(names))
