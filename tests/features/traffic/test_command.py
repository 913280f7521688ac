"""`nephoscope network traffic` on the command line: a capture, a stored run, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.features.network.made import PLAN, sampled
from tests.features.traffic.made import pcap
from tests.results.made import make_run

from nephoscope import command_line


def test_a_capture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "capture.pcap"
    file.write_bytes(pcap())
    words = ["network", "traffic", str(file), "--to", "10.0.0.2", "--gap", "300ms", "--playback"]
    assert command_line.main([*words, "--radio", "lte", "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    (one,) = document["traffic"]
    assert one["shape"]["bursts_count"] == 2
    assert [phase["phase"] for phase in one["phases"]] == ["initial buffering"]
    assert one["energies"][0]["radio"] == "4G (LTE)"
    assert command_line.main(words) == 0
    assert "HTC Dream" in capsys.readouterr().out


def test_a_stored_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = make_run(tmp_path, PLAN, sampled, rounds=2)
    assert (
        command_line.main(
            ["network", "traffic", "--run", run.id, "--store", str(tmp_path), "--json"]
        )
        == 0
    )
    (one,) = json.loads(capsys.readouterr().out)["traffic"]
    assert one["shape"]["total_bytes"] == pytest.approx(1e6 * 12.5 + 7.5e6)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "needs a capture or a stored run"),
        (("a", "--run", "b"), "needs a capture or a stored run"),
        (("nowhere.pcap",), "cannot be read"),
        (("nowhere.pcap", "--to", "here"), "is no IP address"),
        (("nowhere.pcap", "--gap", "0"), "out of range"),
        (("nowhere.pcap", "--set", "x=1"), "no such parameter"),
        (("--run", "b", "--to", "10.0.0.1"), "--to selects"),
        (("--run", "nothing"), "There is no run"),
    ],
)
def test_bad_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert command_line.main(["network", "traffic", *words]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert sentence in told
