"""The options of `bench` that belong to command lines, under hyperfine's names and letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from nephoscope import units
from nephoscope.commands.options import PATH, add_options, parsed, seconds_of
from nephoscope.errors import UsageError

DEFAULT_TIMEOUT_S = 3600.0
_MAX_TIMEOUT_S = 86_400.0
_ALL = "all-non-zero"
_DEFAULT_SHELL = "sh"


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The values of these options.

    ignored_exit_codes: None for none, empty for all of them. shell: empty for no shell.
    """

    commands: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    lists: tuple[tuple[str, str], ...] = ()
    scan: tuple[str, str, str] | None = None
    scan_step: str | None = None
    warmup: int = 1
    runs: int | None = None
    minimum_runs: int | None = None
    maximum_runs: int | None = None
    setup: str | None = None
    prepare: tuple[str, ...] = ()
    conclude: tuple[str, ...] = ()
    cleanup: str | None = None
    shell: str = ""
    ignored_exit_codes: tuple[int, ...] | None = None
    input: str = ""
    outputs: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    margin: float = 0.03
    export_json: Path | None = None


def _ignored(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if text == _ALL:
        return ()
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) <= 3 and int(word) < 256 for word in words):
        raise UsageError(
            f"--ignore-failure takes exit codes from 0 to 255, not '{text}'.",
            "Write --ignore-failure for all of them, or for example --ignore-failure=1,2.",
        )
    return tuple(int(word) for word in words)


def _shell(text: str | None) -> str:
    return {None: "", "none": "", "default": _DEFAULT_SHELL}.get(text, text or "")


def _margin(text: str) -> float:
    return parsed("--margin", text, units.parse_ratio)


def _timeout(text: str | None) -> float:
    seconds = seconds_of("--timeout", text, (1, _MAX_TIMEOUT_S), "1 s to 1 d")
    return DEFAULT_TIMEOUT_S if seconds is None else seconds


def _figures(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        name, equals, pattern = text.partition("=")
        if not (name and equals and pattern):
            raise UsageError(
                f"--figure takes NAME=PATTERN, not '{text}'.",
                "Write, for example, --figure 'rate:higher=([0-9.]+) requests/s'.",
            )
    return texts


def _option(*names: str, read: Callable[[Any], Any] | None = None, **settings: Any) -> Any:
    if read is not None:
        settings["callback"] = lambda context, option, value: read(value)
    return click.option(*names, **settings)


_OPTIONS = (
    _option(
        "--command",
        "commands",
        multiple=True,
        metavar="CMD",
        help="Command line to measure instead of ID; may be repeated.",
    ),
    _option(
        "-n",
        "--command-name",
        "names",
        multiple=True,
        metavar="NAME",
        help="Name of a command in results, in the order of --command; may be repeated.",
    ),
    _option(
        "-L",
        "--parameter-list",
        "lists",
        type=(str, str),
        multiple=True,
        metavar="VAR VALUES",
        help="Measure each command once per value: {VAR} stands for the values, which are "
        "separated by commas; may be repeated, for all combinations.",
    ),
    _option(
        "-P",
        "--parameter-scan",
        "scan",
        type=(str, str, str),
        metavar="VAR MIN MAX",
        help="The same with the numbers from MIN to MAX.",
    ),
    _option(
        "-D",
        "--parameter-step-size",
        "scan_step",
        metavar="DELTA",
        help="Step of --parameter-scan [default: 1].",
    ),
    _option(
        "-w",
        "--warmup",
        type=click.IntRange(0, 100),
        default=1,
        metavar="N",
        show_default=True,
        help="Number of warm-up rounds.",
    ),
    _option(
        "-r",
        "--runs",
        type=click.IntRange(1, 1_000_000),
        metavar="N",
        help="Number of executions of each command, rounded up to full rounds.",
    ),
    _option(
        "-m",
        "--min-runs",
        "minimum_runs",
        type=click.IntRange(1, 1_000_000),
        metavar="N",
        help="Minimum number of executions of each command [default: 10].",
    ),
    _option(
        "-M",
        "--max-runs",
        "maximum_runs",
        type=click.IntRange(1, 1_000_000),
        metavar="N",
        help="Maximum number of executions of each command.",
    ),
    _option(
        "-s",
        "--setup",
        metavar="CMD",
        help="Command that runs before the executions of each trial.",
    ),
    _option(
        "-p",
        "--prepare",
        multiple=True,
        metavar="CMD",
        help="Command that runs before each execution; once for all commands, or once per command.",
    ),
    _option(
        "-C",
        "--conclude",
        multiple=True,
        metavar="CMD",
        help="Command that runs after each execution; once for all commands, or once per command.",
    ),
    _option(
        "-c",
        "--cleanup",
        metavar="CMD",
        help="Command that runs after the executions of each trial.",
    ),
    _option(
        "-S",
        "--shell",
        metavar="SHELL",
        read=_shell,
        help="Shell that interprets the commands, e.g. sh or 'bash --norc'; its own start is "
        "measured and subtracted [default: none].",
    ),
    _option(
        "-i",
        "--ignore-failure",
        "ignored_exit_codes",
        is_flag=False,
        flag_value=_ALL,
        metavar="CODES",
        read=_ignored,
        help="Accept these exit codes, e.g. --ignore-failure=1,2; without a value, all failures.",
    ),
    _option(
        "--input",
        default="",
        metavar="FILE",
        read=lambda text: "" if text == "null" else text,
        help="Standard input of the commands [default: null].",
    ),
    _option(
        "--output",
        "outputs",
        multiple=True,
        metavar="WHERE",
        help="Destination of standard output: null, pipe or a file; once for all commands, or once "
        "per command [default: null].",
    ),
    _option(
        "--figure",
        "figures",
        multiple=True,
        metavar="NAME=PATTERN",
        read=_figures,
        help="Figure that the commands print: a regular expression with one group around the "
        "number, or a JSON path such as $.results[0].mean; NAME:higher or NAME:lower states what "
        "is better; may be repeated.",
    ),
    _option(
        "--timeout",
        "timeout_s",
        metavar="TIME",
        read=_timeout,
        help="Maximum duration of a trial and of its setup [default: 1h].",
    ),
    _option(
        "--margin",
        default="3%",
        metavar="RATIO",
        show_default=True,
        read=_margin,
        help="Largest relative difference that counts as equivalent.",
    ),
    _option(
        "--export-json",
        type=PATH,
        metavar="FILE",
        help="Write the executions to FILE, in hyperfine's format.",
    ),
)


def with_command_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a click command these options; the function gets them as `command_options`."""
    own = [field.name for field in fields(CommandOptions)]

    @wraps(function)
    def gathered(**values: Any) -> Any:
        given = CommandOptions(**{name: values.pop(name) for name in own})
        return function(command_options=given, **values)

    return add_options(gathered, _OPTIONS)
