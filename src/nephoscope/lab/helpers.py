"""Programs that live as long as the lab: delay lines, keepers of reservations.

Each is started into the lab's own control group, where `down` finds it, and belongs to no process
of ours: it stays when the command that made the lab ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from nephoscope.errors import RunFailed
from nephoscope.lab import launcher

_STEP_S = 0.003
_STOP_S = 3.0


async def start(
    command: Sequence[str],
    cgroups: Iterable[Path],
    log: Path,
    *,
    text: str = "",
    ready: bytes = b'{"ready"',
    timeout_s: float = 10.0,
) -> None:
    """Starts a helper, gives it `text` on its standard input, waits until its log says `ready`.

    What it prints goes to the file `log`. Raises RunFailed with its last line when it ends, or says
    nothing in time.
    """
    words = [*launcher.entering(cgroups=cgroups), *command]
    given = log.with_suffix(".in")
    given.write_text(text, encoding="utf-8")
    alive, held = os.pipe()
    try:
        with log.open("wb") as output, given.open("rb") as source:
            # `setsid --fork` gives it to init at once; a child of ours would be left a zombie.
            child = await asyncio.create_subprocess_exec(
                "setsid",
                "--fork",
                *words,
                stdin=source,
                stdout=output,
                stderr=output,
                cwd="/",
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                pass_fds=(held,),
            )
            await child.wait()
        os.close(held)
        held = -1
        await _until_ready(alive, log, ready, timeout_s)
    finally:
        os.close(alive)
        if held >= 0:
            os.close(held)


async def stop(log: Path, first: signal.Signals) -> None:
    """Ends the helper that writes `log`: asked, then killed. Returns when it is gone."""
    for number in (first, signal.SIGKILL):
        until = time.monotonic() + _STOP_S
        for pid in _writers(log):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        while _writers(log):
            if time.monotonic() > until:
                break
            await asyncio.sleep(_STEP_S)
        else:
            return
    raise RunFailed(f"The helper of {log.name} does not end.", "Take the lab down.")


def _writers(log: Path) -> list[int]:
    """Process ids whose standard output is this file."""
    found = []
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.readlink(f"/proc/{entry.name}/fd/1") == str(log):
                found.append(int(entry.name))
    return found


async def _until_ready(alive: int, log: Path, ready: bytes, timeout_s: float) -> None:
    until = time.monotonic() + timeout_s
    while ready not in (said := log.read_bytes()):
        # The helper holds the other end of this pipe, so its end is seen as the end of the file.
        ended, _, _ = select.select([alive], [], [], 0)
        if ended or time.monotonic() > until:
            lines = said.decode(errors="replace").strip().splitlines()
            words = lines[-1] if lines else "it said nothing"
            what = "ended" if ended else f"was not ready in {timeout_s:g} s"
            raise RunFailed(f"The helper of {log.name} {what}: {words}", "See `dmesg`.")
        await asyncio.sleep(_STEP_S)
