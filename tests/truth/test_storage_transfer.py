"""storage.transfer: sizes, hashes and counts on a local disk, and against real services."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import storage_answers as answers
from storage_servers import (
    BUCKET,
    CERTIFICATES,
    KEYS,
    Server,
    needs_s3,
    needs_storage,
    needs_webdav,
    s3,
    webdav,
)
from tests import sshd
from trials import Trial, command, refused, run

from nephoscope.core.programs import find_storage

pytestmark = pytest.mark.together

SIZES = [1, 4099, 1 << 20]
SHORT: dict[str, Any] = {
    "object_bytes": SIZES,
    "objects": 2,
    "clients": 2,
    "transactions_ns": 20_000_000,
    "seed": 7,
}
PASSES = 4
"""Writes, reads after writes, reads with cold and with warm caches."""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory on a disk: /tmp may lie in memory."""
    root = Path("/var/tmp") / f"nephoscope-test-{os.getpid()}-{time.time_ns()}"
    root.mkdir()
    yield root
    shutil.rmtree(root)


def check_counts(trial: Trial, *, verified_passes: int) -> None:
    """Each pass has all objects of all clients, and each verifying pass has hashed them."""
    objects = SHORT["objects"] * SHORT["clients"]
    times = [sample for sample in trial.samples if sample["metric"] == "transfer_latency_ns"]
    assert sum(sample["count"] for sample in times) == objects * len(SIZES) * PASSES
    assert trial.one("verified_count") == objects * len(SIZES) * verified_passes
    rates = [sample for sample in trial.samples if sample["metric"] == "transfer_bytes_per_s"]
    assert len(rates) == len(SIZES) * PASSES
    fair = [sample["value"] for sample in trial.samples if sample["metric"] == "fairness_ratio"]
    assert len(fair) == len(rates)
    assert all(0.5 <= value <= 1 + 1e-9 for value in fair)
    transactions = [s["factors"] for s in trial.samples if s["metric"] == "transactions_per_s"]
    assert {factors["clients_at_once"] for factors in transactions} == {1, 2}


