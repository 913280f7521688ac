"""Where the probe is, and whether it is the one that this package speaks with."""

from __future__ import annotations

import json
import os
import platform
import struct
from importlib import resources
from pathlib import Path

from nephoscope.catalog import Catalog
from nephoscope.errors import Lacking, TargetError

BUILD_COMMAND = "make survey"

_ELF_MACHINES = {0x3E: "x86_64", 0xB7: "aarch64", 0x28: "arm", 0xF3: "riscv64", 0x03: "i686"}


def find_probe(machine: str | None = None) -> Path:
    """The probe for a machine type (this one's when not given).

    NEPHOSCOPE_PROBE, else the one inside the installed package, else the one built in the source
    tree. Raises Lacking with the command that builds it, or when it is for another processor.
    """
    machine = machine or platform.machine()
    given = os.environ.get("NEPHOSCOPE_PROBE")
    if given:
        return _usable(Path(given), machine, "NEPHOSCOPE_PROBE names")
    package = Path(str(resources.files("nephoscope")))
    packaged = package / "_probe" / f"{machine}-linux" / "nephoscope-probe"
    if packaged.is_file():
        return _usable(packaged, machine, "The package has")
    built = package.parents[1] / "target" / "release" / "nephoscope-probe"
    if built.is_file():
        return _usable(built, machine, "The source tree has")
    others = sorted(path.parent.name for path in package.glob("_probe/*/nephoscope-probe"))
    has = f"; this package has it for {', '.join(others)}" if others else ""
    raise Lacking(
        f"There is no nephoscope-probe for {machine}{has}.",
        f"Build it in the source tree: `{BUILD_COMMAND}`.",
    )


def _usable(path: Path, machine: str, who: str) -> Path:
    if not path.is_file():
        raise Lacking(f"{who} {path}, and there is no such file.", f"Build it: `{BUILD_COMMAND}`.")
    built_for = _machine_of(path)
    if built_for is None:
        raise Lacking(f"{who} {path}, which is no Linux program.", f"Build it: `{BUILD_COMMAND}`.")
    if built_for != machine:
        raise Lacking(
            f"{who} {path}, which is built for {built_for}; this machine is {machine}.",
            f"Build it on a {machine} machine: `{BUILD_COMMAND}`.",
        )
    if not os.access(path, os.X_OK):
        raise Lacking(f"{who} {path}, which may not be executed.", f"Run `chmod +x {path}`.")
    return path


def _machine_of(path: Path) -> str | None:
    """The processor in a program's ELF header; None for what is no ELF file."""
    try:
        with path.open("rb") as stream:
            head = stream.read(20)
    except OSError:
        return None
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return None
    order = "<" if head[5] == 1 else ">"
    (number,) = struct.unpack(f"{order}H", head[18:20])
    return _ELF_MACHINES.get(number, f"processor type {number:#x}")


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
