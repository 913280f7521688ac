"""A session of an ssh connection, in which one program runs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import asyncssh

from nephoscope.core.errors import TargetError
from nephoscope.measure.targets.channels.channel import connection_lost
from nephoscope.measure.targets.channels.remote import EndThere, RemoteProgram
from nephoscope.measure.targets.channels.shell_scripts import command_line


class SessionRefused(TargetError):
    """The server opens no further session on the connection; nothing was started."""


async def start_program(
    where: str,
    connection: asyncssh.SSHClientConnection,
    command: Sequence[str],
    end_there: EndThere,
    on_end: Callable[[], None],
    *,
    forward: Callable[[str], str] = lambda line: line,
    refused: Callable[[str], TargetError] | None = None,
    lost_code: int | None = None,
) -> RemoteProgram:
    """Starts a program and waits until the shell there is about to become it.

    on_end: called once, when the session is over. forward: makes the command line that has another
    machine run one. refused, lost_code: as of `RemoteProgram.start`. Raises TargetError.
    """
    mark = f"nephoscope-{secrets.token_hex(8)}"
    try:
        process = await connection.create_process(
            forward(command_line(command, mark)),
            encoding=None,
            stdin=asyncssh.PIPE,
            request_pty=False,
            x11_forwarding=False,
            env=None,
            send_env=None,
        )
    except BaseException as error:
        on_end()
        if isinstance(error, asyncssh.Error | OSError):
            raise _refused(where, error) from error
        raise

    def silent(last_words: str) -> TargetError:
        last = f" It said: {last_words}" if last_words else ""
        return TargetError(
            f"{where}: the login shell there ran no command.{last}",
            "Log in with `ssh` and run `echo ok`; nephoscope needs a shell that can do that.",
        )

    session = _SshSession(process)
    return await RemoteProgram.start(
        where, session, mark, end_there, on_end, refused or silent, lost_code
    )


class _SshSession:
    """See `Session`."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._process = process

    async def write(self, content: bytes) -> None:
        """See `Session.write`."""
        with _as_os_errors():
            self._process.stdin.write(content)
            await self._process.stdin.drain()

    def write_eof(self) -> None:
        """See `Session.write_eof`."""
        with _as_os_errors():
            self._process.stdin.write_eof()

    async def read_output(self, size: int) -> bytes:
        """See `Session.read_output`."""
        return await _read(self._process.stdout, size)

    async def read_errors(self, size: int) -> bytes:
        """See `Session.read_errors`."""
        return await _read(self._process.stderr, size)

    async def wait_closed(self) -> None:
        """See `Session.wait_closed`."""
        await self._process.wait_closed()

    @property
    def returncode(self) -> int | None:
        """See `Session.returncode`."""
        return self._process.returncode

    def close(self) -> None:
        """See `Session.close`."""
        self._process.close()


async def _read(stream: asyncssh.SSHReader[bytes], size: int) -> bytes:
    with _as_os_errors():
        return await stream.read(size)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except asyncssh.Error as error:
        raise ConnectionError(str(error)) from error


def _refused(where: str, error: Exception) -> TargetError:
    if isinstance(error, asyncssh.ChannelOpenError) and "closed" not in str(error).lower():
        return SessionRefused(
            f"{where}: the server opens no further session: {error}.",
            "Let it open more at once (MaxSessions in its sshd_config; 10 is the default).",
        )
    return connection_lost(where, error)
