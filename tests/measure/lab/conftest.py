"""The control groups of this machine, and a made-up version 2 tree: both pass the same tests."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.hardware import Feature, lacking

from nephoscope.core.errors import Lacking
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.limits.hierarchies import Layout, layout

_FILES = {
    "cgroup.procs": "",
    "cgroup.kill": "",
    "cgroup.subtree_control": "",
    "cgroup.controllers": "cpu cpuset memory io pids",
    "cpu.weight": "100",
    "cpu.max": "max 100000",
    "cpuset.cpus": "",
    "cpuset.mems": "",
    "cpuset.cpus.partition": "member",
    "memory.max": "max",
    "memory.swap.max": "max",
    "memory.events": "low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\n",
    "io.max": "",
}


class FakeTree:
    """A folder that behaves as a version 2 tree where these tests look: new groups have their
    files, a group with processes or children cannot be removed, the dead are no members."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mkdir(root)
        self.layout = layout(f"cgroup2 {root} cgroup2 rw 0 0\n")

    def mkdir(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for name, text in _FILES.items():
            if not (folder / name).exists():
                (folder / name).write_text(text)

    def rmdir(self, folder: Path) -> None:
        if not folder.exists():
            raise FileNotFoundError(errno.ENOENT, "no such group")
        if self.members(folder) or any(path.is_dir() for path in folder.iterdir()):
            raise OSError(errno.EBUSY, "busy")
        shutil.rmtree(folder)

    def members(self, folder: Path) -> list[int]:
        try:
            pids = (folder / "cgroup.procs").read_text().split()
        except OSError:
            return []
        return [int(pid) for pid in pids if _alive(int(pid))]


def _alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[1].split()[0] not in ("Z", "X")


@pytest.fixture(params=["this machine", "version 2"])
def where(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Layout:
    """The layout that a test's groups lie in."""
    if request.param == "this machine":
        if os.geteuid() != 0:
            lacking(Feature.ROOT)
        try:
            return layout()
        except Lacking as error:
            lacking(Feature.CONTROL_GROUPS, str(error))
    fake = FakeTree(tmp_path / "tree")
    monkeypatch.setattr(cgroups, "_mkdir", fake.mkdir)
    monkeypatch.setattr(cgroups, "_rmdir", fake.rmdir)
    monkeypatch.setattr(cgroups, "_members", fake.members)
    return fake.layout


@pytest.fixture
def lab(where: Layout) -> Iterator[str]:
    """A lab name of this process, whose groups are gone after the test."""
    name = f"mt{os.getpid() % 100_000}"
    yield name
    cgroups.remove(name, where)


@pytest.fixture
def member() -> Iterator[Callable[[cgroups.Group], int]]:
    """Starts a sleeping process in a group and returns its id."""
    started: list[subprocess.Popen[bytes]] = []

    def start(group: cgroups.Group) -> int:
        process = subprocess.Popen(["sleep", "60"])
        started.append(process)
        for folder in group.folders:
            with (folder / "cgroup.procs").open("a") as stream:
                stream.write(f"{process.pid}\n")
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.wait()
