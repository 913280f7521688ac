"""What everything of a lab is called. `down` finds it by these names and by nothing else.

Names of hosts and switches hold no dot, so `neph-<lab>.<node>` can be taken apart again, whatever
dashes a lab's name has.
"""

from __future__ import annotations

from pathlib import Path

PREFIX = "neph-"
RUN = Path("/run/nephoscope")
"""Folders of the labs, 0700."""
DISKS = Path("/var/lib/nephoscope")
"""What hosts write, 0700: on a disk also where /run is memory, or a disk benchmark inside a guest
would measure that."""
NETNS = Path("/run/netns")


def namespace(lab: str, node: str) -> str:
    """Name of the network namespace of a host or switch."""
    return f"{PREFIX}{lab}.{node}"


def netns(lab: str, node: str) -> Path:
    """File of the network namespace of a host or switch."""
    return NETNS / namespace(lab, node)


def lab_of(namespace_name: str) -> str | None:
    """The lab that a namespace belongs to; None when it is not ours."""
    lab, dot, _ = namespace_name.removeprefix(PREFIX).partition(".")
    return lab if dot and lab and namespace_name.startswith(PREFIX) else None


def directory(lab: str) -> Path:
    """Folder of a lab's files."""
    return RUN / lab


def disks(lab: str) -> Path:
    """Folder of a lab's disks; it has one folder for each host that needs one."""
    return DISKS / lab


def labs_in(folder: Path) -> set[str]:
    """Labs that have files in a folder of all labs, `RUN` or `DISKS`."""
    return {path.name for path in _entries(folder) if path.is_dir()}


def namespaces_of(lab: str) -> list[Path]:
    """Files of a lab's namespaces that are there now."""
    return sorted(path for path in _entries(NETNS) if lab_of(path.name) == lab)


def namespace_labs() -> set[str]:
    """Labs that have a namespace."""
    return {lab for path in _entries(NETNS) if (lab := lab_of(path.name))}


def _entries(folder: Path) -> list[Path]:
    """Returns what is in a folder; nothing where it is not there or cannot be read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []
