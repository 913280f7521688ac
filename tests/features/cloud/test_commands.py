"""`nephoscope cloud` on a cloud of files: sentences, exit codes, documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import schemas
from tests.contract.toy_cloud import ToyCloud

from nephoscope import command_line
from nephoscope.measure.cloud import providers
from nephoscope.measure.cloud.model import CloudResource
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudSettings

UP = ["up", "toy", "--name", "r1", "--region", "east", "--type", "small", "--image", "plain"]
BILL = """BilledCost,BillingCurrency,ChargePeriodStart,ServiceCategory,Tags
0.25,USD,2026-11-02T00:00:00Z,Compute,"{""nephoscope-run"": ""r1""}"
"""


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToyCloud:
    (tmp_path / "cloud").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    toy = ToyCloud(tmp_path / "cloud")

    def opened(settings: CloudSettings) -> ToyCloud:
        assert settings == CloudSettings("toy")
        return toy

    monkeypatch.setattr(providers, "open_provider", opened)
    return toy


def documents(
    capsys: pytest.CaptureFixture[str], record: str, *words: str, code: int = 0
) -> dict[str, Any]:
    """The document of a command, which keeps to its schema."""
    assert command_line.main(["cloud", *words, "--json"]) == code
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    schemas.validate(document, {**schemas.commands_schema(), "$ref": f"#/$defs/{record}"})
    return document


def test_every_document_follows_its_schema(
    cloud: ToyCloud, probe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = documents(capsys, "cloud_check", "doctor", "toy")
    assert [row["region"] for row in checked["regions"]] == ["east", "west"]
    preview = documents(capsys, "rented_machines", *UP, "--count", "2", "--dry-run")
    assert (preview["cost"], preview["elapsed_s"], cloud.all()) == (2.0, None, [])
    made = documents(capsys, "rented_machines", *UP, "--count", "2", "--money", "2")
    assert [row["name"] for row in made["machines"]] == ["m-1", "m-2"]
    (rental,) = documents(capsys, "rentals", "list", "toy")["rentals"]
    assert (rental["name"], rental["state"], rental["machines"]) == ("r1", "up", ["m-1", "m-2"])
    left_alone = documents(capsys, "swept", "sweep", "toy")
    assert (left_alone["removed"], len(left_alone["spared"])) == ([], 3)
    preview = documents(capsys, "swept", "sweep", "toy", "--run", "r1", "--dry-run")
    assert len(preview["remaining"]) == len(cloud.all()) == 3
    assert len(documents(capsys, "swept", "down", "r1")["removed"]) == 3
    assert cloud.all() == []
    (tmp_path / "bill.csv").write_text(BILL)
    (billed,) = documents(capsys, "cloud_bill", "bill", "bill.csv")["rentals"]
    assert billed["billed"] == 0.25
    assert billed["quoted"] > 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (UP, "These machines cost up to 1.00 USD until their time ends, and no limit is set."),
        ([*UP, "--money", "0.5"], "costs up to 1.00 USD"),
        ([*UP, "--money", "5", "--machine-hours", "0.5"], "takes up to 1 machine-hours"),
        (["down", "r9"], "There is no rental named r9 of this machine."),
        (["bill", "no.csv"], "no.csv: there is no such file."),
        (["policy", "aws"], "'aws' is no provider"),
        (["policy", "lxd"], "LXD or Incus has no policy document."),
    ],
)
def test_a_refusal_is_one_sentence_and_nothing_is_made(
    cloud: ToyCloud, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert command_line.main(["cloud", *words]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert cloud.all() == []


def test_what_is_not_confirmed_as_removed_has_an_exit_code_of_its_own(
    cloud: ToyCloud, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(region: str, run: str | None = None, kinds: Any = None) -> list[CloudResource]:
        raise CloudError(Cause.CREDENTIALS, "toy: the credentials have expired.")

    monkeypatch.setattr(cloud, "resources", refused)
    assert command_line.main(["cloud", "sweep", "toy"]) == 3
    error = capsys.readouterr().err
    assert "region east (toy: the credentials have expired)" in error
    assert "Run `nephoscope cloud sweep toy` again" in error
