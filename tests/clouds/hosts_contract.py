"""Existing hosts in the suite over all clouds: a list of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.cloud_cases import CloudCase

from nephoscope.measure.cloud.provider import CloudSettings, Provider
from nephoscope.measure.cloud.providers import open_provider


@pytest.fixture
def cloud_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CloudCase:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    inventory = tmp_path / "hosts.ini"
    lines = [f"web{n} ansible_host=127.0.0.{n} nephoscope_zone=rack-1" for n in range(1, 6)]
    facts = ["[web:vars]", "ansible_processor_vcpus=2", "ansible_memtotal_mb=2048"]
    inventory.write_text("\n".join(["[web]", *lines, *facts]))

    def at(source: str) -> Provider:
        return open_provider(CloudSettings("hosts", source))

    return CloudCase(
        lambda: at(str(inventory)),
        region="hosts",
        type="web",
        image="installed",
        zone="rack-1",
        impossible=lambda request: replace(request, count=6, at_least=6),
        down=lambda: at('["false"]'),
    )
