"""Where the probe is, and whether it is the one that this package speaks with."""

from __future__ import annotations

import json
from pathlib import Path

from nephoscope import programs
from nephoscope.catalog import Catalog
from nephoscope.errors import TargetError
from nephoscope.programs import BUILD_COMMAND


def find_probe(machine: str | None = None) -> Path:
    """The probe for a machine type (this one's when not given).

    NEPHOSCOPE_PROBE, else the one inside the installed package, else the one built in the source
    tree. Raises Lacking with the command that builds it, or when it is for another processor.
    """
    return programs.find("nephoscope-probe", "NEPHOSCOPE_PROBE", machine)


def check_version(described: bytes, catalog: Catalog, where: str) -> None:
    """TargetError of one sentence unless `describe`'s answer is of the catalogue's version."""
    try:
        document = json.loads(described)
        found = (str(document["probe"]), int(document["protocol"]))
    except (ValueError, KeyError, TypeError) as error:
        raise TargetError(
            f"{where}: what answers as the probe is no nephoscope-probe.", "Check NEPHOSCOPE_PROBE."
        ) from error
    if found != (catalog.probe, catalog.protocol):
        raise TargetError(
            f"{where}: the probe is version {found[0]} (protocol {found[1]}), and this package "
            f"needs {catalog.probe} (protocol {catalog.protocol}).",
            f"Build both together: `{BUILD_COMMAND}`.",
        )
