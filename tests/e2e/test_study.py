"""A part of a study from the command to its page: a lab, loads beside trials, theirs and ours."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools import needs

from nephoscope import command_line
from nephoscope.features.studies import catalogue
from nephoscope.measure.lab.provisioner import LABS

pytestmark = pytest.mark.usefixtures("root_only")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The study with a lab of its own name and work of milliseconds; yields the lab's name."""
    lab = f"de{uuid.uuid4().hex[:6]}"
    folder = tmp_path / "studies" / "delgado-2010"
    shutil.copytree(catalogue.folder() / "delgado-2010", folder)
    plan = folder / "plan.yaml"
    text = plan.read_text(encoding="utf-8")
    for old, new in (
        ("name: delgado\n", f"name: {lab}\n"),
        ("network: 10.78.0.0/24", "network: 10.88.0.0/24"),
        ("platform: container", "platform: bare"),
        ("digits: 10000", "digits: 500"),
        ("passes: 10", "bytes_per_array: 1MiB, passes: 2"),
        ("{min: 24, max: 24}", "{min: 6, max: 6}"),
        ("{min: 9, max: 9}", "{min: 6, max: 6}"),
        ("benchmark: load.memory, on", "benchmark: load.memory, params: {buffer_bytes: 1MiB}, on"),
    ):
        assert old in text, f"the plan has no '{old}' any more"
        text = text.replace(old, new)
    plan.write_text(text, encoding="utf-8")
    monkeypatch.setattr(catalogue, "folder", lambda: folder.parent)
    catalogue.load.cache_clear()
    yield lab
    catalogue.load.cache_clear()


@needs("ip", "tc")
def test_a_part_fills_its_tables_and_draws_its_figures(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    words = ["study", "run", "delgado-2010", "--part", "isolation", "--store", str(store), "--json"]
    assert command_line.main(words) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert "delgado-2010, isolation (1 of 1)" in captured.err
    cells = [cell for sheet in document["tables"] for cell in sheet["cells"]]
    assert {sheet["table"] for sheet in document["tables"]} == {"Table 3.2", "Table 3.3"}
    assert len(cells) == 18
    for cell in cells:
        if cell["measured"] is None:
            # One slow trial among six of milliseconds may leave no coefficient of variation.
            assert cell["absent"].startswith("there is no cv: The mean is not"), cell
        else:
            assert cell["measured"]["n"] == 6
        assert cell["published"]["n"] == 100
        assert cell["published"]["low"] < cell["published"]["value"] < cell["published"]["high"]
        assert cell["unit"]
    samples = {figure["layout"]["id"]: figure["curves"] for figure in document["figures"]}
    assert [len(curve["y"]) for curve in samples["figure-3-2"]] == [6, 6]
    assert len(document["comparisons"]) == 5
    page = (store / "studies" / "delgado-2010" / "study.html").read_text(encoding="utf-8")
    assert "Table 3.2: time to compute pi" in page
    assert "Figure 3.3" in page
    assert not list(LABS.remains(tiny)), "the part's lab is gone"
