"""The programs that the lab starts: batches of ip, tc and nft, each once for many steps."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from nephoscope.errors import Lacking, RunFailed

TIMEOUT_S = 60.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment() -> dict[str, str]:
    """What these programs see: where programs are, and messages in English."""
    return {"PATH": os.environ.get("PATH", "") + ":" + _PATH, "LC_ALL": "C"}


class Runner:
    """Starts short programs while a lab is changed.

    They inherit the lab's lock, so that after a kill of this process a `down` waits for them.
    """

    def __init__(self, lock: int | None) -> None:
        self.lock = lock
        self._pass = () if lock is None else (lock,)
        # More at once than CPUs only wait for the kernel's network lock.
        self._slots = asyncio.Semaphore(2 * (os.cpu_count() or 1))

    async def run(self, command: Sequence[str], text: str = "") -> str:
        """The output of a program that gets `text`; RunFailed with its own words when it fails."""
        async with self._slots:
            try:
                child = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env=environment(),
                    pass_fds=self._pass,
                    process_group=0,
                )
            except FileNotFoundError as error:
                raise Lacking(
                    f"The program {command[0]} is not installed.",
                    "Run `apt-get install iproute2 nftables`.",
                ) from error
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    out, err = await child.communicate(text.encode())
            except BaseException:
                # It ends by itself within milliseconds; nothing may be removed before that.
                if child.returncode is None:
                    child.kill()
                await asyncio.shield(child.wait())
                raise
        if child.returncode != 0:
            raise RunFailed(
                f"{_words(command)}: {_reason(err, out)} (exit code {child.returncode}).",
                "Everything that was made is removed.",
            )
        return out.decode(errors="replace")

    async def ip(self, lines: Sequence[str], netns: Path | None = None) -> None:
        """A batch of `ip`, inside a namespace when one is given."""
        await self._batch("ip", lines, netns)

    async def tc(self, lines: Sequence[str], netns: Path) -> None:
        """A batch of `tc` inside a namespace."""
        await self._batch("tc", lines, netns)

    async def _batch(self, program: str, lines: Sequence[str], netns: Path | None) -> None:
        if not lines:
            return
        inside = ["-n", netns.name] if netns else []
        try:
            await self.run([program, *inside, "-batch", "-"], "\n".join(lines) + "\n")
        except RunFailed as error:
            line = _line_of(error.message, lines)
            raise RunFailed(f"{error.message.rstrip('.')}{line}.", error.hint) from error

    async def nft(self, script: str, netns: Path) -> None:
        """A script of nft inside a namespace."""
        await self.run(["ip", "netns", "exec", netns.name, "nft", "-f", "-"], script)


def _words(command: Sequence[str]) -> str:
    return " ".join(command[:3]) if command[0] == "ip" else command[0]


def _reason(err: bytes, out: bytes) -> str:
    lines = (err or out).decode(errors="replace").strip().splitlines()
    return "; ".join(line.strip() for line in lines[:2]).rstrip(".") or "no reason given"


def _line_of(message: str, lines: Sequence[str]) -> str:
    """' in `the line`' of ip's 'Command failed -:3'."""
    _, found, rest = message.partition("Command failed -:")
    number = rest.split(maxsplit=1)[0].rstrip(").;") if found else ""
    if number.isdigit() and 1 <= int(number) <= len(lines):
        return f" in `{lines[int(number) - 1]}`"
    return ""
