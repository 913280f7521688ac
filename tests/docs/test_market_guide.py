"""The commands of the guide to server types, on a made clone of the measurements."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside
from tests.features.known_machines.test_analysis import PLAN, stored
from tests.store.imports.inspector_tree import make_tree, many

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "market.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope (.*?)(?: {2,}#.*)?$", TEXT, re.M)
PRICES = re.search(r'```text title="prices.csv"\n(.*?)```', TEXT, re.S)
MINE = re.search(r'```text title="mine.csv"\n(.*?)```', TEXT, re.S)
SENTENCES = (
    r"54 server types with [0-9,]+ figures and 54 launches are stored.* 2 server types have one",
    r"alpha/type-000(20|12) in eu-1 is cheapest for Redis SET requests",
    r"is cheapest for 1,000 of Redis SET requests .* and 200 of HTTP requests",
    r"cpu-single",
    r"54 server types with",
    r"is ready first|alpha has|No launch|median",
    r"shortest request until the API's answer",
    r"CPU models by its lower bound|No CPU model has 6",
    r"CPU model",
    "",
    r"This machine is alpha/type-00012 \(label server-type, 0\.110 USD an hour\)",
    r"alpha/type-00012 would do",
    r"Every imported type has a figure",
    r"survey-made-[0-9a-f]+ would do .* Not measured on this machine: bw_mem",
    # The made types are unlike any machine.
    r"There is no prediction of HTTP requests .* for mine: its figure of .* times the highest",
    r"Prediction from published measurements .* of HTTP requests for files of 1 KiB",
)
"""What each command of the guide has to print."""


def test_every_command_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    make_tree(tmp_path / "sc-inspector-data", many(54))
    assert PRICES is not None
    (tmp_path / "prices.csv").write_text(PRICES[1])
    assert MINE is not None
    (tmp_path / "mine.csv").write_text(MINE[1])
    assert len(COMMANDS) == len(SENTENCES)
    for command, sentence in zip(COMMANDS, SENTENCES, strict=True):
        if command.startswith("survey"):  # two minutes of measuring: a made run stands for it
            only_hash = "\n".join(line for line in PLAN.splitlines() if "{bench" not in line)
            hashing = "  - {benchmark: cpu.hash, factors: {threads: [1, 2]}}"
            run = stored(tmp_path / "store", plan=f"{only_hash}\n{hashing}\n")
            run.update(labels={"server-type": command.split()[-1]})
            continue
        done = run_inside(shlex.split(command))
        assert done.code == 0, (command, done.err)
        assert re.search(sentence, " ".join(done.out.split())), (command, done.out)
    page = (tmp_path / "market.html").read_text(encoding="utf-8")
    assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', page)
