"""The options of `bench` that belong to command lines, under hyperfine's names and letters."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import click

from nephoscope.cli.kit.options import (
    FILE,
    GITHUB,
    JUNIT,
    Count,
    Parsed,
    duration,
    flag,
    option,
    ratio,
    repeated,
    stated,
)
from nephoscope.core.errors import UsageError

_RUNS = Count(1, 1_000_000)
_ALL = "all-non-zero"
_DEFAULT_SHELL = "sh"


def _ignored(text: str) -> tuple[int, ...]:
    if text == _ALL:
        return ()
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) <= 3 and int(word) < 256 for word in words):
        raise UsageError(
            f"'{text}' is no list of exit codes from 0 to 255.",
            "Write --ignore-failure for all of them, or for example --ignore-failure=1,2.",
        )
    return tuple(int(word) for word in words)


def _shell(text: str) -> str:
    return {"none": "", "default": _DEFAULT_SHELL}.get(text, text)


def _figure(text: str) -> str:
    name, equals, pattern = text.partition("=")
    if not (name and equals and pattern):
        raise UsageError(
            f"'{text}' is not of the form NAME=PATTERN.",
            "Write, for example, --figure 'rate:higher=([0-9.]+) requests/s'.",
        )
    return text


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The values of these options.

    ignored_exit_codes: None for none, empty for all of them. shell: empty for no shell.
    """

    commands: tuple[str, ...] = repeated(
        "--command", "CMD", "Command line to measure instead of ID."
    )
    duet: tuple[str, str] | None = option(
        "--duet",
        "CMD CMD",
        "Two command lines to measure instead of ID, at the same time on equal CPUs.",
        type=(str, str),
    )
    names: tuple[str, ...] = repeated(
        "-n --command-name", "NAME", "Name of a command in results, in the order of the commands."
    )
    lists: tuple[tuple[str, str], ...] = option(
        "-L --parameter-list",
        "VAR VALUES",
        "Measure each command once per value: {VAR} stands for the values, which are "
        "separated by commas; may be repeated, for all combinations.",
        type=(str, str),
        multiple=True,
    )
    scan: tuple[str, str, str] | None = option(
        "-P --parameter-scan",
        "VAR MIN MAX",
        "Measure each command once per number from MIN to MAX, for which {VAR} stands.",
        type=(str, str, str),
    )
    scan_step: str | None = option(
        "-D --parameter-step-size", "DELTA", "Step of --parameter-scan [default: 1]."
    )
    warmup: int = option("-w --warmup", Count(0, 100), "Number of warm-up rounds.", default=1)
    runs: int | None = option(
        "-r --runs", _RUNS, "Number of executions of each command, rounded up to full rounds."
    )
    minimum_runs: int | None = option(
        "-m --min-runs", _RUNS, "Minimum number of executions of each command [default: 10]."
    )
    maximum_runs: int | None = option(
        "-M --max-runs", _RUNS, "Maximum number of executions of each command."
    )
    until_decided: bool = flag(
        "--until-decided",
        "Execute several commands until their comparison is decided, at most 1000 rounds; the "
        "intervals hold at any moment.",
    )
    setup: str | None = option(
        "-s --setup", "CMD", "Command that runs before the executions of each trial."
    )
    prepare: tuple[str, ...] = option(
        "-p --prepare",
        "CMD",
        "Command that runs before each execution; once for all commands, or once per command.",
        multiple=True,
    )
    conclude: tuple[str, ...] = option(
        "-C --conclude",
        "CMD",
        "Command that runs after each execution; once for all commands, or once per command.",
        multiple=True,
    )
    cleanup: str | None = option(
        "-c --cleanup", "CMD", "Command that runs after the executions of each trial."
    )
    shell: str = option(
        "-S --shell",
        Parsed("SHELL", _shell),
        "Shell that interprets the commands, e.g. sh or 'bash --norc'; its own start is "
        "measured and subtracted [default: none].",
        default="",
    )
    ignored_exit_codes: tuple[int, ...] | None = option(
        "-i --ignore-failure",
        Parsed("CODES", _ignored),
        "Accept these exit codes, e.g. --ignore-failure=1,2; without a value, all failures.",
        is_flag=False,
        flag_value=_ALL,
    )
    input: str = option(
        "--input",
        Parsed("FILE", lambda text: "" if text == "null" else text),
        "Standard input of the commands [default: null].",
        default="",
    )
    outputs: tuple[str, ...] = option(
        "--output",
        "WHERE",
        "Destination of standard output: null, pipe or a file; once for all commands, or once "
        "per command [default: null].",
        multiple=True,
    )
    keep_children: bool = flag(
        "--keep-children",
        "Leave processes that the commands left running; else they are killed after each trial.",
    )
    figures: tuple[str, ...] = repeated(
        "--figure",
        Parsed("NAME=PATTERN", _figure),
        "Figure that the commands print: a regular expression with one group around the "
        "number, or a JSON path such as $.results[0].mean; NAME:higher or NAME:lower states what "
        "is better.",
    )
    timeout_s: float = option(
        "--timeout",
        duration("1 s", "1 d"),
        "Maximum duration of a trial and of its setup.",
        default="1h",
    )
    margin: float = option(
        "--margin",
        ratio(0, 1),
        "Largest relative difference that counts as equivalent.",
        default="3%",
    )
    fail_on: tuple[str, ...] = repeated(
        "--fail-on",
        click.Choice(["worse", "different", "undecided"]),
        "Exit with code 1 if any command has this verdict against the first one.",
    )
    junit: Path | None = JUNIT
    github: bool = GITHUB
    export_json: Path | None = option(
        "--export-json", FILE, "Write the executions to FILE, in hyperfine's format."
    )

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns the command lines to measure."""
        return self.commands or self.duet or ()

    @property
    def option(self) -> str:
        """Returns the option that gives the command lines."""
        return "--command" if self.duet is None else "--duet"


def given_options() -> list[str]:
    """Returns the names of these options that stand on the command line."""
    return stated(field.name for field in fields(CommandOptions))
