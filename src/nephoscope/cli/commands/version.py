"""`nephoscope version`: versions of the program, its probe and their protocol."""

from __future__ import annotations

import platform

from nephoscope import __version__
from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of the program, its probe, the probe's protocol and Python."""

    nephoscope: str
    probe: str
    protocol: int
    python: str


@dataclass(frozen=True, slots=True)
class _VersionArguments:
    licences: bool = options.flag(
        "--licences", "Print the licences of third-party software.", is_local=True
    )
    as_json: bool = options.JSON


@command(prints=Document("versions", Versions), requests=Query())
def version(args: _VersionArguments) -> None:
    """Print the versions of the program and of its probe."""
    from nephoscope import catalog
    from nephoscope.core import programs

    if args.licences:
        output.say(programs.notices())
        return

    contracts = catalog.load()
    versions = {
        "nephoscope": __version__,
        "probe": contracts.probe,
        "protocol": contracts.protocol,
        "python": platform.python_version(),
    }
    if args.as_json:
        output.document(versions)
    else:
        output.say(
            f"nephoscope {__version__} (probe {contracts.probe}, protocol {contracts.protocol}, "
            f"Python {versions['python']})"
        )
