"""100 writers at once, each killed 20 times at drawn moments: nothing is lost or unreadable."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT
from tests.hardware import Feature, lacking

from . import gcs_writes
from .s3_double import S3Double

CACHE = Path.home() / ".cache" / "nephoscope" / "engines"
WRITERS, KILLS = 100, 20
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The published key of Azurite's only account."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(command: list[str], port: int, folder: Path, **environment: str) -> Iterator[None]:
    """Runs a server on loopback until the block ends."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            until = time.monotonic() + 120
            while time.monotonic() < until and process.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def built_by_go(name: str, module: str) -> Path:
    """The program of a Go module; built once into the cache."""
    program = CACHE / "bin" / name
    if not program.exists():
        if shutil.which("go") is None:
            lacking(Feature.OBJECT_SERVER, f"{name} is built by go, which is not installed")
        environment = {**os.environ, "GOBIN": str(program.parent)}
        subprocess.run(["go", "install", module], check=True, env=environment)
    return program


@contextmanager
def versitygw(folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yields the address and the environment of a store on versitygw, which keeps files."""
    program = built_by_go("versitygw", "github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    port = free_port()
    (folder / "objects" / "lab").mkdir(parents=True)
    command = [str(program), "--port", f"127.0.0.1:{port}", "posix", str(folder / "objects")]
    keys = {"ROOT_ACCESS_KEY": "key-of-the-test", "ROOT_SECRET_KEY": "secret-of-the-test"}
    with served(command, port, folder, **keys):
        yield (
            "s3://lab/many",
            {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
                "AWS_ACCESS_KEY_ID": keys["ROOT_ACCESS_KEY"],
                "AWS_SECRET_ACCESS_KEY": keys["ROOT_SECRET_KEY"],
                "AWS_REGION": "us-east-1",
            },
        )


@contextmanager
def azurite(folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yields the address and the environment of a store on Azurite, in memory."""
    program = CACHE / "azurite" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    if not program.exists():
        if shutil.which("npm") is None:
            lacking(Feature.OBJECT_SERVER, "Azurite is installed by npm, which is not there")
        (CACHE / "azurite").mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "azurite@3.37.0"], check=True, cwd=CACHE / "azurite")
    port = free_port()
    command = ["node", str(program), "--inMemoryPersistence", "--blobHost", "127.0.0.1"]
    command += ["--blobPort", str(port), "--skipApiVersionCheck", "--silent"]
    with served(command, port, folder):
        url = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        make_container(url)
        yield (
            "az://lab/many",
            {
                "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
                "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
                "AZURE_STORAGE_ENDPOINT": url,
            },
        )


def make_container(url: str) -> None:
    """Makes the container `lab`, by a request with the account's signature."""
    date, version = formatdate(usegmt=True), "2023-11-03"
    headers = f"x-ms-date:{date}\nx-ms-version:{version}"
    path = f"/{_ACCOUNT}/{_ACCOUNT}/lab\nrestype:container"
    signed = "\n".join(["PUT", *[""] * 11, headers, path])
    digest = hmac.new(base64.b64decode(_KEY), signed.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(
        f"{url}/lab?restype=container",
        method="PUT",
        data=b"",
        headers={
            "x-ms-date": date,
            "x-ms-version": version,
            "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}",
            "Content-Length": "0",
            "Content-Type": "",
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 201


@contextmanager
def azurite_by_abfs(folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """As `azurite`, by an address of Azure Data Lake Storage."""
    with azurite(folder) as (_, environment):
        yield f"abfs://lab@{_ACCOUNT}.dfs.core.windows.net/many", environment


@contextmanager
def fake_gcs_server(folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yields the address and the environment of a store on fake-gcs-server, in memory."""
    module = "github.com/fsouza/fake-gcs-server@v1.56.0"
    port = free_port()
    command = [str(built_by_go("fake-gcs-server", module)), "-backend", "memory"]
    command += ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-log-level", "error"]
    # Requests for a host that is not named here are taken as those of a bucket.
    with gcs_writes.translating(port) as url:
        command += ["-public-host", f"127.0.0.1:{port}"]
        with served(command, port, folder):
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/storage/v1/b?project=lab",
                data=b'{"name": "lab"}',
                headers={"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 200
            yield "gs://lab/many", {"STORAGE_EMULATOR_HOST": url}


Server = Callable[[Path], AbstractContextManager[tuple[str, Mapping[str, str]]]]


def outcome(address: str, *options: str, **environment: str) -> dict[str, Any]:
    """What a process says that has its writers killed; forks need one that has no threads yet."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.objects.writers", address, *options],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    print(done.stdout)  # noqa: T201
    seen: dict[str, Any] = json.loads(done.stdout)
    assert (seen["lost"], seen["unreadable"], seen["doubled"]) == (0, 0, 0), seen
    assert seen["objects_per_run"] == 2
    return seen


def test_killed_writers_of_the_double(s3: S3Double) -> None:
    seen = outcome("s3://lab/many", "--writers=3", "--kills=1", "--runs=1")
    assert seen["measured"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("server", [versitygw, azurite, azurite_by_abfs, fake_gcs_server])
def test_a_hundred_killed_writers(server: Server, tmp_path: Path) -> None:
    with server(tmp_path) as (address, environment):
        counts = (f"--writers={WRITERS}", f"--kills={KILLS}", "--runs=1", "--life=1.5")
        seen = outcome(address, *counts, **environment)
    assert seen["measured"] >= WRITERS
