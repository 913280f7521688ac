"""`nephoscope network traffic`: bursts of a capture or a run, and what they cost a mobile radio."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument, duration, flag, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError

_RADIOS = ("wifi", "wifi-psm", "3g", "lte")


@dataclass(frozen=True, slots=True)
class _TrafficArguments:
    file: Path | None = argument(options.PATH, required=False, metavar="[FILE]")
    name: str | None = option("--run", RUN, "Stored run with transfers, instead of FILE.")
    to: str | None = option("--to", "ADDRESS", "Count only packets to this IP address.")
    gap_s: float = option(
        "--gap", duration("1 us", "1 h"), "Time without packets that ends a burst.", default="10ms"
    )
    names: Sequence[str] = repeated(
        "--radio", click.Choice(_RADIOS), "Radio of the receiver [default: all]."
    )
    values: Mapping[str, str] = options.set_option("Override a parameter of the radio, in W or s.")
    playback: bool = flag(
        "--playback", "Treat the traffic as a video download, and print the phases of its playback."
    )
    traces: Sequence[Path] = repeated(
        "--power", options.PATH, "Trace of a power meter (CSV) to compare with the radios."
    )
    power_start_s: float | None = option(
        "--power-start",
        options.FiniteRange(-1e11, 1e11),
        "Time of the trace, in s, at the first packet [default: the clock of the capture].",
    )
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("traffic", ".features.traffic.result:TrafficAnalysis"),
    requests=Query(),
    examples=(
        "capture.pcap --radio lte",
        "capture.pcap --playback",
        "capture.pcap --power meter.csv --radio lte",
    ),
)
def traffic(args: _TrafficArguments) -> int:
    """Analyse bursts of traffic and the energy of a mobile radio.

    FILE is a capture (pcap or pcapng), e.g. of `tcpdump -w`.
    """
    from nephoscope.features.traffic import captures, energy, power, result, section

    if (args.file is None) == (args.name is None):
        raise UsageError(
            "`network traffic` needs a capture or a stored run.", "Use FILE or --run RUN."
        )
    if args.to is not None and args.file is None:
        raise UsageError("--to selects packets of a capture.", "Use it with FILE.")
    if args.power_start_s is not None and not args.traces:
        raise UsageError("--power-start needs a trace of a power meter.", "Use it with --power.")
    traces = [power.read(trace) for trace in args.traces]
    radios = [energy.radio_of(name, args.values) for name in args.names or _RADIOS]
    sources: Iterable[tuple[str, captures.Packets]]
    if args.file is not None:
        address = None if args.to is None else captures.address_of(args.to)
        sources = [(str(args.file), captures.read(args.file, address))]
    else:
        from nephoscope.store import Store

        sources = result.of_run(Store(args.store).open(str(args.name)))
    analysis = result.analyse(
        sources,
        radios,
        gap_s=args.gap_s,
        playback=args.playback,
        traces=traces,
        trace_start_s=args.power_start_s,
    )
    return present(analysis, section.section(analysis), as_json=args.as_json)
