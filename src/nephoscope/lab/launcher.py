"""The program that enters lab hosts, delays packets and keeps reservations."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nephoscope import programs


def find_launcher(machine: str | None = None) -> Path:
    """nephoscope-lab for a machine type (this one's when not given).

    NEPHOSCOPE_LAB, else the one inside the installed package, else the one built in the source
    tree. Raises Lacking with the command that builds it, or when it is for another processor.
    """
    return programs.find("nephoscope-lab", "NEPHOSCOPE_LAB", machine)


def entering(
    *,
    netns: Path | None = None,
    cgroups: Iterable[Path] = (),
    sysfs: bool = False,
    hide_limits: bool = False,
    with_parent: bool = False,
    nice: int | None = None,
) -> list[str]:
    """The words before a program that runs in these groups and this network, `--` last.

    sysfs: the program sees the /sys of that network. hide_limits: it sees no control group, as a
    guest sees nothing of what its hypervisor limits. with_parent: the kernel kills the program
    when the process that started it ends. The groups are joined in the order given.
    """
    words = [str(find_launcher()), "enter"]
    for group in cgroups:
        words += ["--cgroup", str(group)]
    if netns is not None:
        words += ["--netns", str(netns)]
    words += ["--sysfs"] if sysfs else []
    words += ["--hide-limits"] if hide_limits else []
    words += ["--die-with-parent"] if with_parent else []
    words += [] if nice is None else ["--nice", str(nice)]
    return [*words, "--"]
