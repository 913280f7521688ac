"""Rooms: a control plane of a cloud in a root, a network and control groups of its own.

Everything that runs in a room ends with it, and it ends with the process that made it, however that
ends. Files that were changed in it were in memory. Nothing of this machine is changed but its
control groups, from which the groups of rooms are removed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hardware import Feature, lacking

FIRST = Path(__file__).with_name("room.sh")
GROUPS = Path("/sys/fs/cgroup")
PREFIX = "nephoscope-room-"
WEIGHT = "65536"
"""Of a room's processes together, which are many and would share the CPU time of one login."""
CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Room:
    """A running room. pid: of its first process, as this machine numbers it; log: what it says."""

    pid: int
    log: Path

    def path(self, inside: str) -> Path:
        """A path of the room as this machine's root sees it; a socket there can be connected to."""
        return Path(f"/proc/{self.pid}/root{inside}")

    def run(self, *command: str, stdin: bytes = b"", limit_s: float = 120.0) -> str:
        """Runs a command in the room; returns what it printed."""
        done = subprocess.run(
            ["nsenter", f"--target={self.pid}", "--all", "--", *command],
            input=stdin,
            capture_output=True,
            timeout=limit_s,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
        )
        if done.returncode != 0:
            words = (done.stdout + done.stderr).decode(errors="replace")[-2000:]
            raise AssertionError(f"{' '.join(command)}: {done.returncode}: {words}\n{self.tail()}")
        return done.stdout.decode()

    def until(self, condition: Callable[[], Any], limit_s: float = 120.0) -> Any:
        """Waits until a condition is true, and returns it."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and self.alive():
            with contextlib.suppress(OSError):
                if result := condition():
                    return result
            time.sleep(0.05)
        raise AssertionError(self.tail())

    def alive(self) -> bool:
        return Path(f"/proc/{self.pid}/root").exists()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-6000:]

    @contextlib.contextmanager
    def forwarded(self, port: int) -> Iterator[int]:
        """Yields a port on this machine's loopback that leads to one on the room's."""
        listener = socket.create_server(("127.0.0.1", 0))
        open_sockets: set[socket.socket] = {listener}
        thread = threading.Thread(target=self._forward, args=(listener, open_sockets, port))
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            for one in list(open_sockets):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            thread.join()
            listener.close()

    def _forward(self, listener: socket.socket, sockets: set[socket.socket], port: int) -> None:
        """Connections of this thread are made in the room's network; the listener was made here."""
        with open(f"/proc/{self.pid}/ns/net", "rb") as network:
            if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")

        def copy(source: socket.socket, sink: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while chunk := source.recv(1 << 16):
                    sink.sendall(chunk)
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_WR)

        def serve(near: socket.socket) -> None:
            with near:
                try:
                    far = socket.create_connection(("127.0.0.1", port), 5)
                except OSError:
                    return
                with far:
                    far.settimeout(None)
                    sockets.update((near, far))
                    back = threading.Thread(target=copy, args=(far, near))
                    back.start()
                    copy(near, far)
                    back.join()
                    sockets.difference_update((near, far))

        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=serve, args=(near,), daemon=True).start()


@contextlib.contextmanager
def room(root: Path | str, script: str) -> Iterator[Room]:
    """Starts a room of a root; the script (of sh) is its first process, which must not end."""
    groups = [group / f"{PREFIX}{os.getpid()}-{time.monotonic_ns()}" for group in _own_groups()]
    _remove_left_groups()
    with tempfile.TemporaryDirectory(prefix="nephoscope-room-") as folder:
        log = Path(folder) / "log"
        work = Path(folder) / "work"
        work.mkdir()
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL"),
                    *("sh", str(FIRST), str(root), str(work), "\n".join(map(str, groups))),
                    *("sh", "-c", script),
                ],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        try:
            first = _first_process(process, log)
            for group in groups:
                if (group / "cpu.shares").exists():
                    (group / "cpu.shares").write_text(WEIGHT)
            yield Room(first, log)
        finally:
            process.kill()
            process.wait()
            _remove(groups)


def _own_groups() -> list[Path]:
    """The folders of our own control groups, one for each hierarchy."""
    if not (GROUPS / "memory").is_dir():
        lacking(Feature.CONTROL_GROUPS, "version 1 of them, which the packages of Debian 12 take")
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    return [
        GROUPS / controllers.removeprefix("name=") / path.strip("/")
        for _, controllers, path in lines
        if controllers
    ]


def _first_process(process: subprocess.Popen[bytes], log: Path) -> int:
    """The first process of the room, once its root is its own."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            for pid in children.read_text().split():
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if command.startswith(b"sh\0-c\0"):
                    return int(pid)
        time.sleep(0.01)
    process.kill()
    process.wait()
    raise AssertionError(log.read_text(errors="replace")[-4000:])


def _remove_left_groups() -> None:
    """Removes groups of rooms whose maker was killed; its processes were ended with it."""
    for group in _own_groups():
        for left in group.glob(f"{PREFIX}*"):
            maker = left.name.removeprefix(PREFIX).partition("-")[0]
            if not Path(f"/proc/{maker}").exists():
                _remove([left])


def _remove(groups: list[Path], limit_s: float = 120.0) -> None:
    deadline = time.monotonic() + limit_s
    for group in groups:
        while group.exists():
            folders = [Path(folder) for folder, _, _ in os.walk(group, topdown=False)]
            try:
                for folder in folders:
                    folder.rmdir()
            except OSError:
                # Those that were killed are still leaving.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
