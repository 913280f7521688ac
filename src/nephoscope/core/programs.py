"""Where the static programs of this package are, and whether they fit a machine."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import struct
import sys
from importlib import resources
from pathlib import Path

from nephoscope.core.errors import Lacking

PROBE = "nephoscope-probe"
STORAGE = "nephoscope-storage"
"""The probe with the libraries of storage services, built and copied only where one is measured."""

BUILD_COMMAND = "make survey"
STORAGE_COMMAND = "make storage"
NOTICES_COMMAND = "tools/setup.sh notices"

_ELF_MACHINES = {0x3E: "x86_64", 0xB7: "aarch64", 0x28: "arm", 0xF3: "riscv64", 0x03: "i686"}


def find_probe(machine: str | None = None) -> Path:
    """The probe; see `find`."""
    return find(PROBE, "NEPHOSCOPE_PROBE", machine)


def find_storage(machine: str | None = None) -> Path:
    """The probe with the libraries of storage services; see `find`."""
    return find(STORAGE, "NEPHOSCOPE_STORAGE", machine, STORAGE_COMMAND)


def find_launcher() -> Path:
    """The program that enters lab hosts, delays packets and keeps reservations; see `find`."""
    return find("nephoscope-lab", "NEPHOSCOPE_LAB")


def find_simulator() -> Path:
    """The simulator; see `find`."""
    return find("nephoscope-sim", "NEPHOSCOPE_SIM")


def notices() -> str:
    """Returns the licence notices of the third-party software in this package.

    Raises Lacking in a source tree whose programs were not built.
    """
    try:
        path = resources.files("nephoscope") / "_probe" / "NOTICES.txt"
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Lacking(
            "The licence notices were not made in this source tree.",
            f"Make them: `{NOTICES_COMMAND}`.",
        ) from None


def find(
    name: str, variable: str, machine: str | None = None, command: str = BUILD_COMMAND
) -> Path:
    """The program `name` for a machine type (this one's when not given).

    The file that the environment variable names, else the one inside the installed package, else
    the one built in the source tree. Raises Lacking with the command that builds it, or when it is
    for another processor.
    """
    machine = machine or platform.machine()
    configured = os.environ.get(variable)
    if configured:
        return _usable(Path(configured), machine, f"{variable} names", command)
    package = Path(str(resources.files("nephoscope")))
    packaged = package / "_probe" / f"{machine}-linux" / name
    if packaged.is_file():
        return _usable(packaged, machine, "The package has", command)
    built = package.parents[1] / "target" / "release" / name
    if built.is_file():
        return _usable(built, machine, "The source tree has", command)
    architectures = sorted(path.parent.name for path in package.glob(f"_probe/*/{name}"))
    has = f"; this package has it for {', '.join(architectures)}" if architectures else ""
    raise Lacking(
        f"There is no {name} for {machine}{has}.",
        f"Build it in the source tree: `{command}`.",
    )


def _usable(path: Path, machine: str, who: str, command: str) -> Path:
    if not path.is_file():
        raise Lacking(f"{who} {path}, and there is no such file.", f"Build it: `{command}`.")
    built_for = _machine_of(path)
    if built_for is None:
        raise Lacking(f"{who} {path}, which is no Linux program.", f"Build it: `{command}`.")
    if built_for != machine:
        raise Lacking(
            f"{who} {path}, which is built for {built_for}; this machine is {machine}.",
            f"Build it on a {machine} machine: `{command}`.",
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


def as_root(command: str, store: Path | None = None) -> str:
    """Returns this process's command line for root, or `command` where this is a library.

    It has the full path of the program, since the PATH of sudo is another, and the store.
    """
    started, *words = sys.argv
    if Path(started).parts[-2:] == ("nephoscope", "__main__.py"):
        line = [sys.executable, "-m", "nephoscope", *words]
    elif Path(started).name == "nephoscope":
        line = [os.path.abspath(shutil.which(started) or started), *words]
    else:
        line = command.split()
        line[0] = str(Path(sys.executable).with_name(line[0]))
    if store is not None and "--store" not in line:
        line += ["--store", str(store)]
    return f"sudo {shlex.join(line)}"
