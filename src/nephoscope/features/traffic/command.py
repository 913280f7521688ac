"""`nephoscope traffic`: bursts of a capture or a run, and what they cost a mobile radio."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.options import duration, flag, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError

_RADIOS = ("wifi", "wifi-psm", "3g", "lte")


@click.command()
@click.argument("file", required=False, type=options.PATH, metavar="[FILE]")
@option("--run name", "RUN", "Stored run with transfers, instead of FILE.")
@option("--to", "ADDRESS", "Count only packets to this IP address.")
@option(
    "--gap gap_s",
    duration("1 us", "1 h"),
    "Time without packets that ends a burst.",
    default="10ms",
)
@repeated("--radio names", click.Choice(_RADIOS), "Radio of the receiver [default: all].")
@options.set_option("Override a parameter of the radio, in W or s.")
@flag("--playback", "Treat the traffic as a video download, and print the phases of its playback.")
@options.STORE
@options.JSON
def traffic(
    file: Path | None,
    name: str | None,
    to: str | None,
    gap_s: float,
    names: Sequence[str],
    values: Mapping[str, str],
    playback: bool,
    store: Path | None,
    as_json: bool,
) -> int:
    """Analyse bursts of traffic and the energy of a mobile radio.

    FILE is a capture (pcap or pcapng), e.g. of `tcpdump -w`.
    """
    from nephoscope.features.traffic import captures, energy, result, text

    if (file is None) == (name is None):
        raise UsageError("`traffic` needs a capture or a stored run.", "Use FILE or --run RUN.")
    if to is not None and file is None:
        raise UsageError("--to selects packets of a capture.", "Use it with FILE.")
    radios = [energy.radio_of(one, values) for one in names or _RADIOS]
    sources: Iterable[tuple[str, captures.Packets]]
    if file is not None:
        address = None if to is None else captures.address_of(to)
        sources = [(str(file), captures.read(file, address))]
    else:
        from nephoscope.store import Store

        sources = result.of_run(Store(store).open(str(name)))
    analysis = result.analyse(sources, radios, gap_s=gap_s, playback=playback)
    return present(analysis, text.section(analysis), as_json=as_json)
