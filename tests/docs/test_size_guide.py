"""The commands of the guide to sizes, with the files that it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "size-a-deployment.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope (.*?)(?: {2,}#.*)?$", TEXT, re.M)
FILES = re.findall(r'```yaml title="(\S+)"\n(.*?)```', TEXT, re.S)
ANSWER = r"5 aws/c7g\.large in eu-west-1: 264\.62 USD a month; misses p99 < 50ms with a probability"
ANSWERS = (
    (0, ANSWER),
    (0, ANSWER),
    (0, r'"sentence": "5 aws/c7g\.large'),
    (5, r"The data are too thin to recommend a deployment: how much instances of aws/c7g\.large"),
    (
        0,
        r"5 aws/c7g\.large in eu-central-1 and 4 in eu-west-1: 2,196\.32 USD .* region fails",
    ),
)
"""Exit code and sentence of each command."""


def test_every_command_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    for name, content in FILES:
        (tmp_path / name).write_text(content)
    assert len(COMMANDS) == len(ANSWERS)
    for command, (code, sentence) in zip(COMMANDS, ANSWERS, strict=True):
        done = run_inside(shlex.split(command))
        assert done.code == code, (command, done.err)
        assert re.search(sentence, " ".join(done.out.split())), (command, done.out)
    page = (tmp_path / "size.html").read_text(encoding="utf-8")
    links = set(re.findall(r'<a href="#(input-\d+)">', page))
    assert len(links) >= 10
    assert links <= set(re.findall(r'<th scope="row" id="(input-\d+)">', page))
