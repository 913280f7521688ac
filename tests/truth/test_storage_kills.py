"""Trials of storage services are killed: their objects go with the next trial, or command."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import storage_answers as answers
from storage_servers import KEYS, needs_s3, needs_storage, needs_webdav, s3, webdav
from test_storage_transfer import AZURE_KEY, GOOGLE, SHORT, at, start, transfer
from tests import sshd
from tests.e2e.conftest import PROGRAM

pytestmark = [pytest.mark.together, pytest.mark.slow, needs_storage]

ENDLESS = {**SHORT, "transactions_ns": 60_000_000_000}
PATIENCE_S = 120.0
Place = tuple[dict[str, Any], dict[str, str], Callable[[], list[str]]]
"""Parameters, credentials, and a function that lists what is stored."""


@contextmanager
def at_s3(folder: Path) -> Iterator[Place]:
    with s3(folder) as server:
        yield at(server), KEYS, server.stored


@contextmanager
def at_webdav(folder: Path) -> Iterator[Place]:
    with webdav(folder) as server:
        yield {"service": "webdav", "endpoint": server.url}, {}, server.stored


@contextmanager
def at_sftp(folder: Path) -> Iterator[Place]:
    files = folder / "files"
    files.mkdir()
    with sshd.serving(folder / "sshd", options="Subsystem sftp internal-sftp") as server:
        params = {
            "service": "sftp", "endpoint": f"{server.user}@127.0.0.1:{server.port}",
            "directory": str(files), "ssh_host_keys": "accept",
        }  # fmt: skip
        stored = lambda: [str(path) for path in files.rglob("*") if path.is_file()]  # noqa: E731
        yield params, {"SFTP_KEY_FILE": str(server.identity)}, stored


def described(kind: type[answers.Service], name: str, keys: dict[str, str]) -> Any:
    @contextmanager
    def place(folder: Path) -> Iterator[Place]:
        service = kind()
        with answers.answering(service) as url:
            params = {"service": name, "endpoint": url, "bucket": answers.BUCKET}
            yield params, keys, lambda: list(service.objects)

    return place


PLACES = [
    pytest.param(at_s3, id="s3", marks=needs_s3),
    pytest.param(at_webdav, id="webdav", marks=needs_webdav),
    pytest.param(at_sftp, id="sftp", marks=sshd.needs_it),
    pytest.param(described(answers.Azure, "azblob", AZURE_KEY), id="azblob"),
    pytest.param(described(answers.Google, "gcs", GOOGLE), id="gcs"),
]


def until_stored(process: subprocess.Popen[str], stored: Callable[[], list[str]]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while len(stored()) < 4:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until_s
        time.sleep(0.01)


@pytest.mark.parametrize("place", PLACES)
def test_objects_of_a_killed_trial_are_removed_by_the_next(place: Any, tmp_path: Path) -> None:
    with place(tmp_path) as (params, keys, stored):
        process = start({**ENDLESS, **params}, keys)
        until_stored(process, stored)
        process.kill()
        process.communicate()
        assert stored()
        transfer(params, keys)
        assert stored() == []


class Killed:
    """A command that measured a service, and was killed at one moment with its program there."""

    def __init__(self, folder: Path, place: Place) -> None:
        params, self.keys, stored = place
        self.state, self.store = folder / "state", folder / "store"
        words = [*PROGRAM, "bench", "storage.transfer", "--repetitions", "1"]
        for name, value in {**ENDLESS, **params}.items():
            words += ["--set", f"{name}={value}".replace("'", '"')]
        with subprocess.Popen(
            words, env=self.environment(self.keys), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            until_stored(process, stored)
            both = [process.pid, *sshd.descendants(process.pid, named="nephoscope")]
            assert len(both) > 1
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in both:
                    os.kill(pid, number)
            process.communicate()

    def environment(self, keys: Mapping[str, str]) -> dict[str, str]:
        places = {"XDG_STATE_HOME": str(self.state), "NEPHOSCOPE_STORE": str(self.store)}
        return {**os.environ, **places, **keys}

    def next_command(self, keys: Mapping[str, str]) -> str:
        """What the next command prints on stderr."""
        done = subprocess.run(
            [*PROGRAM, "verify"], env=self.environment(keys), capture_output=True, text=True,
            timeout=PATIENCE_S, check=True,
        )  # fmt: skip
        for secret in self.keys.values():
            assert secret not in done.stdout + done.stderr
        return done.stderr


@needs_s3
def test_the_next_command_removes_the_objects_of_a_killed_one(tmp_path: Path) -> None:
    with at_s3(tmp_path) as (params, keys, stored):
        killed = Killed(tmp_path, (params, keys, stored))
        assert stored()
        assert "Objects of 1 trials that were killed are removed." in killed.next_command(keys)
        assert stored() == []
        assert killed.next_command(keys) == ""


@needs_s3
def test_objects_that_cannot_be_removed_are_named(tmp_path: Path) -> None:
    with at_s3(tmp_path) as (params, keys, stored):
        killed = Killed(tmp_path, (params, keys, stored))
        wrong = {**keys, "AWS_SECRET_ACCESS_KEY": "another-secret-of-the-test"}
        err = killed.next_command(wrong)
        assert "may have left objects in s3" in err
        assert "The next trial there removes them." in err
        assert stored()
        transfer(params, keys)
        assert stored() == []
