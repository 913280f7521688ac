"""EC2 in the suite over all clouds: the provider on the double, without faults, in fast time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.cloud_cases import CloudCase

from nephoscope.measure.cloud.provider import CloudSettings, Provider

from . import double as doubles
from .double import Double
from .helpers import IMAGE_NAME

SCALE = 20.0
PAGE = 5


@pytest.fixture(scope="session")
def _double_in_fast_time() -> Iterator[Double]:
    with doubles.running(scale=SCALE) as running:
        yield running


@pytest.fixture(scope="session")
def _opened_once() -> dict[str, Provider]:
    """To read the descriptions of the services takes a second."""
    return {}


@pytest.fixture
def cloud_ec2(
    _double_in_fast_time: Double,
    _opened_once: dict[str, Provider],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[CloudCase]:
    """A case of the double's first region."""
    from nephoscope.measure.cloud.providers import open_provider

    running = _double_in_fast_time
    running.reset(scale=SCALE)
    running.settings(page=PAGE)
    profiles = tmp_path / "credentials"
    wrong = "a-wrong-secret"
    texts = {"right": doubles.SECRET, "wrong": wrong}
    profiles.write_text(
        "".join(
            f"[{name}]\naws_access_key_id = {doubles.KEY}\naws_secret_access_key = {secret}\n"
            for name, secret in texts.items()
        )
    )
    for name, value in running.environment().items():
        if "ACCESS_KEY" not in name:
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profiles))

    def opened(profile: str = "right", endpoint: str = running.endpoint) -> Provider:
        return open_provider(CloudSettings("ec2", endpoint, profile))

    def once() -> Provider:
        if running.endpoint not in _opened_once:
            _opened_once[running.endpoint] = opened()
        return _opened_once[running.endpoint]

    yield CloudCase(
        once,
        region="us-east-1",
        type="t3.micro",
        image=IMAGE_NAME,
        zone="us-east-1a",
        other_type="m5.large",
        impossible=lambda request: replace(request, count=1000, at_least=1000),
        wrong=lambda: opened("wrong"),
        secret=wrong,
        down=lambda: opened(endpoint="http://127.0.0.1:9"),
        page=PAGE,
    )
    assert running.defects() == []
