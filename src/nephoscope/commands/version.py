"""`nephoscope version`: which program, which probe, which protocol."""

from __future__ import annotations

import platform

from nephoscope import __version__, catalog
from nephoscope.commands import output


def run(*, as_json: bool = False) -> int:
    """Prints the versions; returns 0."""
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
    return 0
