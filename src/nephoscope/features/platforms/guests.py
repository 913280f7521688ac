"""Guests of one platform, each a lab of its own, so that they come and go one by one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from nephoscope.core.errors import NephoscopeError, UsageError
from nephoscope.core.format_versions import TOPOLOGY
from nephoscope.core.tasks import uncancelled
from nephoscope.core.units import format_value
from nephoscope.features.platforms.density import NoFurtherGuest
from nephoscope.measure.lab import files
from nephoscope.measure.lab.handle import Host
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.platform_table import GUESTS
from nephoscope.measure.lab.provisioner import LABS

HOST = "guest"
SPARE_RATIO = 0.1
"""Share of the machine's memory that stays free, for the machine itself."""
SMALL_BYTES = 64 << 20
"""What a guest without a kernel of its own may need for the programs that load it."""
_KSM = Path("/sys/kernel/mm/ksm/run")
_MEMINFO = Path("/proc/meminfo")


async def create(lab: str, platform: str, memory_bytes: int) -> Host:
    """Returns the only host of a new lab. Raises what `LabProvisioner.create` raises."""
    host: dict[str, object] = {"platform": platform}
    if platform in GUESTS:
        host["memory"] = memory_bytes
    topology = files.from_values({"version": TOPOLOGY.version, "name": lab, "hosts": {HOST: host}})
    return (await LABS.create(topology, say=lambda sentence: None)).hosts[HOST]


async def remove(lab: str) -> None:
    """Removes a lab, whatever state it is in; a cancellation waits."""
    await uncancelled(LABS.remove(lab))


async def remove_all(prefix: str) -> None:
    """Removes every lab whose name begins with `prefix`."""
    for lab in remains(prefix):
        with contextlib.suppress(UsageError):
            await remove(lab)


def remains(prefix: str) -> list[str]:
    """Returns the names of the labs that begin with `prefix`."""
    return [lab.name for lab in LABS.existing() if lab.name.startswith(prefix)]


@contextlib.asynccontextmanager
async def one_guest(lab: str, platform: str, memory_bytes: int) -> AsyncIterator[Host]:
    """A guest for the length of the block."""
    try:
        yield await create(lab, platform, memory_bytes)
    finally:
        if lab in remains(lab):
            await remove(lab)


def memory_of(lab: str) -> int | None:
    """Proportional set size of all processes of a guest in bytes; None where it has none.

    It holds the kernel and the memory of a guest, because these belong to the process that runs
    it. Pages that several processes share count in equal parts. Source: proc(5), smaps_rollup.
    """
    parts = []
    for pid in cgroups.host(lab, HOST).processes():
        with contextlib.suppress(OSError, ValueError, IndexError):  # a process that has just ended
            parts.append(pss_bytes(Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")))
    return sum(parts) if parts else None


def pss_bytes(text: str) -> int:
    """Bytes of the line `Pss:` of a smaps_rollup. Raises IndexError, ValueError without one."""
    (line,) = (line for line in text.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) << 10


def same_page_merging() -> bool | None:
    """States whether the kernel merges equal pages (KSM); None where it does not say."""
    try:
        return _KSM.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return None


def free_memory() -> tuple[int, int]:
    """Bytes that are available without swapping, and bytes of the whole machine."""
    lines = _MEMINFO.read_text(encoding="ascii").splitlines()
    values = {
        name: int(rest.split()[0]) << 10 for name, rest in (line.split(":", 1) for line in lines)
    }
    return values["MemAvailable"], values["MemTotal"]


def memory_shortage(need_bytes: int, available_bytes: int, total_bytes: int) -> str:
    """Returns why there is no memory for one more guest; '' where there is."""
    spare = int(SPARE_RATIO * total_bytes)
    if available_bytes - need_bytes >= spare:
        return ""
    have, need, rest = (
        format_value(each, "bytes") for each in (available_bytes, need_bytes, spare)
    )
    return f"{have} of memory are available, one more guest may need {need}, and {rest} stay free"


class GuestGroup:
    """Running guests of one platform; `grow` adds to them, `end` removes all."""

    def __init__(
        self,
        prefix: str,
        platform: str,
        memory_bytes: int,
        free: Callable[[], tuple[int, int]] = free_memory,
    ) -> None:
        self._prefix, self._platform, self._memory_bytes = prefix, platform, memory_bytes
        self._free = free
        self.labs: list[str] = []

    async def grow(self, number: int) -> None:
        """Starts guests until there are so many. Raises NoFurtherGuest where that fails."""
        need = self._memory_bytes if self._platform in GUESTS else SMALL_BYTES
        while len(self.labs) < number:
            if shortage := memory_shortage(need, *self._free()):
                raise NoFurtherGuest(len(self.labs), shortage)
            lab = f"{self._prefix}{len(self.labs)}"
            try:
                await create(lab, self._platform, self._memory_bytes)
            except NephoscopeError as error:
                reason = f"guest {len(self.labs) + 1} did not start: {error.message.rstrip('.')}"
                raise NoFurtherGuest(len(self.labs), reason) from error
            self.labs.append(lab)

    async def memory(self) -> list[int]:
        """PSS of each guest that has processes, in bytes."""
        sizes = await asyncio.gather(*(asyncio.to_thread(memory_of, lab) for lab in self.labs))
        return [size for size in sizes if size is not None]

    async def end(self) -> None:
        """Removes all guests."""
        while self.labs:
            await remove(self.labs[-1])
            self.labs.pop()
