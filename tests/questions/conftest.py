"""Whole questions of users: input with a planted truth, the commands that they type, the answer.

A test is one question: its docstring is what the user asks. It writes the input, asks with the
words that a user would type, and holds the answer to the truth. Every document and every page that
a command prints is checked for contradictions too.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests import contradictions
from tests.e2e.conftest import Done, run_inside

TABLE_VARIABLE = "NEPHOSCOPE_QUESTIONS"
"""Environment variable: file to which each question adds a row (Markdown) with its answer."""


@dataclass(frozen=True)
class Answer:
    """What a command said. out, err: its two streams. code: its exit code.

    asserted: the passages in which the test found what it looked for.
    """

    command: str
    out: str
    err: str
    code: int
    asserted: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Both streams with single spaces: a sentence is found wherever its lines break."""
        return re.sub(r"\s+", " ", f"{self.out}\n{self.err}")

    def says(self, pattern: str) -> re.Match[str]:
        """Returns the match of a regular expression in the answer; fails when there is none."""
        match = re.search(pattern, self.text)
        assert match, f"{self.command}\ndoes not say {pattern!r}:\n{self.out}\n{self.err}"
        self.asserted.append(match.group())
        return match

    def never_says(self, pattern: str) -> None:
        """Fails when the answer contains a match of a regular expression."""
        match = re.search(pattern, self.text)
        assert not match, f"{self.command}\nsays {match}:\n{self.out}\n{self.err}"

    def json(self) -> Any:
        """Returns the JSON document on stdout."""
        return json.loads(self.out)


@dataclass
class Asking:
    """A user in an empty folder, with an empty store.

    `ask(COMMAND)` runs a command line inside the folder; `code` is the exit code that is right.
    """

    folder: Path
    asked: list[Answer] = field(default_factory=list)

    def __call__(self, command: str, *, code: int = 0) -> Answer:
        words = shlex.split(command)
        assert words[0] == "nephoscope", f"a user types 'nephoscope ...', not {command!r}"
        done: Done = run_inside(words[1:])
        answer = Answer(command, done.out, done.err, done.code)
        self.asked.append(answer)
        assert "Traceback" not in answer.text, answer.text
        assert "a defect" not in answer.text, answer.text
        assert answer.code == code, f"{command}: exit code {answer.code}\n{done.out}\n{done.err}"
        if "--json" in words and done.out:
            found = contradictions.of_document(answer.json())
        else:
            found = contradictions.of_text(done.out)
        for report in self.folder.glob("store/runs/*/report/report.html"):
            found += contradictions.of_page(report.read_text(encoding="utf-8"))
        assert not found, f"{command} contradicts itself: {found}"
        return answer

    def write(self, name: str, text: str) -> Path:
        """Writes an input file into the folder and returns its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Asking]:
    """A user's folder, whose store is `store` in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    asking, began = Asking(tmp_path), time.monotonic()
    yield asking
    if table := os.environ.get(TABLE_VARIABLE):
        _add_row(Path(table), request.function.__doc__ or "", asking, time.monotonic() - began)


def _add_row(table: Path, question: str, asking: Asking, seconds: float) -> None:
    commands = "; ".join(f"`{answer.command}`" for answer in asking.asked)
    said = " / ".join(passage for answer in asking.asked for passage in answer.asserted)
    cells = (
        " ".join(question.split()),
        commands,
        f"{seconds:.1f} s",
        said or "(figures of the JSON document)",
    )
    with table.open("a", encoding="utf-8") as file:
        file.write("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
