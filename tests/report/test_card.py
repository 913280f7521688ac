"""The card for a chat: the figures of the summary, within its edges, whatever the names are."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.test_show import stored

from nephoscope import command_line
from nephoscope.core.model import RunResult
from nephoscope.report import card, report_files, summary
from report import made

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def result() -> RunResult:
    return made.result()


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_card_has_the_headline_results_of_the_summary(result: RunResult) -> None:
    shown = texts(card.render(result, report_files.title(result)))
    tiles = summary.headline_tiles(result, summary.MAX_TILES)
    assert len(tiles) >= 5
    for tile in tiles:
        at = shown.index(tile.value)
        assert shown[at - 1].startswith(tile.label[:20])
        assert shown[at + 1 : at + 3] == [tile.interval, tile.n]
    assert any(result.run.id in text for text in shown)
    assert any("95 % confidence" in text for text in shown)


def test_hostile_names_neither_break_the_card_nor_leave_it(result: RunResult) -> None:
    hostile = '<script>alert(1)</script> & "q" \'\x1b[31m\u202e' + "W" * 400
    run = replace(result.run, host=hostile, id=hostile, plan=hostile)
    whole = replace(result, run=run)
    svg = card.render(whole, report_files.title(whole))
    tags = {node.tag.removeprefix(SVG) for node in ET.fromstring(svg).iter()}
    assert tags == {"svg", "title", "rect", "path", "text"}
    assert not re.search(r"href|url\(|\x1b", svg)
    for node in ET.fromstring(svg).iter(f"{SVG}text"):
        estimated = 0.56 * float(node.attrib["font-size"]) * len("".join(node.itertext()))
        assert estimated <= card.WIDTH


def test_show_writes_it_and_names_the_endings_that_it_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path)
    where = ["--store", str(tmp_path)]
    assert command_line.main(["show", "-o", str(tmp_path / "a" / "card.svg"), *where]) == 0
    assert "100 ns" in texts((tmp_path / "a" / "card.svg").read_text())
    assert command_line.main(["show", "-o", str(tmp_path / "report.md"), *where]) == 0
    assert (tmp_path / "report.md").read_text().startswith("# Benchmark report")
    capsys.readouterr()
    assert command_line.main(["show", "-o", "card.png", *where]) == 2
    assert "unsupported file type. Use .svg, .html, .md or .json." in capsys.readouterr().err
