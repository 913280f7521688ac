"""The fixture of an object store."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from . import server
from .server import ObjectStore


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An empty bucket on loopback; the AWS libraries find its credentials."""
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    with server.running() as store:
        yield store
