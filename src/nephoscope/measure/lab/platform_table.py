"""The platforms of lab hosts: docs/contributing/lab-platform.md describes how to add one."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class PlatformEntry:
    """Facts about a platform that plans and topologies use without loading its code.

    description: what a host of it consists of. boot_s: time to make and open a host, without
    hardware support for guests. is_guest: a host has a kernel of its own, and is reached by ssh.
    shares_files: programs in a host see the files of this machine; other platforms have an image.
    """

    description: str
    boot_s: float
    is_guest: bool = False
    shares_files: bool = False


# Times are rounded up from boots on two busy CPUs (docs/how-to/platforms.md).
TABLE: Mapping[str, PlatformEntry] = {
    "bare": PlatformEntry("namespaces and a control group", boot_s=0.2, shares_files=True),
    "container": PlatformEntry("runc", boot_s=1.0),
    "uml": PlatformEntry("a User-Mode Linux guest", boot_s=5.0, is_guest=True),
    "qemu": PlatformEntry("a virtual machine", boot_s=15.0, is_guest=True),
}
"""Name in a topology, which is that of the file, -> the platform; in the order of their costs."""

GUESTS = tuple(name for name, entry in TABLE.items() if entry.is_guest)
"""Platforms with a kernel of their own."""
