"""The command line as servers call it: found by its name, because it stands above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import click

from nephoscope.results.feature import load

COMMAND_LINE = ".command_line"


def program() -> click.Group:
    """Returns the program with all of its commands."""
    return cast(click.Group, load(f"{COMMAND_LINE}:program"))


def run(words: Sequence[str]) -> int:
    """Runs a command line in this process and returns its exit code."""
    return int(load(f"{COMMAND_LINE}:main")(words))
