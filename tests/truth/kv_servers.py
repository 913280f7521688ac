"""Real servers of Redis and memcached on loopback, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.tools import needs

PATIENCE_S = 120.0

needs_redis = needs("redis-server")
needs_memcached = needs("memcached")


class Server:
    """A server that listens on 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, text: str, end: bytes) -> str:
        """The reply to a line, which ends in `end`."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as client:
            client.sendall(text.encode() + b"\r\n")
            reply = b""
            while not reply.endswith(end):
                piece = client.recv(65536)
                assert piece, reply
                reply += piece
        return reply.decode()


class Redis(Server):
    def call(self, text: str) -> str:
        """The reply to a command, whose line it is."""
        return self.ask(text, b"\r\n").strip()

    def info(self, section: str) -> dict[str, str]:
        text = self.ask(f"INFO {section}", b"\r\n\r\n" if section == "all" else b"\r\n")
        length, _, content = text.partition("\r\n")
        assert len(content) == int(length[1:]) + 2
        return dict(line.split(":", 1) for line in content.splitlines() if ":" in line)

    def calls(self, command: str) -> int:
        """How often a command was executed."""
        stats = self.info("commandstats").get(f"cmdstat_{command}", "calls=0,")
        return int(stats.split("=")[1].split(",")[0])


class Memcached(Server):
    def stats(self) -> dict[str, int]:
        lines = self.ask("stats", b"END\r\n").splitlines()
        found = [line.split() for line in lines if line.startswith("STAT ")]
        return {line[1]: int(line[2]) for line in found if line[2].isdigit()}


@contextmanager
def redis(*options: str) -> Iterator[Redis]:
    with tempfile.TemporaryDirectory() as folder:
        words = ["redis-server", "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
        words += ["--appendonly", "no", *options, "--port"]
        with _listening(words) as port:
            yield Redis(port)


@contextmanager
def memcached() -> Iterator[Memcached]:
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    with _listening(["memcached", "-l", "127.0.0.1", "-U", "0", *user, "-p"]) as port:
        yield Memcached(port)


@contextmanager
def _listening(words: Sequence[str]) -> Iterator[int]:
    """Starts a server on a free port; another program may take that first, then on another one."""
    for _ in range(5):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with subprocess.Popen([*words, str(port)], stdout=subprocess.DEVNULL) as process:
            try:
                if _listens(process, port):
                    yield port
                    return
            finally:
                process.terminate()
    raise AssertionError(f"{words[0]} does not listen")


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    """Waits until a server listens; False when it ended instead."""
    until_s = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < until_s:
        try:
            socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
        except ConnectionRefusedError:
            time.sleep(0.02)
        else:
            return True
    return False
