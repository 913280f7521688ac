"""Control groups of a lab: one group for each host, on version 1, version 2 and both at once.

A lab's groups lie at `<hierarchy>/nephoscope/<lab>/<host>`; the lab's own helpers live in the host
name `_keep`. Version 1 has a folder in the hierarchy of each controller; on a hybrid machine the
version 2 tree without controllers is used too, because it can kill a whole group at once.
Formats: cgroups(7), `admin-guide/cgroup-v1/`, `admin-guide/cgroup-v2.rst`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.core.records import dataclass
from nephoscope.measure.lab.limits.hierarchies import CgroupLayout, Hierarchy, layout

PREFIX = "nephoscope"
KEEP = "_keep"
_GONE_S = 10.0
"""A killed process leaves its group within milliseconds; one in disk sleep may take seconds."""


@dataclass(frozen=True, slots=True)
class HostCgroup:
    """The groups of one host of a lab, one folder for each tree."""

    lab: str
    name: str
    layout: CgroupLayout

    @property
    def trees(self) -> tuple[Hierarchy, ...]:
        """The trees in which it has a folder.

        Helpers are only found and killed through theirs: a group of the version 1 cpu controller
        would forbid them real-time priority.
        """
        if self.name != KEEP:
            return tuple(t for t in self.layout.hierarchies if t.version == 2 or t.controllers)
        bookkeeping = ({"freezer"}, {"pids"})
        return tuple(
            tree
            for tree in self.layout.hierarchies
            if tree.version == 2 or any(wanted <= tree.controllers for wanted in bookkeeping)
        )

    @property
    def folders(self) -> tuple[Path, ...]:
        """Its folders, in the order in which a process joins them."""
        return tuple(_folder(tree, self.lab) / self.name for tree in self.trees)

    def file(self, controller: str, v1: str, v2: str) -> Path:
        """The file of a setting. Raises Lacking when no tree has the controller."""
        tree = self.layout.of(controller)
        return _folder(tree, self.lab) / self.name / (v1 if tree.version == 1 else v2)

    def version(self, controller: str) -> int:
        """1 or 2: which kind of tree has the controller. Raises Lacking when none has."""
        return self.layout.of(controller).version

    def make(self) -> tuple[Path, ...]:
        """Makes its folders where they are not there yet, and returns them."""
        for tree in self.trees:
            _make(tree, self.lab, self.name)
        return self.folders

    def processes(self) -> list[int]:
        """Process ids in it and in groups below it."""
        return _processes(self.folders)

    def kill(self) -> int:
        """Kills every process in it and waits until they are gone; how many there were."""
        return _kill(self.folders)


def host(lab: str, name: str, where: CgroupLayout | None = None) -> HostCgroup:
    """The group of a host; nothing is made yet."""
    return HostCgroup(lab, name, where or layout())


def keep(lab: str, where: CgroupLayout | None = None) -> HostCgroup:
    """The group of the lab's own helpers; nothing is made yet."""
    return HostCgroup(lab, KEEP, where or layout())


def labs(where: CgroupLayout | None = None) -> list[str]:
    """Names of labs that have groups here."""
    names = set()
    for tree in (where or layout()).hierarchies:
        with contextlib.suppress(FileNotFoundError):
            names |= {entry.name for entry in os.scandir(tree.root / PREFIX) if entry.is_dir()}
    return sorted(names)


def lab_cgroups(lab: str, where: CgroupLayout | None = None) -> list[Path]:
    """The folders of a lab that exist, one for each tree; each may hold folders of hosts."""
    trees = (where or layout()).hierarchies
    return [folder for tree in trees if (folder := _folder(tree, lab)).is_dir()]


def processes(lab: str, where: CgroupLayout | None = None) -> list[int]:
    """Process ids in any group of a lab."""
    return _processes(lab_cgroups(lab, where))


def kill(lab: str, where: CgroupLayout | None = None) -> int:
    """Kills every process of a lab and waits until they are gone; how many there were."""
    return _kill(lab_cgroups(lab, where))


def remove(lab: str, where: CgroupLayout | None = None) -> int:
    """Kills what is in a lab's groups and removes them; how many folders there were.

    The folder that all labs share goes with the last of them.
    """
    where = where or layout()
    kill(lab, where)
    count = sum(_remove_tree(folder) for folder in lab_cgroups(lab, where))
    for tree in where.hierarchies:
        with contextlib.suppress(OSError):  # another lab is there, or nothing was
            _rmdir(tree.root / PREFIX)
    return count


def favour(lab: str) -> None:
    """Gives a lab the largest weight beside the machine's other work, until it is taken down."""
    tree = layout().of("cpu")
    name, most = ("cpu.shares", "262144") if tree.version == 1 else ("cpu.weight", "10000")
    for folder in (tree.root / PREFIX, _folder(tree, lab)):
        put(folder / name, most)


