"""Which trees of control groups a machine has: version 1, version 2, or both at once."""

from __future__ import annotations

import re
from pathlib import Path

from nephoscope.core.errors import Lacking
from nephoscope.core.records import dataclass

HOST_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "io", "pids", "freezer")
"""What a host is limited or counted by; version 1's blkio goes by the name io."""
_V2_CONTROLLERS = ("cpu", "cpuset", "memory", "io", "pids")


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted tree. controllers: what its groups can limit (blkio is called io)."""

    root: Path
    version: int
    controllers: frozenset[str]


@dataclass(frozen=True, slots=True)
class CgroupLayout:
    """The trees of a machine, version 2 first."""

    hierarchies: tuple[Hierarchy, ...]

    @property
    def version(self) -> str:
        """`v1`, `v2` or `hybrid`: where the controllers are, and what is mounted besides."""
        versions = {tree.version for tree in self.hierarchies}
        return "hybrid" if len(versions) == 2 else f"v{versions.pop()}"

    def of(self, controller: str) -> Hierarchy:
        """The tree with a controller. Raises Lacking when there is none."""
        for tree in self.hierarchies:
            if controller in tree.controllers:
                return tree
        raise Lacking(
            f"This machine has no control group hierarchy with the {controller} controller.",
            f"Boot a kernel with it, or allow it (see /proc/cgroups and the kernel's command line "
            f"for cgroup_disable={controller}).",
        )


def layout(mounts: str | None = None) -> CgroupLayout:
    """The trees that are mounted here; `mounts` is the text of /proc/self/mounts.

    Raises Lacking when there are none.
    """
    if mounts is None:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8")
    trees: dict[object, Hierarchy] = {}
    for line in mounts.splitlines():
        _, folder, kind, options, *_ = [*line.split(" "), "", "", ""]
        root = Path(unescaped(folder))
        if kind == "cgroup2" and None not in trees:
            trees[None] = Hierarchy(root, 2, _v2_controllers(root))
        elif kind == "cgroup":
            have = {"io" if name == "blkio" else name for name in options.split(",")}
            delegated = frozenset(have & set(HOST_CONTROLLERS))
            # Trees that limit nothing of ours too: container engines make groups in them.
            trees.setdefault(delegated or root, Hierarchy(root, 1, delegated))
    if not trees:
        raise Lacking(
            "No control group hierarchy is mounted.",
            "Run: mount -t cgroup2 none /sys/fs/cgroup",
        )
    return CgroupLayout(tuple(sorted(trees.values(), key=lambda tree: (-tree.version, tree.root))))


def unescaped(text: str) -> str:
    """A path of the kernel's mount tables, in which a space stands as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _v2_controllers(root: Path) -> frozenset[str]:
    try:
        names = (root / "cgroup.controllers").read_text(encoding="utf-8").split()
    except OSError:
        return frozenset()
    return frozenset(names) & frozenset(_V2_CONTROLLERS)
