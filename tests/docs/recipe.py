"""Follows a page of docs/contributing in a copy of the repository, as a contributor would.

A block with a title is written to that file. A `diff` block changes the file of its title: `+` and
`-` are lines that come and go, the others show where, and `@@` separates changes. The commands of
`console` blocks run in order; `...` in their output stands for anything, and ` # exit N` states an
exit code other than 0.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "contributing"
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.M | re.S)
LAST_PART = "## Before you commit\n"
STATUS = "git status --short --untracked-files=all"
LIMIT_S = 1500


@dataclass(frozen=True)
class Copy:
    """A copy of the repository with what was built in it, an environment and a first commit."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Copy:
        """Copies all but what git ignores, and what was built of programs, contracts and pages."""
        copy = cls(folder)
        copy._add(_listed("--cached", "--others", "--exclude-standard"))
        copy.add_built("src", "tools", "docs/reference/generated")
        copy._set_up()
        copy.run(
            "git init -q && git add -A && "
            "git -c user.name=x -c user.email=x@localhost commit -q -m Copy"
        )
        return copy

    def add_built(self, *folders: str) -> None:
        """Copies what git ignores in these folders, with the times of the files."""
        self._add(_listed("--others", "--ignored", "--exclude-standard", "--", *folders))

    def _add(self, names: Iterable[str]) -> None:
        present = "\0".join(name for name in names if (ROOT / name).exists())
        words = ["xargs", "-0", "-r", "cp", "-a", "--parents", "-t", str(self.folder)]
        subprocess.run(words, cwd=ROOT, input=present, text=True, check=True)

    def _set_up(self) -> None:
        """Makes what `make check` makes, from the environment that runs this test."""
        packages = sysconfig.get_path("purelib")
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        own = self.folder / ".venv" / "lib" / version / "site-packages"
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(self.folder / ".venv")], check=True
        )
        (own / "paths.pth").write_text(f"{self.folder / 'src'}\n{packages}\n", "utf-8")
        program = self.folder / ".venv" / "bin" / "nephoscope"
        program.write_text(
            f"#!{self.folder}/.venv/bin/python\nimport sys\n"
            "from nephoscope.command_line import main\nsys.exit(main())\n",
            "utf-8",
        )
        program.chmod(0o755)
        self.run(
            "mkdir .setup && for lock in requirements requirements-dev; do "
            "touch .setup/$lock.lock.$(sha256sum $lock.lock pyproject.toml | sha256sum | "
            "cut -c1-16); done && "
            "touch src/nephoscope/_probe/*/* src/nephoscope/_probe/NOTICES.txt .setup/generated"
        )

    def run(self, line: str, expected: str = "...") -> str:
        """Runs a command as a shell does; returns what it printed, which has to be as expected."""
        line, _, exit_code = line.partition(" # exit ")
        own = ("PYTHON", "PYTEST_", "NEPHOSCOPE_", "MAKE", "MFLAGS")
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith(own)},
            "PATH": f"{self.folder}/.venv/bin:{os.environ['PATH']}",
            "NEPHOSCOPE_STORE": str(self.folder / "nephoscope-store"),
            "NO_COLOR": "1",
            "COLUMNS": "100",
        }
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )
        report = f"$ {line}\n{done.stdout}"
        assert done.returncode == int(exit_code or 0), report
        assert "Traceback" not in done.stdout, report
        matches = OutputChecker().check_output(
            expected, done.stdout, ELLIPSIS | NORMALIZE_WHITESPACE
        )
        assert matches, f"{report}\nThe page has:\n{expected}"
        return done.stdout

    def follow(self, text: str) -> int:
        """Does what a page or a part of it says; returns the number of its commands."""
        commands = 0
        for language, title, body in BLOCK.findall(text):
            if language == "diff":
                self._change(title, body)
            elif title:
                path = self.folder / title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(body, "utf-8")
            if language == "console":
                for line, expected in _commands(body):
                    self.run(line, expected)
                    commands += 1
        return commands

    def _change(self, title: str, body: str) -> None:
        path = self.folder / title
        text = path.read_text("utf-8")
        for hunk in body.split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            assert all(line[0] in " +-" for line in lines), hunk
            old = "".join(line[1:] for line in lines if line[0] != "+")
            new = "".join(line[1:] for line in lines if line[0] != "-")
            assert text.count(old) == 1, f"{title} does not have once:\n{old}"
            text = text.replace(old, new)
        path.write_text(text, "utf-8")

    def touched(self) -> list[str]:
        """The lines of git about files that are new or changed."""
        return self.run(STATUS).splitlines()

    def check_style(self) -> None:
        """Refuses new and changed texts of Python that `make check` would: format, lint, names."""
        ruff = Path(sys.executable).with_name("ruff")
        python = [name for line in self.touched() if (name := line[3:]).endswith(".py")]
        files = shlex.join(python)
        self.run(
            f"{ruff} format --check {files} && {ruff} check {files} && "
            f"{sys.executable} tools/check_names.py {files}"
        )

    def reset(self) -> None:
        """Makes the copy what it was."""
        self.run("git reset -q --hard && git clean -fdq && rm -rf nephoscope-store")


def _listed(*options: str) -> list[str]:
    words = ["git", "ls-files", "-z", *options]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return listed.split("\0")[:-1]


def _commands(block: str) -> Iterator[tuple[str, str]]:
    """Yields each command of a console block with its expected output; none stands for anything."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        line, _, expected = part.partition("\n")
        yield line, expected or "..."


def files_named(page: str) -> list[str]:
    """The last command's output: the files that a page says it touches."""
    last = [
        expected
        for language, _, body in BLOCK.findall(page)
        if language == "console"
        for line, expected in _commands(body)
        if line == STATUS
    ][-1]
    return last.splitlines()
