"""`nephoscope version`: versions of the program, its probe and their protocol."""

from __future__ import annotations

import platform

import click

from nephoscope import __version__
from nephoscope.cli.kit import options, output


@click.command()
@options.flag("--licences", "Print the licences of third-party software.")
@options.JSON
def version(licences: bool, as_json: bool) -> None:
    """Print the versions of the program and of its probe."""
    from nephoscope import catalog
    from nephoscope.core import programs

    if licences:
        output.say(programs.notices())
        return

    contracts = catalog.load()
    versions = {
        "nephoscope": __version__,
        "probe": contracts.probe,
        "protocol": contracts.protocol,
        "python": platform.python_version(),
    }
    if as_json:
        output.document(versions)
    else:
        output.say(
            f"nephoscope {__version__} (probe {contracts.probe}, protocol {contracts.protocol}, "
            f"Python {versions['python']})"
        )
