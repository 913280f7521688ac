"""Real storage services on loopback, for tests: S3 (versitygw), WebDAV (wsgidav), SFTP (sshd)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.sshd import free_port
from tests.tools import located, needs

PATIENCE_S = 120.0
KEYS = {"AWS_ACCESS_KEY_ID": "nephoscope-test", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test"}
BUCKET = "objects"
CERTIFICATES = (
    Path(__file__).resolve().parents[2] / "crates/probe/src/http/requests/test_certificates"
)


needs_storage = needs("nephoscope-storage")
needs_s3 = needs("versitygw")
needs_webdav = needs("wsgidav")


class Server:
    """A server program in a folder, which can be killed and started again on its port."""

    def __init__(
        self,
        words: list[str],
        folder: Path,
        environment: dict[str, str],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._patience_s = patience_s
        self.port = free_port()
        self.folder = folder
        self.log = folder.with_suffix(".log")
        self._words = [word.replace("{port}", str(self.port)) for word in words]
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._words, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        end = time.monotonic() + self._patience_s
        while time.monotonic() < end:
            assert self._process.poll() is None, self.log.read_text()
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError(f"{self._words[0]} does not listen")

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(PATIENCE_S)
            self._process = None

    def stored(self) -> list[str]:
        """Names of the files below the server's folder."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.folder)) for path in files)


@contextmanager
def _running(words: list[str], folder: Path, environment: dict[str, str]) -> Iterator[Server]:
    server = Server(words, folder, environment)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def s3(tmp_path: Path, *, tls: bool = False) -> Iterator[Server]:
    """versitygw on a folder with one bucket."""
    root = tmp_path / "s3"
    folder = root / BUCKET
    folder.mkdir(parents=True)
    words = [located("versitygw"), "--port", "127.0.0.1:{port}"]
    if tls:
        key, certificate = CERTIFICATES / "server.key", CERTIFICATES / "server.pem"
        words += ["--cert", str(certificate), "--key", str(key)]
    words += ["posix", str(root)]
    environment = {
        "ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"],
        "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"],
    }
    with _running(words, folder, environment) as server:
        yield server


@contextmanager
def webdav(tmp_path: Path) -> Iterator[Server]:
    """wsgidav on a folder, for anybody."""
    folder = tmp_path / "webdav"
    folder.mkdir()
    words = ["wsgidav", "--host=127.0.0.1", "--port={port}", f"--root={folder}", "--auth=anonymous"]
    with _running(words, folder, {}) as server:
        yield server