def put(file: Path, text: str, accepts: Callable[[str], bool] | None = None) -> str:
    """Writes a setting and returns what the kernel says it is now.

    accepts: whether the value read back is what was meant (the kernel rounds some). Raises Lacking
    when the kernel has no such setting or refuses it, RunFailed when it took another value.
    """
    try:
        # Not write_text: it asks for a new file, which control groups answer with "permission".
        with open(os.open(file, os.O_WRONLY | os.O_TRUNC), "w", encoding="ascii") as stream:
            stream.write(text)
    except FileNotFoundError as error:
        if not file.parent.is_dir():
            raise RunFailed(
                f"The control group {file.parent} is not there.",
                "Run `nephoscope lab list`; it may have been taken down.",
            ) from error
        raise Lacking(
            f"This kernel has no {file.name} in its control groups.",
            "Leave the setting out, or boot a kernel that has it.",
        ) from error
    except OSError as error:
        raise Lacking(
            f"The kernel refused '{text}' in {file}: {os.strerror(error.errno or 0)}.",
            _why(error),
        ) from error
    current = file.read_text(encoding="ascii").strip()
    if not (accepts(current) if accepts else current == text):
        raise RunFailed(
            f"{file} holds '{' '.join(current.split())}' after '{text}' was written.",
            "Something else manages this control group; end it, or take the lab down and up again.",
        )
    return current


def numbers(file: Path) -> Mapping[str, int]:
    """A file of `name number` lines; empty when it is not there."""
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return {}
    matches = (re.fullmatch(r"(\S+) (\d+)", line.strip()) for line in lines)
    return {match[1]: int(match[2]) for match in matches if match}


def _why(error: OSError) -> str:
    match error.errno:
        case errno.EPERM | errno.EACCES | errno.EROFS:
            return "Run it as root, where the control groups are not mounted read-only."
        case errno.EBUSY:
            return "Stop what uses it, or ask for less."
        case _:
            return "Ask for a value that this machine has."


def _folder(tree: Hierarchy, lab: str) -> Path:
    return tree.root / PREFIX / lab


def _make(tree: Hierarchy, lab: str, name: str) -> None:
    """Makes one folder and those above it, so that a process may join it."""
    levels = [tree.root / PREFIX, _folder(tree, lab), _folder(tree, lab) / name]
    for attempt in range(5):
        try:
            for folder in levels:
                _mkdir(folder)
                _prepare(tree, folder, leaf=folder == levels[-1])
            return
        except FileNotFoundError:
            # Another lab's end took the shared folder away in between.
            if attempt == 4:
                raise
        except OSError as error:
            raise Lacking(
                f"The control group {levels[-1]} cannot be made: {os.strerror(error.errno or 0)}.",
                _why(error),
            ) from error


def _prepare(tree: Hierarchy, folder: Path, *, leaf: bool) -> None:
    if tree.version == 1:
        if "cpuset" in tree.controllers:
            # A new cpuset is empty and nothing may join it.
            for name in ("cpuset.cpus", "cpuset.mems"):
                if not (folder / name).read_text(encoding="ascii").strip():
                    have = (folder.parent / name).read_text(encoding="ascii")
                    (folder / name).write_text(have, encoding="ascii")
        return
    _delegate(folder.parent, tree.controllers)
    if not leaf:
        _delegate(folder, tree.controllers)


def _delegate(folder: Path, controllers: frozenset[str]) -> None:
    """Hands controllers on to the groups below; only what is not there yet is written."""
    control = folder / "cgroup.subtree_control"
    missing = controllers - set(control.read_text(encoding="ascii").split())
    if missing:
        control.write_text(" ".join(f"+{name}" for name in sorted(missing)), encoding="ascii")


def _mkdir(folder: Path) -> None:
    folder.mkdir(exist_ok=True)


def _rmdir(folder: Path) -> None:
    folder.rmdir()


def _members(folder: Path) -> list[int]:
    """Process ids in one folder; none when it is gone."""
    try:
        text = (folder / "cgroup.procs").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(pid) for pid in text.split()]


def _walk(folder: Path) -> Iterator[Path]:
    """The folder and all below it, deepest first; gone ones are left out."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))
    if folder.is_dir():
        yield folder


def _processes(folders: Iterable[Path]) -> list[int]:
    members: set[int] = set()
    for top in folders:
        for folder in _walk(top):
            members |= set(_members(folder))
    # 0 stands for a process of another pid namespace, which cannot be named from here.
    return sorted(members - {0})


def _kill(folders: Iterable[Path]) -> int:
    folders = list(folders)
    killed: set[int] = set()
    until = time.monotonic() + _GONE_S
    while alive := _processes(folders):
        killed |= set(alive)
        # At once where the kernel can (5.14): nothing forks its way out.
        at_once = [file for folder in folders if (file := folder / "cgroup.kill").exists()]
        for file in at_once:
            with contextlib.suppress(OSError):
                file.write_text("1", encoding="ascii")
        for pid in alive:
            _kill_one(pid, folders)
        if time.monotonic() > until:
            named = ", ".join(map(str, alive[:5]))
            raise RunFailed(
                f"Process {named} of {folders[0]} does not end after SIGKILL.",
                "It waits for a device; run the command again once that answers.",
            )
        time.sleep(0.002)
    return len(killed)


def _kill_one(pid: int, folders: list[Path]) -> None:
    """SIGKILL to a process that is still in one of the folders; the id may be another's by now."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if pid in _processes(folders):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def _remove_tree(top: Path) -> int:
    count = 0
    until = time.monotonic() + _GONE_S
    for folder in _walk(top):
        while True:
            try:
                _rmdir(folder)
                count += 1
                break
            except FileNotFoundError:
                break
            except OSError as error:
                # Busy: a process of it is still on its way out.
                if error.errno != errno.EBUSY or time.monotonic() > until:
                    raise RunFailed(
                        f"The control group {folder} cannot be removed: {error.strerror}.",
                        "Run `nephoscope lab down` again; see its cgroup.procs for what is left.",
                    ) from error
                _kill([top])
                time.sleep(0.002)
    return count
