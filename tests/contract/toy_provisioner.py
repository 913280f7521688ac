"""A provisioner that only tests know: a machine is a folder with a sleeping process.

Started as a program it creates what it is asked for, slowly enough to be killed in the middle.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.measure.lab.processes import matching
from nephoscope.measure.provisioning import BROKEN, UP, Provisioned, Quote, Say

MARK = "held-open"


@dataclass(frozen=True)
class Toys:
    """What is made: machines of these names."""

    name: str
    hosts: tuple[str, ...]


class ToyProvisioner:
    """Keeps everything below one folder; a process is found by the file that it holds open.

    Open files are inherited at the fork, so that a program is found before it has even started.
    """

    def __init__(self, root: Path, pause_s: float = 0.0, per_h: float | None = None) -> None:
        self._root = root
        self._pause_s = pause_s
        self._per_h = per_h

    def quote(self, spec: Toys) -> Quote | None:
        """See `Provisioner.quote`; every begun hour of each machine is billed."""
        if self._per_h is None:
            return None
        machines = len(spec.hosts)
        return Quote(self._per_h * machines, step_h=1.0, minimum_h=1.0, machines=machines)

    async def create(self, spec: Toys, *, say: Say) -> Toys:
        """See `Provisioner.create`."""
        folder = self._root / spec.name
        try:
            folder.mkdir()
        except FileExistsError:
            raise UsageError(f"Toys named {spec.name} are here already.", "Remove them.") from None
        try:
            with (folder / MARK).open("w") as mark:
                for host in spec.hosts:
                    (folder / host).mkdir()
                    words = ["setsid", "--fork", "sleep", "600"]
                    subprocess.run(words, check=True, pass_fds=[mark.fileno()])
                    say(host)
                    await asyncio.sleep(self._pause_s)
            (folder / "up").touch()
        except BaseException:
            await self.remove(spec.name)
            raise
        return spec

    def existing(self) -> list[Provisioned]:
        """See `Provisioner.existing`."""
        return [
            Provisioned(
                folder.name,
                UP if (folder / "up").exists() else BROKEN,
                tuple(sorted(path.name for path in folder.iterdir() if path.is_dir())),
                None,
            )
            for folder in sorted(self._root.iterdir())
        ]

    def open(self, name: str) -> Toys:
        """See `Provisioner.open`."""
        for one in self.existing():
            if (one.name, one.state) == (name, UP):
                return Toys(name, one.hosts)
        raise UsageError(f"No toys named {name} are up.", "Create them.")

    async def remove(self, name: str) -> int:
        """See `Provisioner.remove`; returns how many processes ended."""
        ended: set[int] = set()
        # Again and again: a program that was listed may have started another one since.
        while processes := self.processes(name):
            ended.update(processes)
            for pid in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._root / name, ignore_errors=True)
        return len(ended)

    def processes(self, name: str) -> list[int]:
        """Returns the ids of the processes of some toys."""
        wanted = str(self._root / name / MARK)
        return matching(lambda process: _holds_open(process, wanted))

    def remains(self, name: str) -> list[object]:
        """Returns what of some toys is still here."""
        folder = self._root / name
        return [*self.processes(name), *([folder] if folder.exists() else [])]


def _holds_open(process: Path, wanted: str) -> bool:
    for opened in (process / "fd").iterdir():
        # A program that starts opens its libraries and closes them again.
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(opened).startswith(wanted):
                return True
    return False


if __name__ == "__main__":
    where, toys = Path(sys.argv[1]), Toys(sys.argv[2], tuple(sys.argv[3:]))
    asyncio.run(ToyProvisioner(where, 0.05).create(toys, say=lambda line: None))