def test_local_files_are_counted_hashed_and_removed(place: Path) -> None:
    trial = run("storage.transfer", {**SHORT, "directory": str(place)})
    check_counts(trial, verified_passes=1)
    assert trial.one("retries_count") == 0
    # Each object is written twice, and synced; blocks of the file system come on top.
    bytes_written = 2 * sum(SIZES) * SHORT["objects"] * SHORT["clients"]
    assert trial.written_bytes >= bytes_written
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("params", "code", "name"),
    [
        ({"object_bytes": []}, 2, "usage"),
        ({"directory": "/nowhere/at/all"}, 2, "usage"),
        ({"object_bytes": [1 << 30], "objects": 100_000, "clients": 256}, 4, "disk_full"),
        ({"service": "s3", "bucket": "b"}, 4, "no_storage_services"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(params: dict[str, Any], code: int, name: str) -> None:
    assert refused("storage.transfer", params) == (code, name)


# What follows needs the program with the libraries of services, and their servers.


def start(params: dict[str, Any], environment: dict[str, str]) -> subprocess.Popen[str]:
    words = [str(find_storage()), *command("storage.transfer", params, 120)[1:]]
    pipe = subprocess.PIPE
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment}
    return subprocess.Popen(words, env=env, stdout=pipe, stderr=pipe, text=True)


def transfer(params: dict[str, Any], environment: dict[str, str]) -> Trial:
    process = start({**SHORT, **params}, environment)
    out, errors = process.communicate(timeout=150)
    assert process.returncode == 0, out[-500:] + errors
    for secret in environment.values():
        assert secret not in out + errors
    return Trial(out)


def failure(params: dict[str, Any], environment: dict[str, str]) -> tuple[int, str, str]:
    process = start({**SHORT, **params}, environment)
    out, errors = process.communicate(timeout=150)
    for secret in environment.values():
        assert secret not in out + errors
    error = json.loads(out.splitlines()[-1])["error"]
    assert error["message"].count(". ") == 0, error["message"]
    return process.returncode, error["name"], error["message"]


def at(server: Server) -> dict[str, Any]:
    return {"service": "s3", "endpoint": server.url, "bucket": BUCKET}


@pytest.mark.slow
@needs_storage
@needs_s3
def test_s3_objects_are_hashed_and_removed(tmp_path: Path) -> None:
    with s3(tmp_path) as server:
        trial = transfer(at(server), KEYS)
        check_counts(trial, verified_passes=3)
        assert server.stored() == []


@pytest.mark.slow
@needs_storage
@needs_s3
def test_what_is_wrong_with_s3_is_one_sentence(tmp_path: Path) -> None:
    with s3(tmp_path) as server:
        wrong_key = {**KEYS, "AWS_SECRET_ACCESS_KEY": "another-secret-of-the-test"}
        assert failure(at(server), {})[1] == "usage"
        assert failure(at(server), wrong_key)[:2] == (3, "access_denied")
        code, _, message = failure({**at(server), "bucket": "nobody"}, KEYS)
        assert code == 2
        assert "has no bucket 'nobody'" in message
        other = {**at(server), "endpoint": f"https://127.0.0.1:{server.port}", "retries": 0}
        assert failure(other, KEYS)[1] == "no_tls"
        server.kill()
        assert failure(at(server), KEYS)[1] == "no_server"
        assert failure({**at(server), "endpoint": "http://192.0.2.1"}, KEYS)[1] == "not_authorised"


@pytest.mark.slow
@needs_storage
@needs_s3
def test_tls_trusts_the_authority_that_is_named_and_no_other(tmp_path: Path) -> None:
    with s3(tmp_path, tls=True) as server:
        params = {**at(server), "endpoint": f"https://localhost:{server.port}", "retries": 0}
        trial = transfer({**params, "tls_ca_file": str(CERTIFICATES / "ca.pem")}, KEYS)
        check_counts(trial, verified_passes=3)
        assert failure(params, KEYS)[:2] == (3, "no_tls")


@pytest.mark.slow
@needs_storage
@needs_s3
def test_a_server_that_is_killed_half_way_costs_retries_and_no_byte(tmp_path: Path) -> None:
    params = {"object_bytes": [256 << 20], "objects": 2, "clients": 1, "transactions_ns": 0}
    with s3(tmp_path) as server:
        process = start({**params, **at(server), "retries": 10}, KEYS)
        end = time.monotonic() + 120
        # Some parts of the first object have arrived, and most of the work is still to be done.
        while sum(path.stat().st_size for path in server.folder.rglob("*")) < 32 << 20:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.01)
        server.kill()
        time.sleep(1)
        server.start()
        out, errors = process.communicate(timeout=150)
        assert process.returncode == 0, out[-500:] + errors
        trial = Trial(out)
        assert trial.one("retries_count") > 0
        assert trial.one("verified_count") == 2 * 3
        assert server.stored() == []


@pytest.mark.slow
@needs_storage
@needs_s3
def test_objects_of_a_killed_trial_are_removed_by_the_next(tmp_path: Path) -> None:
    with s3(tmp_path) as server:
        process = start({**SHORT, "transactions_ns": 60_000_000_000, **at(server)}, KEYS)
        end = time.monotonic() + 120
        while len(server.stored()) < 4:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert server.stored()
        (server.folder / "of-somebody-else").write_bytes(b"1")
        transfer(at(server), KEYS)
        assert server.stored() == ["of-somebody-else"]


@pytest.mark.slow
@needs_storage
@needs_s3
def test_an_object_of_one_gib_takes_less_than_100_mb_of_memory(tmp_path: Path) -> None:
    params = {"object_bytes": [1 << 30], "objects": 1, "clients": 1, "transactions_ns": 0}
    with s3(tmp_path) as server:
        trial = transfer({**params, **at(server)}, KEYS)
        assert trial.one("resident_bytes") < 100e6
        assert trial.one("verified_count") == 3


