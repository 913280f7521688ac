"""Storage services that hang, lie, never end or have a wrong certificate: one sentence in time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import storage_answers as answers
from hostile_services import (
    HTTP,
    LISTS,
    Behaviour,
    endless_body,
    endless_list,
    hanging_up,
    hostile,
    silent,
)
from storage_servers import BUCKET, CERTIFICATES, KEYS, needs_storage
from test_storage_transfer import AZURE_KEY, GOOGLE, HADOOP, start
from tests import sshd

pytestmark = [pytest.mark.together, pytest.mark.slow, needs_storage]

SERVICES: Mapping[str, tuple[dict[str, Any], dict[str, str]]] = {
    "s3": ({"bucket": BUCKET}, KEYS),
    "webdav": ({}, {"WEBDAV_USERNAME": "user-of-test", "WEBDAV_PASSWORD": "password-of-test"}),
    "azblob": ({"bucket": answers.BUCKET}, AZURE_KEY),
    "gcs": ({"bucket": answers.BUCKET}, GOOGLE),
    "webhdfs": ({}, HADOOP),
}
"""Services over HTTP: their parameters and credentials."""
SMALL = {
    "object_bytes": [4099], "objects": 1, "clients": 1, "transactions_ns": 0,
    "timeout_ns": 1_000_000_000, "retries": 1,
}  # fmt: skip
DEADLINE_S = 120
"""Of the trial, in `start`: none of these may need it."""
RESIDENT_BYTES = 200e6
"""The program alone takes 30 MB; an answer that is read to its end would take gigabytes."""


def ended(params: dict[str, Any], environment: dict[str, str]) -> tuple[str, str, float, int]:
    """Returns name and message of the failure, seconds, and the peak of the memory in bytes."""
    began_s = time.monotonic()
    process = start({**SMALL, **params}, environment)
    assert process.stdout is not None
    assert process.stderr is not None
    out = process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    took_s = time.monotonic() - began_s
    assert process.returncode in (2, 3), (out[-500:], errors)
    for secret in environment.values():
        assert secret not in out + errors
    error = json.loads(out.splitlines()[-1])["error"]
    # The words of ssh are two sentences.
    assert error["message"].count(". ") <= ("ssh://" in error["message"]), error["message"]
    return error["name"], error["message"], took_s, usage.ru_maxrss << 10


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("behaviour", HTTP, ids=lambda behaviour: behaviour.__name__)
def test_a_hostile_answer_ends_in_a_sentence(service: str, behaviour: Behaviour) -> None:
    params, keys = SERVICES[service]
    with hostile(behaviour) as server:
        url = f"http://127.0.0.1:{server.port}"
        name, message, took_s, resident = ended(
            {"service": service, "endpoint": url, **params}, keys
        )
    assert name in ("no_server", "store_failed", "endless_answer"), message
    assert (name == "endless_answer") <= (behaviour is endless_body)
    assert took_s < DEADLINE_S / 2
    assert resident < RESIDENT_BYTES


@pytest.mark.parametrize("service", LISTS)
def test_a_list_without_a_last_page_ends_at_a_bound(service: str) -> None:
    params, keys = SERVICES[service]
    with hostile(endless_list(LISTS[service])) as server:
        url = f"http://127.0.0.1:{server.port}"
        name, message, _, resident = ended(
            {"service": service, "endpoint": url, "timeout_ns": 10**10, **params}, keys
        )
    assert name == "endless_answer", message
    assert "a list has more than 2000 pages" in message
    assert resident < RESIDENT_BYTES


@pytest.mark.parametrize("service", SERVICES)
def test_a_certificate_of_an_unknown_authority_or_another_name_is_refused(service: str) -> None:
    params, keys = SERVICES[service]
    tls = {"key": CERTIFICATES / "server.key", "certificate": CERTIFICATES / "server.pem"}
    trusted = {"tls_ca_file": str(CERTIFICATES / "ca.pem")}
    with hostile(silent, tls) as server:
        for host, more in (("localhost", {}), ("127.0.0.2", trusted)):
            url = f"https://{host}:{server.port}"
            name, message, _, _ = ended(
                {"service": service, "endpoint": url, **params, **more}, keys
            )
            assert name in ("no_tls", "no_server"), message
            assert host == "127.0.0.2" or name == "no_tls", message


@sshd.needs_it
@pytest.mark.parametrize("behaviour", [silent, hanging_up], ids=lambda each: each.__name__)
def test_a_hostile_sftp_server_ends_in_a_sentence(behaviour: Behaviour, tmp_path: Path) -> None:
    key = sshd.keygen(tmp_path / "key")
    with hostile(behaviour) as server:
        params = {
            "service": "sftp", "endpoint": f"user@127.0.0.1:{server.port}", "directory": "/tmp",
            "ssh_host_keys": "accept",
        }  # fmt: skip
        name, message, took_s, _ = ended(params, {"SFTP_KEY_FILE": str(key)})
    assert took_s < DEADLINE_S / 2, (name, message)


@sshd.needs_it
def test_an_unknown_host_key_of_sftp_is_refused(tmp_path: Path) -> None:
    with sshd.serving(tmp_path / "sshd", options="Subsystem sftp internal-sftp") as server:
        params = {
            "service": "sftp", "endpoint": f"{server.user}@127.0.0.1:{server.port}",
            "directory": str(tmp_path),
        }  # fmt: skip
        _, message, _, _ = ended(params, {"SFTP_KEY_FILE": str(server.identity)})
        assert "key" in message.lower(), message
