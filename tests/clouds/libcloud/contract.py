"""Clouds over Apache Libcloud in the suite over all clouds: doubles of their APIs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.clouds.libcloud import cloudstack, opennebula
from tests.contract.cloud_cases import CloudCase
from tests.sshd import free_port

from nephoscope.measure.cloud.provider import CloudSettings, Provider
from nephoscope.measure.cloud.providers import open_provider


@pytest.fixture
def cloud_cloudstack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudCase]:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = "[{}]\nendpoint = http://127.0.0.1:{}/client/api\nkey = {}\nsecret = {}\n"
    with cloudstack.running() as double:
        sections = (
            ("good", double.port, cloudstack.SECRET),
            ("bad", double.port, secret := "another-secret-4711"),
            ("down", free_port(), cloudstack.SECRET),
        )
        texts = [
            config.format(name, port, cloudstack.KEY, secret) for name, port, secret in sections
        ]
        (tmp_path / ".cloudstack.ini").write_text("".join(texts))
        yield _of_libcloud("cloudstack", cloudstack.ZONE, cloudstack.LIMIT, secret, cloudstack.PAGE)


@pytest.fixture
def cloud_opennebula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudCase]:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = "[{}]\nendpoint = http://127.0.0.1:{}\nuser = {}\npassword = {}\n"
    with opennebula.running() as double:
        sections = (
            ("good", double.port, opennebula.PASSWORD),
            ("bad", double.port, secret := "another-password-4711"),
            ("down", free_port(), opennebula.PASSWORD),
        )
        texts = [
            config.format(name, port, opennebula.USER, password)
            for name, port, password in sections
        ]
        (tmp_path / ".one").mkdir()
        (tmp_path / ".one" / "occi.ini").write_text("".join(texts))
        yield _of_libcloud("opennebula", "default", opennebula.LIMIT, secret)


def _of_libcloud(provider: str, region: str, limit: int, secret: str, page: int = 0) -> CloudCase:
    def at(section: str) -> Provider:
        return open_provider(CloudSettings(provider, profile=section))

    return CloudCase(
        lambda: at("good"),
        region=region,
        type="small",
        image="debian-12",
        impossible=lambda request: replace(request, count=limit + 1, at_least=limit + 1),
        wrong=lambda: at("bad"),
        secret=secret,
        down=lambda: at("down"),
        page=page,
    )