@pytest.mark.slow
@needs_storage
@needs_s3
def test_a_run_keeps_credentials_out_of_its_store(tmp_path: Path) -> None:
    with s3(tmp_path) as server:
        words = [
            sys.executable,
            "-m",
            "nephoscope",
            "bench",
            "storage.transfer",
            "--repetitions",
            "2",
        ]
        for name, value in {**at(server), **SHORT}.items():
            text = value if isinstance(value, str) else json.dumps(value)
            words += ["--set", f"{name}={text}"]
        store = tmp_path / "store"
        done = subprocess.run(
            [*words, "--store", str(store)],
            env={**os.environ, **KEYS},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert server.stored() == []
    written = [path.read_bytes() for path in store.rglob("*") if path.is_file()]
    assert written
    for secret in KEYS.values():
        assert secret not in done.stdout + done.stderr
        assert not any(secret.encode() in content for content in written)


@pytest.mark.slow
@needs_storage
@needs_webdav
def test_webdav_objects_are_hashed_and_removed(tmp_path: Path) -> None:
    with webdav(tmp_path) as server:
        trial = transfer({"service": "webdav", "endpoint": server.url}, {})
        check_counts(trial, verified_passes=3)
        assert server.stored() == []


@pytest.mark.slow
@needs_storage
@sshd.needs_it
def test_sftp_objects_are_hashed_and_removed(tmp_path: Path) -> None:
    options = "Subsystem sftp internal-sftp"
    server = sshd.Server(tmp_path / "sshd", options=options)
    server.start()
    folder = tmp_path / "files"
    folder.mkdir()
    try:
        params = {
            "service": "sftp",
            "endpoint": f"{server.user}@127.0.0.1:{server.port}",
            "directory": str(folder),
            "ssh_host_keys": "accept",
        }
        trial = transfer(params, {"SFTP_KEY_FILE": str(server.identity)})
        check_counts(trial, verified_passes=3)
        assert list(folder.iterdir()) == []
    finally:
        server.stop()


# Services that no free server exists for: the answers that their documentation describes.

PARTS = {"object_bytes": [1, 4099, 12 << 20], "part_bytes": 5 << 20}
AZURE = {"AZURE_STORAGE_ACCOUNT_NAME": answers.ACCOUNT}
AZURE_KEY = {**AZURE, "AZURE_STORAGE_ACCOUNT_KEY": answers.AZURE_KEY}
AZURE_SIGNATURE = {**AZURE, "AZURE_STORAGE_SAS_TOKEN": answers.SIGNATURE}
GOOGLE = {"GOOGLE_OAUTH_TOKEN": answers.TOKEN}
HADOOP = {"HADOOP_USER_NAME": answers.USER}
DESCRIBED = [
    ("azblob", answers.Azure, AZURE_KEY, {"PUT block", "PUT blocklist", "POST batch"}),
    ("azblob", answers.Azure, AZURE_SIGNATURE, {"PUT block", "PUT blocklist", "DELETE"}),
    ("gcs", answers.Google, GOOGLE, {"PUT part", "POST part", "batch"}),
    ("webhdfs", answers.Hadoop, HADOOP, {"CREATE", "OPEN", "LISTSTATUS_BATCH", "DELETE"}),
]


@pytest.mark.slow
@needs_storage
@pytest.mark.truth("storage.transfer", "retries_count", "verified_count")
@pytest.mark.parametrize(("name", "kind", "keys", "methods"), DESCRIBED)
def test_a_service_as_documented_has_its_objects_hashed_and_removed(
    name: str, kind: type[answers.Service], keys: dict[str, str], methods: set[str]
) -> None:
    service = kind()
    service.objects["data/of-somebody-else"] = b"1"
    service.busy = 2
    with answers.answering(service) as url:
        bucket = {} if name == "webhdfs" else {"bucket": answers.BUCKET}
        place = {"service": name, "endpoint": url, "directory": "data", **bucket}
        trial = transfer({**PARTS, **place}, keys)
    check_counts(trial, verified_passes=3)
    assert trial.one("retries_count") == 2
    assert methods <= service.methods
    assert list(service.objects) == ["data/of-somebody-else"]
    assert not service.uploads


@pytest.mark.slow
@needs_storage
@pytest.mark.parametrize(
    ("name", "kind", "keys", "wrong"),
    [
        (
            "azblob",
            answers.Azure,
            AZURE_KEY,
            {"AZURE_STORAGE_ACCOUNT_KEY": "d3JvbmcgYWNjb3VudCBrZXk="},
        ),
        ("gcs", answers.Google, GOOGLE, {"GOOGLE_OAUTH_TOKEN": "wrong-token"}),
        ("webhdfs", answers.Hadoop, HADOOP, {"HADOOP_USER_NAME": "wrong-user"}),
    ],
)
def test_what_a_service_as_documented_refuses_is_one_sentence(
    name: str, kind: type[answers.Service], keys: dict[str, str], wrong: dict[str, str]
) -> None:
    with answers.answering(kind()) as url:
        place = {"service": name, "endpoint": url}
        if name != "webhdfs":
            place["bucket"] = answers.BUCKET
            code, _, message = failure({**place, "bucket": "nobody"}, keys)
            assert code == 2
            assert "has no bucket 'nobody'" in message
        assert failure(place, {**keys, **wrong})[:2] == (3, "access_denied")
