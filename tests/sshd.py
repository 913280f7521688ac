"""A real ssh server on loopback that a test starts, as the current user, with keys of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests import tools

from nephoscope.measure.targets.kinds.ssh import SshRecord as Record

PROGRAMS = ("sshd", "ssh", "ssh-keygen")
needs_it = tools.needs(*PROGRAMS)
fixture_needs_it = tools.fixture_needs(*PROGRAMS)


def keygen(path: Path, *options: str) -> Path:
    """A new ed25519 key pair; returns the private key's path."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", *options, "-f", str(path)],
        check=True,
    )
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """An sshd in a folder: its keys, its far HOME, its log; started and ended by pid."""

    def __init__(self, folder: Path, *, options: str = "", before: Sequence[str] = ()) -> None:
        """options: further lines of its configuration. before: words in front of the program."""
        self.folder = folder
        self.home = folder / "home"
        self.user = getpass.getuser()
        self.port = free_port()
        self.options = options
        self._before = list(before)
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        self.host_key = keygen(folder / "host_key")
        self.identity = keygen(folder / "identity")
        self.known_hosts = folder / "known_hosts"
        self.know()

    def know(self, host: str = "127.0.0.1") -> None:
        """Writes the server's present host key into its known_hosts file."""
        public = self.host_key.with_suffix(".pub").read_text().split()[:2]
        self.known_hosts.write_text(f"[{host}]:{self.port} {' '.join(public)}\n")

    def start(self) -> None:
        config = self.folder / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.host_key}\n"
            f"AuthorizedKeysFile {self.identity}.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            # The account's own dotfiles and cache are none of the test's business.
            f"SetEnv HOME={self.home}\nLogLevel VERBOSE\n{self.options}\n"
        )
        if os.geteuid() == 0:
            # What the service's own start-up does; sshd refuses to run as root without it.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        words = [*self._before, tools.located("sshd"), "-D", "-e", "-f", str(config)]
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with (self.folder / "log").open("ab") as log:
                # A connection would tell less: a process of the server before may still accept it.
                known = len(self.log())
                self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=log)
            while time.monotonic() < end and self._process.poll() is None:
                if "Server listening" in self.log()[known:]:
                    return
                time.sleep(0.02)
            if "Address already in use" not in self.log()[known:]:
                break
            time.sleep(0.02)
        raise RuntimeError(f"sshd did not start: {self.log()[-2000:]}")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def record(self, **more: object) -> Record:
        """The plan's record of it."""
        values: dict[str, object] = {
            "name": "far",
            "kind": "ssh",
            "address": "127.0.0.1",
            "port": self.port,
            "user": self.user,
            "identity": str(self.identity),
            "known_hosts": str(self.known_hosts),
        }
        return Record.model_validate(values | more)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def sessions(self) -> list[int]:
        """Pids of the processes that serve connections."""
        return descendants(self._process.pid, named="sshd") if self._process else []

    def kill_connections(self) -> None:
        """Ends every connection at once, as a crash would; the server goes on listening."""
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        if self._process is not None:
            sessions = self.sessions()
            self._process.terminate()
            self._process.wait(10)
            self._process = None
            for pid in sessions:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)


def descendants(pid: int, named: str = "") -> list[int]:
    """Processes below `pid`; `named`: only those whose name begins so."""
    found = []
    for child in children(pid):
        name = Path(f"/proc/{child}/comm")
        with contextlib.suppress(OSError):
            if name.read_text().startswith(named):
                found.append(child)
        found += descendants(child, named)
    return found


def children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@contextlib.contextmanager
def serving(folder: Path, *, options: str = "", before: Sequence[str] = ()) -> Iterator[Server]:
    server = Server(folder, options=options, before=before)
    server.start()
    try:
        yield server
    finally:
        server.stop()
