"""Commands of the guide to network paths that ask a host, on loopback in place of that host."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from nephoscope import command_line

TEXT = (Path(__file__).resolve().parents[2] / "docs/how-to/network.md").read_text(encoding="utf-8")
REACH = [
    words for words in re.findall(r"^\$ nephoscope (.*)$", TEXT, re.M) if "bench net.reach" in words
]


def test_the_command_for_tenants_asks_what_it_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path))
    (command,) = REACH
    here = command.replace("198.51.100.7", "127.0.0.1").replace("ssh:a", "local")
    words = [*shlex.split(here), "--repetitions", "1", "--set", "wait_ns=20ms"]
    assert command_line.main(words) == 0
    printed = capsys.readouterr().out
    for probe in ("icmp", "tcp-22", "tcp-80"):
        assert probe in printed
