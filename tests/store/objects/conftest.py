"""An S3 double, and machines: each has a folder for its mirrors of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nephoscope.store import Store
from nephoscope.store.objects import mirror, opening

from .s3_double import S3Double, running

ADDRESS = "s3://lab/runs"

Machine = Callable[[str], Store]


@pytest.fixture(scope="session")
def service() -> Iterator[S3Double]:
    with running() as double:
        yield double


@pytest.fixture
def s3(service: S3Double, monkeypatch: pytest.MonkeyPatch) -> S3Double:
    """The double without objects; credentials and endpoint are in the environment."""
    service.objects.clear()
    service.requests.clear()
    service.fault = ""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", service.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-the-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return service


@pytest.fixture
def machine(s3: S3Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Returns the store as a machine of a name sees it, in a process of its own."""
    monkeypatch.setattr(mirror, "REFRESH_S", 0.0)

    def on(name: str) -> Store:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / name))
        opening.mirror_of.cache_clear()
        return Store(ADDRESS)

    return on
