"""The first sentence of a command's help, read from its source: importing every command takes
longer than a listing may."""

from __future__ import annotations

import re
from pathlib import Path

import click

from nephoscope.results.feature import PACKAGE, load

_ROOT = Path(__file__).resolve().parents[2]


def summary_of(reference: str) -> str:
    """Returns the first sentence of the docstring of a command, of which `module:name` refers to
    the function."""
    module, _, name = reference.partition(":")
    own = module.removeprefix(PACKAGE)
    file = _ROOT.joinpath(*own[1:].split(".")).with_suffix(".py")
    if own.startswith(".") and file.is_file():
        text = file.read_text(encoding="utf-8")
        docstring = re.search(
            rf'^def {name}\b.*?"""(.*?\.)(?:\s|""")', text, re.DOTALL | re.MULTILINE
        )
        if docstring:
            return " ".join(docstring[1].split())
    command: click.Command = load(reference)  # of another package, or without its source
    return command.get_short_help_str(200)
