"""A machine with a shell and files of its own: over ssh, or inside a container.

One shell (`shell_scripts.SUPERVISOR`) stays there as long as the controller; it makes the work
folder and removes it when the connection ends, for whatever reason. The probe is copied there once,
under its SHA-256, and stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nephoscope.core.errors import TargetError
from nephoscope.core.programs import PROBE, STORAGE, find_probe, find_storage
from nephoscope.measure.targets.channels import shell_scripts
from nephoscope.measure.targets.channels.channel import Program, connection_lost
from nephoscope.measure.targets.channels.child import GRACE_S, Ended, last_words
from nephoscope.measure.targets.channels.remote import RemoteProgram

_CHUNK = 1 << 18
_WORDS_BYTES = 1 << 16
_ASK_S = 20.0


class ShellChannel(ABC):
    """`Channel` by a shell there; `_reach`, `_begin` and `_hang_up` are what a kind adds."""

    prefix: Sequence[str] = ()

    def __init__(self, name: str, directory: str = "") -> None:
        self.name = name
        self.directory = ""
        self._wanted_directory = directory
        self._supervisor: Program | None = None
        self._asking = asyncio.Lock()
        self._machine = ""
        self.own_address = ""
        self._folder = ""
        self._probes: dict[str, str] = {}
        self._work = ""

    @abstractmethod
    async def _reach(self, timeout_s: float) -> None:
        """Makes `_begin` possible. TargetError with one sentence when that fails."""

    @abstractmethod
    async def _begin(self, command: Sequence[str]) -> Program:
        """Starts a program there. TargetError when that fails."""

    @abstractmethod
    async def _hang_up(self) -> None:
        """Undoes `_reach`. May be called twice."""

    @property
    def folder(self) -> str:
        """Returns the cache folder there; empty before it is open."""
        return self._folder

    async def open(self, timeout_s: float) -> None:
        """See `Channel.open`; keeps a connection that is still good."""
        if self._supervisor is not None and not self._supervisor.ended():
            return
        await self.close()
        await self._reach(timeout_s)
        try:
            self._supervisor = await self._begin(
                shell_scripts.script(
                    shell_scripts.SUPERVISOR, secrets.token_hex(4), self._wanted_directory
                )
            )
            lines = [(await self._supervisor.line()) or b"" for _ in range(2)]
            texts = [line.decode("utf-8", "replace").rstrip("\n") for line in lines]
            there, words = texts[0].split(None, 1), texts[1].split(None, 3)
            if len(there) != 2 or len(words) != 4 or words[0] != "at":
                raise await self._no_folder(self._supervisor)
        except BaseException:
            await self.close()
            raise
        self._machine, self.own_address, self._folder = words[1], words[2], words[3]
        self.directory = there[1]

    async def probe(self, name: str = PROBE) -> str:
        """See `Channel.probe`: uploaded once, under its SHA-256, and checked once a connection."""
        if name in self._probes:
            return self._probes[name]
        if self._supervisor is None:
            raise connection_lost(self.name)
        source = (find_storage if name == STORAGE else find_probe)(self._machine)
        wanted = await asyncio.to_thread(_sha256, source)
        there = f"{self._folder}/probe-{wanted}"
        if await self._sha256_there(there) != wanted:
            await self._upload(source, there, "700")
            digest = await self._sha256_there(there)
            if digest != wanted:
                raise TargetError(
                    f"{self.name}: the probe that was copied to {there} reads back differently.",
                    f"Check the disk there; `rm -r {self._folder}` removes its files.",
                )
        self._probes[name] = there
        return there

    async def start(self, command: Sequence[str]) -> Program:
        """See `Channel.start`."""
        if self._supervisor is None or self._supervisor.ended():
            raise connection_lost(self.name)
        if self._wanted_directory:
            command = shell_scripts.script(shell_scripts.INSIDE, self._wanted_directory, *command)
        return await self._begin(command)

    async def work(self) -> str:
        """See `Channel.work`."""
        if not self._work:
            self._work = await self._ask("work")
            if not self._work:
                raise TargetError(
                    f"{self.name}: no folder can be made in {self._folder} there.",
                    "Check the free space there.",
                )
        return self._work

    async def put(self, source: Path, there: str) -> None:
        """See `Channel.put`."""
        await self._upload(source, there, "600")

    async def get(self, there: str, destination: Path) -> None:
        """See `Channel.get`."""
        part = destination.with_name(f".{destination.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as stream:
                ended = await self._read(there, stream.write)
            if ended.returncode != 0:
                raise self._not_copied(there, ended)
            part.replace(destination)
        finally:
            part.unlink(missing_ok=True)

    async def close(self) -> None:
        """See `Channel.close`; the probe stays there for the next time."""
        supervisor, self._supervisor = self._supervisor, None
        self._probes, self._work = {}, ""
        if supervisor is not None:
            # Its input ends, and it removes the work folder.
            with contextlib.suppress(TargetError):
                supervisor.close_input()
                await supervisor.rest(GRACE_S, _WORDS_BYTES, 1000)
        await self._hang_up()

    async def _ask(self, verb: str, value: str = "") -> str:
        """The supervisor's answer to a question."""
        if self._supervisor is None:
            raise connection_lost(self.name)
        async with self._asking, asyncio.timeout(_ASK_S):
            try:
                await self._supervisor.send_line(f"{verb} {value}\n".encode())
            except BrokenPipeError as error:
                raise connection_lost(self.name) from error
            line = await self._supervisor.line()
        if line is None:
            raise connection_lost(self.name)
        return line.decode("utf-8", "replace").rstrip("\n").partition(" ")[2]

    async def _end_there(self, how: str, pid: int) -> None:
        """Has the supervisor `term` or `kill` a program; nothing once the supervisor has ended."""
        supervisor = self._supervisor
        if not isinstance(supervisor, RemoteProgram) or supervisor.ended() or supervisor.pid == pid:
            return
        with contextlib.suppress(BrokenPipeError):
            await supervisor.send_line(f"{how} {pid}\n".encode())

    async def _sha256_there(self, there: str) -> str:
        """SHA-256 of a file there; '' when there is none. Read back where no tool can tell it."""
        if sum_there := await self._ask("sum", there):
            return sum_there
        digest = hashlib.sha256()
        ended = await self._read(there, digest.update)
        return digest.hexdigest() if ended.returncode == 0 else ""

    async def _read(self, there: str, take: Callable[[bytes], Any]) -> Ended:
        """Gives every piece of a file there to `take`."""
        program = await self.start(["cat", there])
        try:
            while chunk := await program.chunk():
                take(chunk)
            return await program.rest(GRACE_S, _WORDS_BYTES, 1)
        finally:
            await program.end()

    async def _upload(self, source: Path, there: str, mode: str) -> None:
        size = source.stat().st_size
        program = await self.start(shell_scripts.script(shell_scripts.PUT, there, str(size), mode))
        try:
            with source.open("rb") as stream:
                while (chunk := stream.read(_CHUNK)) and not program.ended():
                    try:
                        await program.send_line(chunk)
                    except BrokenPipeError:
                        # It tells why in its last words.
                        break
            program.close_input()
            ended = await program.rest(_ASK_S, _WORDS_BYTES, 1000)
        finally:
            await program.end()
        if ended.returncode != 0 or ended.why:
            raise self._not_copied(there, ended)

    def _not_copied(self, there: str, ended: Ended) -> TargetError:
        words = ended.stderr_tail.strip().splitlines()
        why = words[-1][:200] if words else f"exit code {ended.returncode}"
        return TargetError(
            f"{self.name}: {there} cannot be copied: {why}.",
            "Check the free space and the rights there; nothing half was left behind.",
        )

    async def _no_folder(self, supervisor: Program) -> TargetError:
        ended = await supervisor.rest(GRACE_S, _WORDS_BYTES, 1000)
        if ended.returncode == 3:
            return TargetError(
                f"{self.name}: there is no folder there that this user may write to and run "
                "programs from: neither ~/.cache/nephoscope nor /tmp is one.",
                "Check the free space, the rights, and the mount option noexec.",
            )
        if ended.returncode == 4:
            return TargetError(
                f"{self.name}: there is no directory {self._wanted_directory} there to start "
                "programs in.",
                "Create it, or correct `directory` of the target.",
            )
        return TargetError(
            f"{self.name}: the shell there did not do what it was asked."
            f"{last_words(ended.stderr_tail)}",
            f"It needs {shell_scripts.SHELL} and the common tools (coreutils or busybox).",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
