"""`nephoscope traffic`: bursts of a capture or a run, and what they cost a mobile radio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from nephoscope.commands import options
from nephoscope.commands.section_output import present
from nephoscope.errors import UsageError

_RADIOS = ("wifi", "wifi-psm", "3g", "lte")


@click.command()
@click.argument("file", required=False, type=options.PATH, metavar="[FILE]")
@click.option("--run", "name", metavar="RUN", help="Stored run with transfers, instead of FILE.")
@click.option("--to", metavar="ADDRESS", help="Count only packets to this IP address.")
@click.option(
    "--gap",
    metavar="TIME",
    default="10ms",
    show_default=True,
    help="Time without packets that ends a burst.",
)
@click.option(
    "--radio",
    "names",
    multiple=True,
    type=click.Choice(_RADIOS),
    help="Radio of the receiver; may be repeated [default: all].",
)
@options.set_option("Override a parameter of the radio, in W or s")
@click.option(
    "--playback",
    is_flag=True,
    help="Take the traffic as the download of a video; print the phases of its playback.",
)
@options.STORE
@options.JSON
def traffic(
    file: Path | None,
    name: str | None,
    to: str | None,
    gap: str,
    names: Sequence[str],
    values: Mapping[str, str],
    playback: bool,
    store: Path | None,
    as_json: bool,
) -> int:
    """Analyse bursts of traffic and the energy of a mobile radio.

    FILE is a capture (pcap or pcapng), e.g. of `tcpdump -w`.
    """
    from nephoscope.traffic import captures, energy, result, text

    if (file is None) == (name is None):
        raise UsageError("`traffic` needs a capture or a stored run.", "Use FILE or --run RUN.")
    if to is not None and file is None:
        raise UsageError("--to selects packets of a capture.", "Use it with FILE.")
    gap_s: Any = options.seconds_of("--gap", gap, (1e-6, 3600), "1 µs to 1 h")
    if file is not None:
        sources = result.of_capture(file, None if to is None else captures.address_of(to))
    else:
        from nephoscope.store import Store

        sources = result.of_run(Store(store).open(str(name)))
    radios = [energy.radio_of(one, values) for one in names or _RADIOS]
    analysis = result.analyse(sources, radios, gap_s=gap_s, playback=playback)
    return present(analysis, text.section(analysis), as_json=as_json)
