"""Fixtures of the double: one process for the tests of a worker, as new for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from . import double as doubles
from .double import Double


@pytest.fixture(scope="session")
def _running_double() -> Iterator[Double]:
    with doubles.running() as running:
        yield running


@pytest.fixture
def cloud(_running_double: Double, monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    """The double without any resource or fault; the AWS libraries find its credentials."""
    _running_double.reset()
    for name, value in _running_double.environment().items():
        monkeypatch.setenv(name, value)
    yield _running_double
    assert _running_double.defects() == []


Client = Callable[..., Any]


@pytest.fixture(scope="session")
def _clients() -> dict[tuple[Any, ...], Any]:
    return {}


@pytest.fixture
def client(cloud: Double, _clients: dict[tuple[Any, ...], Any]) -> Client:
    """Makes clients of boto3 that do not retry: by region, service and credentials."""
    import boto3
    from botocore.config import Config

    config = Config(retries={"total_max_attempts": 1}, connect_timeout=60, read_timeout=60)

    def made(region: str = "us-east-1", service: str = "ec2", **credentials: str) -> Any:
        key = (cloud.endpoint, region, service, *sorted(credentials.items()))
        if key not in _clients:
            given = credentials or {
                "aws_access_key_id": doubles.KEY,
                "aws_secret_access_key": doubles.SECRET,
            }
            session = boto3.Session()
            _clients[key] = session.client(
                service, region_name=region, endpoint_url=cloud.endpoint, config=config, **given
            )
        return _clients[key]

    return made
