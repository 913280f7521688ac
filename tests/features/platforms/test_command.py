"""`nephoscope platforms`: options, documents and files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.features.platforms.made import report

from nephoscope import command_line
from nephoscope.features.platforms import command, measure
from nephoscope.features.platforms.measure import PlatformMeasurement
from nephoscope.measure.lab.platforms import PLATFORMS


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> list[measure.PlatformSettings]:
    """The settings of each measurement that was asked for; its report is drawn."""
    seen: list[measure.PlatformSettings] = []

    async def run(self: PlatformMeasurement) -> Any:
        seen.append(self.settings)
        return report()

    monkeypatch.setattr(PlatformMeasurement, "run", run)
    return seen


def test_the_options_reach_the_measurement(
    settings: list[measure.PlatformSettings], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    words = ["--platform", "uml", "--platform", "bare", "--boots", "9", "--memory", "1GiB"]
    words += ["--max-guests", "3", "--rate", "200", "--seed", "4", "-o", str(page)]
    assert command_line.main(["platforms", *words]) == 0
    assert settings == [measure.PlatformSettings(("uml", "bare"), 9, 1 << 30, 3, 200.0, 4)]
    assert "Boot timeline" in page.read_text(encoding="utf-8")
    assert "uml is reachable after" in capsys.readouterr().out


def test_all_platforms_of_the_lab_are_the_default(
    settings: list[measure.PlatformSettings], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["platforms", "--no-density", "--json"]) == 0
    assert settings[0].platforms == tuple(PLATFORMS) == command.NAMES
    assert settings[0].max_guests == 0
    document = json.loads(capsys.readouterr().out)
    assert {one["name"] for one in document["platforms"]} == {"bare", "container", "uml"}
    assert document["unavailable"][0]["platform"] == "qemu"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--platform", "lxc"], "lxc"),
        (["--boots", "4"], "5<=x<=1000"),
        (["--memory", "16MiB"], "too little memory for a guest"),
        (["--memory", "much"], "much"),
        (["--rate", "1"], "70"),
        (["-o", "page.pdf"], "unsupported file type"),
    ],
)
def test_bad_options_are_one_sentence(
    words: list[str], part: str, settings: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["platforms", *words]) == 2
    assert part in capsys.readouterr().err
    assert settings == []


def test_an_interruption_says_that_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(self: PlatformMeasurement) -> Any:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    monkeypatch.setattr(PlatformMeasurement, "run", run)
    assert command_line.main(["platforms"]) == 130
    assert "all guests were removed" in capsys.readouterr().err
