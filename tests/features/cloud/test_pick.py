"""`nephoscope cloud pick` whole, on a cloud in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import schemas

from features.cloud.toy import PlantedCloud
from nephoscope.command_line import main
from nephoscope.measure.cloud.model import Kind


@pytest.mark.usefixtures("probe")
def test_the_document_of_a_search_follows_its_schema(
    made: Callable[..., PlantedCloud], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud = made(hosts=6)
    code = main([
        "cloud", "pick", "toy", "--region", "east", "--image", "plain", "--type", "small",
        "--at-most", "2", "--hours", "2", "--money", "9", "--budget", "1s", "--set", "digits=1000",
        "--name", "fast", "--store", str(tmp_path / "store"), "--json",
    ])  # fmt: skip
    out, err = capsys.readouterr()
    assert code == 0, err
    picked = json.loads(out)
    schemas.validate(picked, {**schemas.commands_schema(), "$ref": "#/$defs/picked_machine"})
    assert picked["mix_machines"] == 0, "no census is stored"
    assert (picked["launches"], len(picked["candidates"])) == (2, 2)
    assert [one.id for one in cloud.all(Kind.MACHINE)] == [picked["selected"]]
    assert main(picked["remove"].split()[1:]) == 0
    assert cloud.all() == []
