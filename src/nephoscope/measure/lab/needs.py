"""What the lab needs of the machine: privileges, programs, features of the kernel."""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from nephoscope.core import programs
from nephoscope.core.errors import Lacking
from nephoscope.core.programs import find_launcher
from nephoscope.core.records import dataclass
from nephoscope.measure.lab import commands, names
from nephoscope.measure.lab.network import namespaces

# Numbers of linux/capability.h, and what each is needed for.
_CAPABILITIES = {
    "CAP_SYS_ADMIN": (21, "namespaces and mounts"),
    "CAP_NET_ADMIN": (12, "interfaces, shapers and filters"),
    "CAP_DAC_OVERRIDE": (1, "control groups and /run"),
    "CAP_KILL": (5, "ending what runs in a lab"),
    "CAP_SYS_PTRACE": (19, "finding what runs in a lab"),
}
_PROGRAMS = {"ip": "iproute2", "tc": "iproute2"}


@dataclass(frozen=True, slots=True)
class Abilities:
    """Alternatives that this kernel has."""

    netem: bool
    htb: bool
    ifb: bool
    nft: bool
    iptables: bool
    tun: bool


def require(command: str, store: Path | None = None) -> None:
    """Lacking with everything that is missing, unless labs can be made here.

    store: directory of runs that the command writes; root's default would be another.
    """
    if lacked := missing_capabilities():
        words = ", ".join(f"{name} ({_CAPABILITIES[name][1]})" for name in lacked)
        raise Lacking(
            f"A lab needs root, or the capabilities {words}.",
            f"Run `{programs.as_root(command, store)}`.",
        )
    if (absent := missing(_PROGRAMS, "A lab")) is not None:
        raise absent
    find_launcher()


def sbin(program: str) -> str | None:
    """Path of a program, also where only root's path has it."""
    return shutil.which(program, path=commands.environment()["PATH"])


def missing(programs: Mapping[str, str], what: str) -> Lacking | None:
    """Lacking with the packages of those programs that are not installed. programs: name ->
    Debian package."""
    absent = [name for name in programs if sbin(name) is None]
    if not absent:
        return None
    packages = " ".join(dict.fromkeys(programs[name] for name in absent))
    named = " and ".join(absent)
    return Lacking(f"{what} needs {named}.", f"Run `apt-get install {packages}`.")


def missing_capabilities() -> list[str]:
    """Names of the capabilities that this process lacks."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        effective = int(status.split("CapEff:", 1)[1].split()[0], 16)
    except (OSError, ValueError, IndexError):
        return [] if os.geteuid() == 0 else list(_CAPABILITIES)
    return [name for name, (bit, _) in _CAPABILITIES.items() if not effective >> bit & 1]


@functools.cache
def abilities() -> Abilities:
    """Returns what this kernel has, found by trying in a namespace of its own that ends at once."""
    return namespaces.within_new(_try_all)


def _try_all() -> Abilities:
    def words(*lines: str) -> bool:
        return all(_works(line.split()) for line in lines)

    # `lo` of a new namespace is down and queues nothing, so any queue may be tried on it.
    return Abilities(
        netem=words("tc qdisc add dev lo root netem delay 1ms", "tc qdisc delete dev lo root"),
        htb=words("tc qdisc add dev lo root handle 1: htb", "tc qdisc delete dev lo root"),
        ifb=words(
            "ip link add ifb7 type ifb",
            "tc qdisc add dev lo handle ffff: ingress",
            "tc filter add dev lo parent ffff: protocol all prio 1 u32 match u32 0 0 "
            "action mirred egress redirect dev ifb7",
        ),
        nft=_works(["nft", "-f", "-"], _NFT),
        iptables=words(
            "iptables -t raw -A PREROUTING -m statistic --mode random --probability 0.5 -j DROP"
        ),
        tun=Path("/dev/net/tun").exists(),
    )


_NFT = """\
table netdev t {
  chain c {
    type filter hook ingress device lo priority 0
    numgen random mod 1000000 < 1 drop
  }
}
"""


def _works(command: Sequence[str], text: str = "") -> bool:
    try:
        done = subprocess.run(
            command,
            input=text.encode(),
            capture_output=True,
            timeout=20,
            env=commands.environment(),
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def lacking(what: str, link: str, feature: str, way_out: str) -> Lacking:
    """The sentence for a link that asks for what this kernel has not."""
    return Lacking(f"Link {link} asks for {what}, and this kernel has no {feature}.", way_out)


def owned_by() -> str:
    """Returns the words for labs of another user: 'owned by root'."""
    owner = names.RUN.stat().st_uid
    try:
        return f"owned by {pwd.getpwuid(owner).pw_name}"
    except KeyError:
        return f"owned by user {owner}"


def can_see_labs() -> bool:
    """Returns whether the folder of the labs may be read."""
    return not names.RUN.exists() or os.access(names.RUN, os.R_OK | os.X_OK)
