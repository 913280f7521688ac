"""`nephoscope version`: which program, which probe, which protocol."""

from __future__ import annotations

import platform

import click

from nephoscope import __version__
from nephoscope.commands import options, output


@click.command()
@options.JSON
def version(as_json: bool) -> None:
    """Print the versions of the program and of its probe."""
    from nephoscope import catalog

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
