"""`nephoscope network` on the command line: the documents have the vectors of the analyses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import schemas

from nephoscope import command_line
from nephoscope.cli.kit.command import records
from nephoscope.cli.kit.documents import commands_schema


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert command_line.main(["network", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    schema = commands_schema()
    name = records(command_line.program)[f"network {words[0]}"].prints[""].name
    schemas.validate(document, {**schema, "$ref": f"#/$defs/{name}"})
    return document


def test_vectors_through_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    series = tmp_path / "delays.csv"
    series.write_text("delay_ms\n50\n52\n49\n60\n50\n")
    found = printed(capsys, "series", str(series))["delay"]
    assert found["jitters_ns"] == pytest.approx([125e3, 304687.5, 973144.53, 1537323.0])
    assert found["ipdv_mean_ns"] == 6.5e6
    assert found["pdvs_ns"] == [1e6, 3e6, 0, 11e6, 1e6]
    voice = printed(capsys, "voice", "--delay", "250ms", "--loss", "2%")
    assert (round(voice["rating"], 3), round(voice["mos"], 3)) == (72.166, 3.697)
    loss = printed(capsys, "loss", "--outcomes", "00=980,01=5,10=5,11=10", "--slot", "5ms")
    assert loss["episodes"]["frequency"]["value"] == 0.015
    assert loss["episodes"]["duration_slots"]["value"] == 3.0
    tcp = printed(
        capsys,
        *("tcp", "--sent", "100MB", "--retransmitted", "2MB", "--base-rtt", "25ms"),
        *("--loaded-rtt", "32ms", "--actual", "13s", "--ideal", "8s"),
    )
    figures = [tcp[name] for name in ("efficiency_ratio", "buffer_delay_ratio")]
    assert [*figures, tcp["transfer_time_ratio"]] == pytest.approx([0.98, 0.28, 1.625])
    path = printed(capsys, "tcp", "--bottleneck", "500Mbit/s", "--base-rtt", "5ms")
    assert path["bandwidth_delay_bytes"] == 312_500
    assert printed(capsys, "link", "941Mbit/s")["technology"] == "1 Gb/s Ethernet"


def test_text_and_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    types = tmp_path / "types.csv"
    rows = [f"{kind},{0.4 + 0.2 * (kind == 'b') + at / 1000}" for kind in "ab" for at in range(9)]
    types.write_text("\n".join(["instance_type,rtt_ms", *rows]))
    page = tmp_path / "groups.html"
    assert command_line.main(["network", "groups", str(types), "-o", str(page)]) == 0
    assert "2 groups" in capsys.readouterr().out
    assert "All 18 values" in page.read_text(encoding="utf-8")
    assert command_line.main(["network", "voice", "--delay", "150ms"]) == 0
    assert "R 89.5, MOS 4.33: satisfied" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("voice",), "--delay"),
        (("voice", "--delay", "soon"), "'soon' is no duration"),
        (("voice", "--delay", "9d"), "out of range"),
        (("voice", "--delay", "1ms", "--loss", "200%"), "is no ratio"),
        (("loss",), "needs counts"),
        (("loss", "--outcomes", "00=1,00=2"), "is not a count"),
        (("loss", "--outcomes", "00=-1"), "is not a count"),
        (("loss", "--outcomes", "00=0"), "at least one pair"),
        (("loss", "--sent", "5", "--lost", "6"), "larger than --sent"),
        (("tcp",), "give no figure"),
        (("tcp", "--sent", "much"), "--sent: 'much' is no size"),
        (("tcp", "--sent", "1MB", "--retransmitted", "2MB"), "More bytes"),
        (("link", "fast"), "is no line rate"),
        (("link", "0Mbit/s"), "No payload"),
        (("series", "nowhere.csv"), "cannot be read"),
        (("groups", "nowhere.csv"), "no such file"),
    ],
)
def test_bad_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert command_line.main(["network", *words]) != 0
    told = capsys.readouterr().err
    assert told.startswith("nephoscope: ")
    assert told.count("\n") == 1
    assert sentence in told


def test_results_are_printed_although_a_report_cannot_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    types = tmp_path / "types.csv"
    types.write_text("instance_type,rtt_ms\na,1\nb,2\n")
    page = types / "page.html"  # below a file
    assert command_line.main(["network", "groups", str(types), "-o", str(page)]) == 3
    printed = capsys.readouterr()
    assert "Cannot write" in printed.err
    assert "Instance types by network" in printed.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("tcp", "--ideal", "5s"), "These values give no figure"),
        (("tcp", "--sent", "1MB", "--retransmitted", "2MB"), "network tcp: More bytes"),
        (("loss", "--outcomes", "00=0"), "--outcomes: Loss episodes need counts"),
        (("link", "0bit/s"), "GOODPUT: No payload arrived"),
        (("voice", "--delay", "1ms", "--burst-ratio", "nan"), "'nan' is not a number"),
        (("voice", "--delay", "1ms", "--loss", "101%"), "no ratio. Write 3% or 0.03."),
    ],
)
def test_values_of_no_analysis_are_a_wrong_command(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert command_line.main(["network", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_series_of_no_analysis_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "zero.csv"
    file.write_text("rtt_ms,loaded\n0,0\n0,1\n")
    assert command_line.main(["network", "series", str(file)]) == 2
    assert f"{file}: A round trip under load is not above 0" in capsys.readouterr().err
