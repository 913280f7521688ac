"""The pages for users of other tools: every command runs, every option and command exists."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click
import pytest
from tests.e2e.conftest import run_inside
from tests.servers import serving

from nephoscope import command_line

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "coming-from"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "README.md")
FILES = {
    "fio.json": "imports/fio.json",
    "hyperfine.json": "imports/hyperfine.json",
    "k6-export.json": "imports/k6-export.json",
    "perfkitbenchmarker_results.json": "pkb/perfkitbenchmarker_results.json",
    "phoronix-composite.xml": "imports/phoronix-composite.xml",
}


def commands(text: str) -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S)
    return [line for block in blocks for line in re.findall(r"^\$ nephoscope (.+)$", block, re.M)]


class Answering(BaseHTTPRequestHandler):
    """Answers every request with a short body, on connections that stay."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *words: object) -> None:
        """Writes nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Answering)) as number:
        yield number


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    for name, source in FILES.items():
        shutil.copy(ROOT / "tests" / "golden" / source, tmp_path / name)
    lines = commands(page.read_text(encoding="utf-8"))
    assert len(lines) >= 3
    for line in lines:
        done = run_inside(shlex.split(line.replace(":8080/", f":{port}/")))
        # A generator that other programs kept from its schedule measured no load: no result.
        is_late = line.startswith("load ") and "This machine is busy" in done.err
        assert done.code == (3 if is_late and done.code else 0), (line, done.err)
        assert done.code or done.out.strip(), line


def test_every_named_command_and_option_exists() -> None:
    for page in [*PAGES, FOLDER / "README.md"]:
        for line in re.findall(r"`nephoscope ([a-z][^`]*)`", page.read_text(encoding="utf-8")):
            command: click.Command = command_line.program
            words = shlex.split(line)
            while isinstance(command, click.Group) and words and words[0] in command.commands:
                command = command.commands[words.pop(0)]
            assert command is not command_line.program, (page.name, line)
            options = {word for param in command.params for word in param.opts}
            named = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert named <= options, (page.name, line)
