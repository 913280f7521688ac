"""The systemd unit of a watch: its text, its file, and how to start it.

systemd reads the command line itself, without a shell. A user's manager cannot set up mount
namespaces, so that only a system unit has those settings; a plan with a lab needs privileges that
they would take away.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from nephoscope.core.errors import StoreError, UnknownName
from nephoscope.store.files import translating_os_errors, write_atomically

Scope = Literal["user", "system"]

ALWAYS = (
    "NoNewPrivileges=yes",
    "LockPersonality=yes",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
    "UMask=0077",
)
SYSTEM = (
    "ProtectSystem=strict",
    "ProtectHome=read-only",
    "PrivateTmp=yes",
    "ProtectClock=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "RestrictNamespaces=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
)
_ANNOUNCEMENTS = "-/dev/shm"
"""Runs announce themselves there, so that they name each other as a disturbance."""
_TEMPLATE = """\
# Written by `nephoscope watch --install`; `nephoscope watch --uninstall {name}` removes it.
[Unit]
Description=Nephoscope watch {name}
After=network-online.target time-sync.target
Wants=network-online.target

[Service]
Type=exec
ExecStart={command}
Restart=on-failure
RestartSec=30
SuccessExitStatus=130
KillMode=mixed
TimeoutStopSec=90
{settings}

[Install]
WantedBy={wanted}
"""


def unit_name(watch: str) -> str:
    """Returns the name of a watch's unit."""
    return f"nephoscope-watch-{watch}.service"


def unit_text(watch: str, command: Sequence[str], store: Path, scope: Scope, *, lab: bool) -> str:
    """Returns the unit. command: program and arguments. lab: the plan makes lab hosts."""
    settings = list(ALWAYS)
    if scope == "system" and not lab:
        settings += [*SYSTEM, f"ReadWritePaths={quoted(str(store))} {_ANNOUNCEMENTS}"]
    return _TEMPLATE.format(
        name=watch,
        command=" ".join(map(quoted_argument, command)),
        settings="\n".join(settings),
        wanted="multi-user.target" if scope == "system" else "default.target",
    )


def quoted(text: str) -> str:
    """Returns a word as unit files have it: quoted, with escapes and doubled `%`."""
    plain = re.fullmatch(r"[A-Za-z0-9_@:,./+=-]+", text)
    escaped = "".join(_ESCAPES.get(c) or (c if c.isprintable() else _hex(c)) for c in text)
    return text if plain else f'"{escaped}"'


def quoted_argument(text: str) -> str:
    """Returns an argument of a command line, in which `$` begins a variable."""
    return quoted(text).replace("$", "$$")


def folder_of(scope: Scope) -> Path:
    """Returns where the units of a user or of the system are."""
    if scope == "system":
        return Path("/etc/systemd/system")
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "systemd" / "user"


def install(watch: str, text: str, scope: Scope) -> Path:
    """Writes the unit and returns its file."""
    path = folder_of(scope) / unit_name(watch)
    with translating_os_errors(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
    path.chmod(0o644)
    return path


def uninstall(watch: str, scope: Scope) -> Path:
    """Removes the unit and returns its file. UnknownName where there is none."""
    path = folder_of(scope) / unit_name(watch)
    try:
        path.unlink()
    except FileNotFoundError:
        raise UnknownName(f"There is no unit {path}.", "Name its scope with --scope.") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be removed: {error.strerror}.") from error
    return path


def instructions(watch: str, scope: Scope, *, remove: bool) -> str:
    """Returns the commands that make systemd take the change up."""
    control = "systemctl" if scope == "system" else "systemctl --user"
    verb = "disable" if remove else "enable"
    return f"{control} daemon-reload && {control} {verb} --now {unit_name(watch)}"


_ESCAPES = {'"': '\\"', "\\": "\\\\", "%": "%%"}


def _hex(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode())
